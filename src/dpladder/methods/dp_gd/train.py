"""Private gradient descent with momentum on a linear head (Panda et al., Algorithm 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpladder.learn import descent_noise, guide
from dpladder.learn.interface import Constants, Hyper, Weights
from dpladder.learn.queries import Query
from dpladder.methods.dp_gd import Descent

if TYPE_CHECKING:  # a plan asks for queries alone, and loads no torch
    from dpladder.learn.curator import PublicInputs, Training


def logit_noise(learner: Descent, hyper: Hyper, constants: Constants) -> float:
    """kappa of one training: the sd of the noise that it puts into a logit (docs/laws.md)."""
    steps = guide.hyper_after_look(learner, hyper)
    return descent_noise.logit_noise(learner, steps, constants, learner.momentum)


def train(
    inputs: PublicInputs,
    queries: tuple[Query, ...],
    learner: Descent,
    hyper: Hyper,
    constants: Constants,
) -> Training[Weights]:
    """Full-batch descent with momentum on a linear head (Panda et al. 2024, Algorithm 1).

    Guarantee: mu-GDP for `hyper.mu`, by `hyper.steps` noised sums of clipped gradients.
    """
    from dpladder.learn.descent import descend_head, momentum

    return descend_head(inputs, queries, learner, hyper, constants, momentum(learner.momentum))
