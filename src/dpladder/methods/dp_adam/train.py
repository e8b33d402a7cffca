"""Descent by Adam's moments of gradients that are noised already (Mehta et al. 2023)."""

from __future__ import annotations

import torch
from torch import Tensor

from dpladder.learn.curator import PublicInputs, Training
from dpladder.learn.descent import Update, UpdateFactory, descend_head
from dpladder.learn.interface import Constants, Hyper, Weights
from dpladder.learn.queries import Query
from dpladder.methods.dp_adam.section import Adam


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


def adam(betas: tuple[float, float], stability: float) -> UpdateFactory:
    """Kingma & Ba 2015, Algorithm 1, on the noised mean gradient. The noise is divided by the size
    like the gradient: Mehta et al. do so in Eq. 3, and forget it in their Algorithm 1.

    Args:
        betas: decay of the mean gradient and of the mean square, a step.
        stability: added to the root of the mean square.
    """
    decay, decay_of_squares = betas

    def begin(first: Tensor, _: float) -> Update:
        mean, square = torch.zeros_like(first), torch.zeros_like(first)
        step = 0

        def update(gradient: Tensor, _: Tensor) -> Tensor:
            nonlocal step
            step += 1
            mean.lerp_(gradient, 1.0 - decay)
            square.lerp_(gradient.square(), 1.0 - decay_of_squares)
            root = (square / (1.0 - decay_of_squares**step)).sqrt_()
            return mean / (1.0 - decay**step) / root.add_(stability)

        return update

    return begin
