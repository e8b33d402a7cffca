"""What a single step of DP-Adam asks: one noised sum of clipped gradients."""

from __future__ import annotations

from dpladder.learn import guide
from dpladder.learn.interface import Constants, Hyper
from dpladder.learn.queries import Query
from dpladder_papers.methods.dp_adam.section import Adam
from dpladder_papers.methods.one_step.section import OneStep


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
    """The same mu, with one step at this learner's rate."""
    return Hyper(learner.eta, 1, hyper.mu)
