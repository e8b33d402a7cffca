"""HyFreeDP on a public network from a cut on, with a head (Bu & Liu 2025): its steps, with the sums
of fine-tuning, of all trained weights in one vector."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpladder.learn.finetune.shapes import model_of, shapes
from dpladder.learn.interface import Constants, Hyper, Weights
from dpladder.learn.queries import Query
from dpladder_papers.methods.hyfree_dp import train as hyfree
from dpladder_papers.methods.hyfree_finetune import HyperparameterFreeTuning

if TYPE_CHECKING:  # a plan asks for queries alone, and loads no torch
    from dpladder.learn.curator import PublicInputs, Training


def queries(
    learner: HyperparameterFreeTuning, hyper: Hyper, constants: Constants
) -> tuple[Query, ...]:
    """Gradients of all trained weights at each step, and losses at every K-th.

    Guarantee: that of HyFreeDP's queries, mu-GDP for `hyper.mu` on full batches.
    """
    return hyfree.queries(learner, hyper, constants, model_of(learner, constants))


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
    from dpladder.learn.descent import split_into_shapes
    from dpladder.learn.finetune.parts import start, tuned_model

    tuned = tuned_model(learner, constants)
    first = start(learner, constants, tuned, inputs.start).to(inputs.device)
    unit = tuned.module.initial_loss
    flat = yield from hyfree.descend(queries, first, unit, learner, hyper, constants)
    return split_into_shapes(flat, shapes(learner, constants).values())
