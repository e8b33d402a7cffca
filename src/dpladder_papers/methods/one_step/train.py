"""One step of DP-Adam from zero on a linear head: the whole budget on one noised gradient, and
nothing to search."""

from __future__ import annotations

from dpladder.learn.curator import PublicInputs, Training
from dpladder.learn.interface import Constants, Hyper, Weights
from dpladder.learn.queries import Query
from dpladder_papers.methods.dp_adam import train as heads
from dpladder_papers.methods.one_step.queries import as_adam, hyper_of_one_step
from dpladder_papers.methods.one_step.section import OneStep


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
    return heads.train(
        inputs, queries, as_adam(learner), hyper_of_one_step(learner, hyper), constants
    )
