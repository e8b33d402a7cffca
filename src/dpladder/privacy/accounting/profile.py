"""Privacy profiles: the smallest delta at each epsilon."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpladder.privacy.arrays import Floats

SAFE = 1 + 1e-9  # above what bisection and float64 leave open


@dataclass(frozen=True, eq=False)
class Curve:
    """A privacy profile, the larger of both directions.

    Attributes:
        epsilons: from 0 on, rising.
        deltas: the smallest delta at each, rounded up. Beyond the last one it is no larger than
            there.
    """

    epsilons: Floats
    deltas: Floats


def gaussian_profile(epsilons: Floats, candidate: float) -> Floats:
    """delta of mu-GDP at many epsilon >= 0 (Dong, Roth & Su 2019, Corollary 2.13).

    It is rounded down, so that a Gaussian is never thought to dominate what it does not.

    Args:
        epsilons: any shape.
        candidate: the mu.

    Returns:
        delta at each, in the same shape.
    """
    import numpy as np
    from scipy.special import log_ndtr, ndtr

    a = epsilons / candidate
    deltas = ndtr(-a + candidate / 2) - np.exp(epsilons + log_ndtr(-a - candidate / 2))
    below: Floats = np.maximum(deltas * (1 - 1e-9) - 1e-16, 0.0)
    return below
