"""One step of DP-Adam from zero on a linear head: the whole budget on one noised gradient, and
nothing to search."""

from __future__ import annotations

from dpladder.config.learner_sections import OneStep
from dpladder.learn.curator import Given, Training
from dpladder.learn.heads import train as heads
from dpladder.learn.interface import Constants, Hyper, Weights
from dpladder.learn.one_step.queries import as_adam, once
from dpladder.learn.queries import Query


def train(
    given: Given,
    queries: tuple[Query, ...],
    learner: OneStep,
    hyper: Hyper,
    constants: Constants,
) -> Training[Weights]:
    return heads.train(given, queries, as_adam(learner), once(learner, hyper), constants)
