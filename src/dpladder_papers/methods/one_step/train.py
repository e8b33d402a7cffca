"""One step of DP-Adam from zero on a linear head: the whole budget on one noised gradient, and
nothing to search."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpladder.learn import guide
from dpladder.learn.interface import Constants, Hyper, Weights
from dpladder.learn.queries import Query
from dpladder_papers.methods.dp_adam import Adam
from dpladder_papers.methods.one_step import OneStep

if TYPE_CHECKING:  # a plan asks for queries alone, and loads no torch
    from dpladder.learn.curator import PublicInputs, Training


def queries(learner: OneStep, hyper: Hyper, constants: Constants) -> tuple[Query, ...]:
    """One noised sum of clipped gradients, at the whole budget.

    Guarantee: mu-GDP for `hyper.mu`.
    """
    return guide.queries(as_adam(learner), hyper_of_one_step(learner, hyper), constants)


def as_adam(learner: OneStep) -> Adam:
    """DP-Adam's section with this learner's keys."""
    return Adam(
        clip=learner.clip, clipping=learner.clipping, stability=learner.stability, bias=learner.bias
    )


def hyper_of_one_step(learner: OneStep, hyper: Hyper) -> Hyper:
    """Hyperparameters of the same mu, with one step at this learner's rate."""
    return Hyper(learner.eta, 1, hyper.mu)


def train(
    inputs: PublicInputs,
    queries: tuple[Query, ...],
    learner: OneStep,
    hyper: Hyper,
    constants: Constants,
) -> Training[Weights]:
    """One step of DP-Adam from zero, on a linear head (Mehta et al. 2022).

    Guarantee: that of the one noised gradient. Nothing is searched.
    """
    from dpladder_papers.methods.dp_adam.train import train as train_by_adam

    return train_by_adam(
        inputs, queries, as_adam(learner), hyper_of_one_step(learner, hyper), constants
    )
