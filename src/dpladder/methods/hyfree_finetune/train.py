"""HyFreeDP on a public network from a cut on, with a head (Bu & Liu 2025): its steps, with the sums
of fine-tuning."""

from __future__ import annotations

from dpladder.learn.curator import Given, Training
from dpladder.learn.descent import in_shapes
from dpladder.learn.finetune.parts import start, tuned_of
from dpladder.learn.finetune.shapes import shapes
from dpladder.learn.interface import Constants, Hyper, Weights
from dpladder.learn.queries import Query
from dpladder.methods.hyfree_dp.train import descend
from dpladder.methods.hyfree_finetune.section import HyperparameterFreeTuning


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
