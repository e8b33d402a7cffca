"""Descent by Adam's moments of gradients that are noised already (Mehta et al. 2023)."""

from __future__ import annotations

from dpladder.learn.curator import PublicInputs, Training
from dpladder.learn.descent import adam, descend_head
from dpladder.learn.interface import Constants, Hyper, Weights
from dpladder.learn.queries import Query
from dpladder_papers.methods.dp_adam import Adam


def train(
    inputs: PublicInputs,
    queries: tuple[Query, ...],
    learner: Adam,
    hyper: Hyper,
    constants: Constants,
) -> Training[Weights]:
    """DP-Adam on a linear head (Mehta et al. 2023).

    Guarantee: that of its gradients' releases and, guided, of one noised count. Moments are
    post-processing.
    """
    return descend_head(
        inputs, queries, learner, hyper, constants, adam(learner.betas, learner.stability)
    )
