"""DP fine-tuning of a public network from a cut on, with a head, whose step sizes are Prodigy's or
D-Adaptation's: they follow from the noised gradients alone, so they are free."""

from __future__ import annotations

from dataclasses import replace

from dpladder.config.learner_sections import StepSizeFreeTuning
from dpladder.learn.curator import Given, Training
from dpladder.learn.dp_finetune.train import by_steps_of, logits, ready, scorer, seen_by_head
from dpladder.learn.dp_prodigy.train import prodigy
from dpladder.learn.interface import Constants, Hyper, Weights
from dpladder.learn.queries import Query

__all__ = ["logits", "ready", "scorer", "seen_by_head", "train"]


def train(
    given: Given,
    queries: tuple[Query, ...],
    learner: StepSizeFreeTuning,
    hyper: Hyper,
    constants: Constants,
) -> Training[Weights]:
    """How far each trained tensor is from where it started: in the public network, and from zero in
    the head."""
    whole = replace(hyper, eta=1.0)  # the update is the step, its size included
    return by_steps_of(prodigy(learner), given, queries, learner, whole, constants)
