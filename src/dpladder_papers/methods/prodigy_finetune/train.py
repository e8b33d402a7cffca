"""DP fine-tuning of a public network from a cut on, with a head, whose step sizes are Prodigy's or
D-Adaptation's. They follow from the noised gradients alone, so they are free. Gradients of all
trained weights are one vector."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dpladder.learn import guide
from dpladder.learn.finetune.shapes import model_of
from dpladder.learn.interface import Constants, Hyper, Weights
from dpladder.learn.queries import Query
from dpladder_papers.methods.prodigy_finetune import StepSizeFreeTuning

if TYPE_CHECKING:  # a plan asks for queries alone, and loads no torch
    from dpladder.learn.curator import PublicInputs, Training


def queries(learner: StepSizeFreeTuning, hyper: Hyper, constants: Constants) -> tuple[Query, ...]:
    """Gradients of all trained weights at each step and, guided, a look.

    Guarantee: mu-GDP for `hyper.mu` on full batches; on samples, what the steps are booked at.
    """
    return guide.queries(learner, hyper, constants, model_of(learner, constants))


def train(
    inputs: PublicInputs,
    queries: tuple[Query, ...],
    learner: StepSizeFreeTuning,
    hyper: Hyper,
    constants: Constants,
) -> Training[Weights]:
    """A descent on a public network above a cut, whose step sizes are free.

    Guarantee: that of its gradients' releases and, guided, of one noised count.
    """
    from dpladder.learn.finetune.descent import descend_network
    from dpladder_papers.methods.dp_prodigy.train import prodigy

    whole = replace(hyper, eta=1.0)  # the update is the step, its size included
    return descend_network(prodigy(learner), inputs, queries, learner, whole, constants)
