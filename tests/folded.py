"""What private selection really costs when somebody ranks runs as badly as is known: a lower bound
beside the proved one.

A run puts out N(0, 1) or N(mu, 1), told by its cell. Ranked by the value itself the best of K runs
costs far less than the bound; the worst ranking found by trying all permutations of few cells is
folded: the middle ascending, above it the lowest values, and above these the highest. With cells in
such an order, F the sum of their probabilities up to each, and f the generating function of K, the
best run lies in cell i with probability f(F_i) - f(F_(i-1)): exact, and what is told of the cell
alone is a post-processing of the search.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.stats import norm

from dpladder.privacy.accounting.selection import Runs, continuation_odds

Floats = NDArray[np.float64]
CELLS = 4000
EDGES = np.concatenate([[-np.inf], np.linspace(-9.0, 14.0, CELLS - 1), [np.inf]])
MIDDLES = (EDGES[1:] + EDGES[:-1]) / 2


def generating(x: Floats, runs: Runs) -> Floats:
    """f(x) = E x^K."""
    if runs.shape == math.inf:
        found: Floats = np.exp(runs.mean * (x - 1))
        return found
    gamma, eta = 1 / (1 + continuation_odds(runs)), runs.shape
    rest = 1 - (1 - gamma) * x
    return np.log(rest) / math.log(gamma) if eta == 0 else (rest**-eta - 1) / (gamma**-eta - 1)


def folded(low: float, high: float) -> NDArray[np.int64]:
    """Cells from the worst rank to the best."""
    tier = np.where(high <= MIDDLES, 2, np.where(low >= MIDDLES, 1, 0))
    return np.lexsort((MIDDLES, tier))


def best_of(runs: Runs, order: NDArray[np.int64], mean: float) -> Floats:
    """The probability of each cell of the best run, in this order of ranks, and of no run at
    all."""
    below = np.concatenate([[0.0], np.cumsum(np.diff(norm.cdf(EDGES, mean))[order])])
    known = generating(np.minimum(below, 1.0), runs)
    return np.concatenate([np.diff(known), [known[0]]])


def cost(mu: float, runs: Runs, order: NDArray[np.int64], delta: float) -> float:
    """Epsilon at delta of the best run's cell, the worse of both directions."""
    p, q = best_of(runs, order, mu), best_of(runs, order, 0.0)

    def revealed(epsilon: float) -> float:
        both = (np.maximum(a - math.exp(epsilon) * b, 0.0).sum() for a, b in ((p, q), (q, p)))
        return float(max(both))

    low, high = 0.0, 60.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if revealed(middle) > delta else (low, middle)
    return low


def by_value(mu: float, runs: Runs, delta: float) -> float:
    return cost(mu, runs, np.arange(CELLS), delta)


def worst_folded(mu: float, runs: Runs, delta: float) -> tuple[float, float, float]:
    """The dearest folded ranking, with where it folds."""

    def cheap(at: Floats) -> float:
        return -cost(mu, runs, folded(*np.sort(at)), delta)

    starts = [(low, high) for low in (-2.0, -1.0, 0.0) for high in (mu, mu + 1.5, mu + 3.0)]
    start = min(starts, key=partial(lambda at: cheap(np.array(at))))
    found = minimize(cheap, start, method="Nelder-Mead", options={"xatol": 5e-3, "fatol": 1e-5})
    low, high = np.sort(found.x)
    return -float(found.fun), float(low), float(high)
