"""DP fine-tuning: a public network from a cut on, with a head, under Algorithm 1. Gradients of all
trained weights are one vector."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpladder.learn import descent_noise, guide
from dpladder.learn.finetune.shapes import model_of
from dpladder.learn.interface import Constants, Hyper, Weights
from dpladder.learn.queries import Query
from dpladder.methods.dp_finetune import FineTune

if TYPE_CHECKING:  # a plan asks for queries alone, and loads no torch
    from dpladder.learn.curator import PublicInputs, Training


def queries(learner: FineTune, hyper: Hyper, constants: Constants) -> tuple[Query, ...]:
    """Gradients of all trained weights at each step and, guided, a look.

    Guarantee: mu-GDP for `hyper.mu` on full batches, the look included; on samples, what the steps
    are booked at.
    """
    return guide.queries(learner, hyper, constants, model_of(learner, constants))


def logit_noise(learner: FineTune, hyper: Hyper, constants: Constants) -> float:
    """kappa of one training: the sd of the noise that it puts into a logit.

    It is computed as if the head were all: its inputs are about as long as pooled features.
    """
    if learner.optimizer == "adam":
        return descent_noise.logit_noise_of_adam(learner, hyper, constants)
    steps = guide.hyper_after_look(learner, hyper)
    return descent_noise.logit_noise(learner, steps, constants, learner.momentum)


def train(
    inputs: PublicInputs,
    queries: tuple[Query, ...],
    learner: FineTune,
    hyper: Hyper,
    constants: Constants,
) -> Training[Weights]:
    """A descent on a public network above a cut, with momentum or Adam's moments.

    Guarantee: that of its gradients' releases and, guided, of one noised count.
    """
    from dpladder.learn.descent import adam, momentum
    from dpladder.learn.finetune.descent import descend_network

    by_adam = learner.optimizer == "adam"
    update = adam(learner.betas, learner.stability) if by_adam else momentum(learner.momentum)
    return descend_network(update, inputs, queries, learner, hyper, constants)
