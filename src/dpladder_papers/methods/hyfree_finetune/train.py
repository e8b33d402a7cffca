"""HyFreeDP on a public network from a cut on, with a head (Bu & Liu 2025): its steps, with the sums
of fine-tuning."""

from __future__ import annotations

from dpladder.learn.curator import PublicInputs, Training
from dpladder.learn.descent import split_into_shapes
from dpladder.learn.finetune.parts import start, tuned_model
from dpladder.learn.finetune.shapes import shapes
from dpladder.learn.interface import Constants, Hyper, Weights
from dpladder.learn.queries import Query
from dpladder_papers.methods.hyfree_dp.train import descend
from dpladder_papers.methods.hyfree_finetune.section import HyperparameterFreeTuning


def train(
    inputs: PublicInputs,
    queries: tuple[Query, ...],
    learner: HyperparameterFreeTuning,
    hyper: Hyper,
    constants: Constants,
) -> Training[Weights]:
    """HyFreeDP's descent on a public network above a cut.

    Guarantee: that of the noised gradients and losses.

    Returns:
        How far each trained tensor is from where it started: in the public network, and from zero
        in the head.
    """
    tuned = tuned_model(learner, constants)
    first = start(learner, constants, tuned, inputs.start).to(inputs.device)
    unit = tuned.module.initial_loss
    flat = yield from descend(queries, first, unit, learner, hyper, constants)
    return split_into_shapes(flat, shapes(learner, constants).values())
