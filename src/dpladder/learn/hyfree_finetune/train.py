"""HyFreeDP on a public network from a cut on, with a head (Bu & Liu 2025): its steps, with the sums
of fine-tuning."""

from __future__ import annotations

from dpladder.config.learner_sections import HyperparameterFreeTuning
from dpladder.learn.curator import Given, Training
from dpladder.learn.descent import in_shapes
from dpladder.learn.dp_finetune.parts import start, tuned_of
from dpladder.learn.dp_finetune.queries import shapes
from dpladder.learn.dp_finetune.train import logits, ready, scorer, seen_by_head
from dpladder.learn.hyfree_dp.train import descend
from dpladder.learn.interface import Constants, Hyper, Weights
from dpladder.learn.queries import Query

__all__ = ["logits", "ready", "scorer", "seen_by_head", "train"]


def train(
    given: Given,
    queries: tuple[Query, ...],
    learner: HyperparameterFreeTuning,
    hyper: Hyper,
    constants: Constants,
) -> Training[Weights]:
    """How far each trained tensor is from where it started: in the public network, and from zero in
    the head."""
    tuned = tuned_of(learner, constants)
    first = start(learner, constants, tuned, given.start).to(given.device)
    unit = tuned.module.knowing_nothing
    flat = yield from descend(queries, first, unit, learner, hyper, constants)
    return in_shapes(flat, shapes(learner, constants).values())
