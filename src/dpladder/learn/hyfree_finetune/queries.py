"""What fine-tuning with step sizes from noised losses asks: HyFreeDP's sums, of all trained weights
in one vector."""

from __future__ import annotations

from dpladder.config.learner_sections import HyperparameterFreeTuning
from dpladder.learn.dp_finetune.queries import OWN, model_of, shapes
from dpladder.learn.hyfree_dp import queries as hyfree
from dpladder.learn.interface import Constants, Hyper
from dpladder.learn.queries import Query

__all__ = ["OWN", "queries", "shapes"]


def queries(
    learner: HyperparameterFreeTuning, hyper: Hyper, constants: Constants
) -> tuple[Query, ...]:
    return hyfree.queries(learner, hyper, constants, model_of(learner, constants))
