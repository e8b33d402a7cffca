"""What fine-tuning with step sizes from noised losses costs: HyFreeDP's sums, of all trained
weights in one vector."""

from __future__ import annotations

from dpladder.config.learner_sections import HyperparameterFreeTuning
from dpladder.learn.dp_finetune.cost import OWN, shapes, size
from dpladder.learn.hyfree_dp.cost import declaration
from dpladder.learn.interface import Constants, Declaration, Hyper

__all__ = ["OWN", "declare", "shapes"]


def declare(learner: HyperparameterFreeTuning, hyper: Hyper, constants: Constants) -> Declaration:
    return declaration(learner, hyper, constants, (size(learner, constants),))
