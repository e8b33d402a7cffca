"""What a single step of DP-Adam costs: one noised sum of clipped gradients."""

from __future__ import annotations

from dpladder.config.learner_sections import Adam, OneStep
from dpladder.learn.dp_adam import cost as dp_adam
from dpladder.learn.interface import Constants, Declaration, Hyper


def declare(learner: OneStep, hyper: Hyper, constants: Constants) -> Declaration:
    return dp_adam.declare(as_adam(learner), once(learner, hyper), constants)


def as_adam(learner: OneStep) -> Adam:
    return Adam(
        clip=learner.clip, clipping=learner.clipping, stability=learner.stability, bias=learner.bias
    )


def once(learner: OneStep, hyper: Hyper) -> Hyper:
    return Hyper(learner.eta, 1, hyper.mu)
