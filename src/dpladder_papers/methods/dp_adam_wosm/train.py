"""DPAdamWOSM (Mohapatra et al. 2022): Adam's first moment, over what is public of the second."""

from __future__ import annotations

import torch
from torch import Tensor

from dpladder.learn.curator import PublicInputs, Training
from dpladder.learn.descent import Update, UpdateFactory, descend_head
from dpladder.learn.interface import Constants, Hyper, Weights
from dpladder.learn.queries import Query
from dpladder_papers.methods.dp_adam_wosm import AdamNoSecondMoment


def train(
    inputs: PublicInputs,
    queries: tuple[Query, ...],
    learner: AdamNoSecondMoment,
    hyper: Hyper,
    constants: Constants,
) -> Training[Weights]:
    """DPAdamWOSM on a linear head (Mohapatra et al. 2022).

    Guarantee: that of its gradients' releases and, guided, of one noised count.
    """
    return descend_head(inputs, queries, learner, hyper, constants, first_moment(learner))


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
