"""The solutions behind DP-LS, one class at a time: no more than a few d x d matrices are held."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from dpladder.config.label_sets import MANY
from dpladder.learn.curator import PublicInputs, Training
from dpladder.learn.interface import Constants, Hyper, Weights
from dpladder.learn.moments import as_weights, eigen, solve, to_matrix
from dpladder.learn.queries import Query, QueryCall
from dpladder.learn.second_order import class_by_class
from dpladder.methods.dp_ls.section import LeastSquares


def train(
    inputs: PublicInputs,
    queries: tuple[Query, ...],
    learner: LeastSquares,
    hyper: Hyper,
    constants: Constants,
) -> Training[Weights]:
    """theta_j = (A_j + alpha G + lambda I)^-1 b_j for every class (Mehta et al. 2022).

    Guarantee: that of the noised sums. Solving is post-processing.
    """
    together_query, *of_class = queries
    together = yield together_query.at()
    if constants.labels == MANY:
        targets = yield of_class[0].at()
        return as_weights(_newton_step_of_findings(together, targets, hyper, learner, constants))

    def head(label: int, sums: list[Tensor]) -> Tensor:
        moments, target = sums
        system = to_matrix(moments + learner.alpha * together)
        return solve(system / constants.n0, hyper.ridge, target / constants.n0)

    def ask(label: int) -> list[QueryCall]:
        return [query.at(label) for query in of_class]

    heads = yield from class_by_class(inputs, constants, ask, head)
    return as_weights(torch.stack(heads))


def _newton_step_of_findings(
    together: Any, targets: Tensor, hyper: Hyper, learner: LeastSquares, constants: Constants
) -> Tensor:
    """The first Newton step of each finding's logistic regression from its public bias: log-odds of
    records as they are, of their public length."""
    values, vectors = eigen(to_matrix(together) / constants.n0, hyper.ridge)
    heads = (targets / constants.n0 @ vectors / values) @ vectors.T
    shorter = min(1.0, learner.radius / constants.length)
    return max(constants.classes, 2) * shorter * heads
