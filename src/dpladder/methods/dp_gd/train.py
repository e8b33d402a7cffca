"""Private gradient descent with momentum on a linear head (Panda et al., Algorithm 1)."""

from __future__ import annotations

from dpladder.learn.curator import PublicInputs, Training
from dpladder.learn.descent import descend_head, momentum
from dpladder.learn.interface import Constants, Hyper, Weights
from dpladder.learn.queries import Query
from dpladder.methods.dp_gd.section import Descent


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
    return descend_head(inputs, queries, learner, hyper, constants, momentum(learner.momentum))
