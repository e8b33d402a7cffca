"""The solutions behind DP-LS, one class at a time: no more than a few d x d matrices are held."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from dpladder.config.label_sets import MANY
from dpladder.learn.curator import PublicInputs, Training
from dpladder.learn.interface import Constants, Hyper, Weights
from dpladder.learn.moments import as_weights, eigen, solve, to_matrix
from dpladder.learn.queries import Query, QueryCall
from dpladder.learn.second_order import class_by_class
from dpladder.methods.dp_ls import statistics
from dpladder.methods.dp_ls.section import LeastSquares


def train(
    inputs: PublicInputs,
    queries: tuple[Query, ...],
    learner: LeastSquares,
    hyper: Hyper,
    constants: Constants,
) -> Training[Weights]:
    """theta_j = (A_j + alpha G + lambda I)^-1 b_j for every class (Mehta et al. 2022).

    Guarantee: that of the noised sums. Solving is post-processing. The sums are the training's own,
    shared ones (learner.statistics, learner.covariance), or both together.
    """
    by_name = {query.name: query for query in queries}
    together = (yield by_name["covariance"].at()) if "covariance" in by_name else None
    if inputs.covariance is not None:
        together = torch.from_numpy(inputs.covariance).to(inputs.device)
    if constants.labels == MANY:
        targets = yield by_name["targets"].at()
        return as_weights(_newton_step_of_findings(together, targets, hyper, learner, constants))
    together = _combined_sum(inputs, hyper, "covariance", None, together)

    def head(label: int, sums: list[Tensor]) -> Tensor:
        moments, target = (
            _combined_sum(inputs, hyper, name, label, total)
            for name, total in zip(("moments", "targets"), sums or (None, None), strict=True)
        )
        system = to_matrix(moments + learner.alpha * together)
        return solve(system / constants.n0, hyper.ridge, target / constants.n0)

    heads = yield from class_by_class(inputs, constants, _queries_of_class(queries), head)
    return as_weights(torch.stack(heads))


def _queries_of_class(queries: tuple[Query, ...]) -> Callable[[int], list[QueryCall]]:
    """A class's own sums."""
    return lambda label: [query.at(label) for query in queries if query.name != "covariance"]


def _newton_step_of_findings(
    together: Any, targets: Tensor, hyper: Hyper, learner: LeastSquares, constants: Constants
) -> Tensor:
    """The first Newton step of each finding's logistic regression from its public bias: log-odds of
    records as they are, of their public length."""
    values, vectors = eigen(to_matrix(together) / constants.n0, hyper.ridge)
    heads = (targets / constants.n0 @ vectors / values) @ vectors.T
    shorter = min(1.0, learner.radius / constants.length)
    return max(constants.classes, 2) * shorter * heads


def release_sums(
    inputs: PublicInputs, queries: tuple[Query, ...], constants: Constants, keep: statistics.Keep
) -> Training[None]:
    """All noised sums, for trainings to share; each is kept as soon as it is released."""
    covariance, *of_classes = queries
    keep("covariance", None, (yield covariance.at()).cpu().numpy())

    def conclude(label: int, sums: list[Tensor]) -> None:
        for query, total in zip(of_classes, sums, strict=True):
            keep(query.name, label, total.cpu().numpy())

    yield from class_by_class(inputs, constants, _queries_of_class(queries), conclude)


def _combined_sum(
    inputs: PublicInputs, hyper: Hyper, name: str, label: int | None, class_sum: Any
) -> Tensor:
    """A sum from all its releases. Two of it, with independent noise of variances
    proportional to mu^-2, weigh as mu^2: that has the least variance, proportional to (mu_own^2 +
    mu_shared^2)^-1, what one release at the mu of both together would have."""
    if inputs.statistics is None or (name == "covariance" and inputs.covariance is not None):
        assert class_sum is not None, "a training without shared statistics releases its own"
        return class_sum
    before = torch.from_numpy(statistics.read(inputs.statistics, name, label)).to(inputs.device)
    if class_sum is None:
        return before
    mu = statistics.mu_of(inputs.statistics)
    return before.lerp(class_sum, hyper.mu**2 / (hyper.mu**2 + mu**2))
