"""Private gradient descents on a linear head: with momentum (Panda et al., Algorithm 1), by Adam's
moments of gradients that are noised already (Mehta et al. 2023), and by DPAdamWOSM (Mohapatra et
al. 2022)."""

from __future__ import annotations

import torch
from torch import Tensor

from dpladder.config.learner_sections import Adam, AdamNoSecondMoment, Descent, FineTune
from dpladder.learn.curator import Given, Training
from dpladder.learn.descent import Update, UpdateFactory, descend_head, momentum
from dpladder.learn.interface import Constants, Hyper, Weights
from dpladder.learn.queries import Query


def train(
    given: Given,
    queries: tuple[Query, ...],
    learner: Descent | Adam | AdamNoSecondMoment,
    hyper: Hyper,
    constants: Constants,
) -> Training[Weights]:
    return descend_head(given, queries, learner, hyper, constants, update_of(learner))


def update_of(learner: Descent | Adam | AdamNoSecondMoment) -> UpdateFactory:
    match learner:
        case Descent():
            return momentum(learner)
        case Adam():
            return adam(learner)
    return first_moment(learner)


def adam(learner: Adam | FineTune) -> UpdateFactory:
    """Kingma & Ba 2015, Algorithm 1, on the noised mean gradient. The noise is divided by the size
    like the gradient: Mehta et al. do so in Eq. 3, and forget it in their Algorithm 1."""
    decay, decay_of_squares = learner.betas

    def begin(first: Tensor, _: float) -> Update:
        mean, square = torch.zeros_like(first), torch.zeros_like(first)
        step = 0

        def update(gradient: Tensor, _: Tensor) -> Tensor:
            nonlocal step
            step += 1
            mean.lerp_(gradient, 1.0 - decay)
            square.lerp_(gradient.square(), 1.0 - decay_of_squares)
            root = (square / (1.0 - decay_of_squares**step)).sqrt_()
            return mean / (1.0 - decay**step) / root.add_(learner.stability)

        return update

    return begin


def first_moment(learner: AdamNoSecondMoment) -> UpdateFactory:
    """Adam without second moment, and so without a rate to tune: where noise drowns the gradient,
    that settles at the noise's variance, which is public. The root of it, sigma C / n0, stands in
    its place from the first step on. Steps are alpha / (sigma C / n0 + xi) times Adam's corrected
    first moment (the form of the authors' code)."""

    def begin(first: Tensor, noise: float) -> Update:
        mean = torch.zeros_like(first)
        step = 0

        def update(gradient: Tensor, _: Tensor) -> Tensor:
            nonlocal step
            step += 1
            mean.lerp_(gradient, 1.0 - learner.beta)
            return mean / (1.0 - learner.beta**step) / (noise + learner.stability)

        return update

    return begin
