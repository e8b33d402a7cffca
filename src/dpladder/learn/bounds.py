"""How each gradient is kept within the bound that its sum's noise is for. Both ways look at the one
gradient's norm alone, so a record's contribution follows from its own row."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

from torch import Tensor, threshold

# Records are kept this far inside the bound, at the least. That pays for float32: the rounding of a
# record's own contribution, and that of the other records' sums, whose chunks shift when a
# neighbour comes. Rows lie in the order of secret keyed ids (data/prepare.py), so nobody can
# arrange records for these roundings to add up.
SLACK = 2.0**-10
ROOM = 2.0**14  # records for which that leaves room
MANY = 4  # times the declared records: for so many there is room, and more are summed in float64

LEAST = 2.0**-126  # a factor below is no float32, or one that is rounded by up to its own size

STABILITY = 0.01  # added to a norm, so that a small gradient stays small (Bu et al. 2023, AUTO-S)


def slack(records: float) -> float:
    """The share of the bound that is kept free for float32, for so many records.

    Roundings that hang on nothing but chance add up like the root of their number. Of 1.3 million
    records of one class a neighbour shifts the chunks of all, and moves their sum by up to 3e-3 of
    the bound.

    Args:
        records: how many, by declaration: the data's own number must not show here.
    """
    return SLACK * max(1.0, math.sqrt(records / ROOM))


Scale = Callable[[Tensor, float], Tensor]
"""From gradients' norms and a bound to factors that keep each gradient within the bound. A gradient
that float32 cannot scale back counts as nothing."""


def clip(norms: Tensor, bound: float) -> Tensor:
    """Factors that cut gradients to the bound (Abadi et al. 2016, Algorithm 1).

    A factor is min(1, bound / |g|), or 0 where that is too small for float32.

    Args:
        norms: L2 norms |g|, one for each gradient.
        bound: the largest length that a gradient keeps.

    Returns:
        A factor for each gradient, in the shape of `norms`.
    """
    return threshold((bound / norms).clamp(max=1.0), LEAST, 0.0)


def normalise(norms: Tensor, bound: float) -> Tensor:
    """Factors of automatic clipping: g / (|g| + gamma), with `bound` for 1, is shorter than the
    bound whatever the gradient (Bu et al. 2023, Eq. 5).

    Args:
        norms: L2 norms |g|, one for each gradient.
        bound: the length that no gradient reaches.

    Returns:
        A factor for each gradient, in the shape of `norms`.
    """
    return threshold(bound / (norms + STABILITY), LEAST, 0.0)


def scale_of(clipping: Literal["flat", "automatic"]) -> Scale:
    """The factors that `learner.clipping` names."""
    return normalise if clipping == "automatic" else clip
