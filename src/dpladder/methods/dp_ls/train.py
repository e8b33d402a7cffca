"""DP-LS: every class's ridge regression from noised second moments, each summed once (Mehta et
al.).

theta_j = (A_j + alpha G + lambda I)^-1 b_j. A_j and b_j sum x x^T and x over the class's own
records, and G sums x x^T over all. A record enters G and its own class alone, so each of the three
costs what one record moves it by. alpha and lambda are post-processing, so one release of the sums
answers any number of them. A record may be of several classes (dataset.labels): its weight is
shared out between them.

Findings have no A_j: theta_j = (G + lambda I)^-1 b_j, where b_j sums y x over the records of which
the finding is known. y is 1 where it is present and -1/(m - 1) where not, and those of one record
are cut to length 1 together (`WeighedSums`). A sigmoid that starts at 1/m lacks (1 - 1/m) y, so m
theta_j is the first Newton step of its logistic regression.

Classes are solved one at a time: no more than a few d x d matrices are held.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dpladder.config.label_sets import MANY
from dpladder.learn.interface import Constants, Hyper, Weights
from dpladder.learn.queries import Query, QueryCall
from dpladder.learn.second_order import class_by_class, class_sums, covariance
from dpladder.methods.dp_ls import LeastSquares
from dpladder.privacy.accounting import gdp

if TYPE_CHECKING:  # a plan asks for queries alone, and loads no torch
    from torch import Tensor

    from dpladder.learn.curator import PublicInputs, Training


def queries(learner: LeastSquares, hyper: Hyper, constants: Constants) -> tuple[Query, ...]:
    """G, and A_j and b_j of every class; of findings no A_j.

    Guarantee: mu-GDP for `hyper.mu`: what records are asked for are releases of one multiplier.
    Sums that trainings share (learner.shared) are charged by themselves. G is not asked for again
    where it alone is shared, and nothing is where `hyper.mu` is zero.
    """
    whole = learner.shared is not None and learner.shared.sums == "covariance"
    of_classes = class_sums(1.0, learner.radius, constants)
    sigma = gdp.sigma(hyper.mu, len(of_classes) + (not whole)) if hyper.mu else math.inf
    return (
        covariance(math.inf if whole else sigma, learner.radius),
        *class_sums(sigma, learner.radius, constants),
    )


def logit_noise(learner: LeastSquares, hyper: Hyper, constants: Constants) -> float:
    """kappa of one training: the sd of the noise that it puts into a logit.

    What the noise on the targets is divided by is the ridge, in the directions that hardly vary.
    """
    *_, targets = queries(learner, hyper, constants)
    length = min(constants.length, learner.radius)
    return length * targets.scale(constants) / constants.n0 / hyper.ridge


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
    import torch

    from dpladder.learn.moments import as_weights, eigen, solve, to_matrix

    together_query, *of_class = queries
    together = yield together_query.at()
    if constants.labels == MANY:
        # The first Newton step of each finding's logistic regression from its public bias: log-odds
        # of records as they are, of their public length.
        targets = yield of_class[0].at()
        values, vectors = eigen(to_matrix(together) / constants.n0, hyper.ridge)
        directions = (targets / constants.n0 @ vectors / values) @ vectors.T
        shorter = min(1.0, learner.radius / constants.length)
        return as_weights(max(constants.classes, 2) * shorter * directions)

    def head(label: int, sums: list[Tensor]) -> Tensor:
        moments, target = sums
        system = to_matrix(moments + learner.alpha * together)
        return solve(system / constants.n0, hyper.ridge, target / constants.n0)

    def ask(label: int) -> list[QueryCall]:
        return [query.at(label) for query in of_class]

    heads = yield from class_by_class(inputs, constants, ask, head)
    return as_weights(torch.stack(heads))
