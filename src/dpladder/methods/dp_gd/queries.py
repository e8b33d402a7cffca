"""What DP-GD asks: a noised sum of clipped gradients at each step, and a look where a public sample
guides it."""

from __future__ import annotations

from dpladder.learn import descent_noise, guide
from dpladder.learn.interface import Constants, Hyper
from dpladder.methods.dp_gd.section import Descent

queries = guide.queries


def logit_noise(learner: Descent, hyper: Hyper, constants: Constants) -> float:
    """kappa of one training: the sd of the noise that it puts into a logit (docs/laws.md)."""
    steps = guide.hyper_after_look(learner, hyper)
    return descent_noise.logit_noise(learner, steps, constants, learner.momentum)
