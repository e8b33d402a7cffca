"""What a single step of DP-Adam costs: one noised sum of clipped gradients."""

from __future__ import annotations

from dpladder.config.learner_sections import Adam, OneStep
from dpladder.learn import guide
from dpladder.learn.interface import Constants, Declaration, Hyper


def declare(learner: OneStep, hyper: Hyper, constants: Constants) -> Declaration:
    return guide.declare(as_adam(learner), once(learner, hyper), constants)


def as_adam(learner: OneStep) -> Adam:
    return Adam(
        clip=learner.clip, clipping=learner.clipping, stability=learner.stability, bias=learner.bias
    )


def once(learner: OneStep, hyper: Hyper) -> Hyper:
    return Hyper(learner.eta, 1, hyper.mu)
