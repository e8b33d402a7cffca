"""How each record's contribution is kept within the bound that its sum's noise is for. What all
kinds of queries add up passes through here, and none clips by itself.

A contribution is a vector, or a product of vectors that are each kept within a bound of their own.
Its factor (`clip`, `normalise`) follows from its norm alone, so it follows from the record's own
row. Guarantee: a factor is a finite number, and it is 0 where the norm is not finite, whatever
made it so. What it multiplies is made finite too (`scale_rows`, `without_infinities`), for what is
not finite is no number times zero. So what is added is finite and no longer than the bound, up to a
relative rounding of 2^-24, which the slack pays for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

# Records are kept this far inside the bound, at the least. That pays for float32: the rounding of a
# record's own contribution, and that of the other records' sums, whose chunks shift when a
# neighbour comes. Rows lie in the order of secret keyed ids (data/prepare.py), so nobody can
# arrange records for these roundings to add up.
SLACK = 2.0**-10
ROOM = 2.0**14  # records for which that leaves room
# times the declared records: for so many there is room, and more are summed in float64
ROOM_FACTOR = 4

# a factor below is no float32, or one that is rounded by up to its own size
SMALLEST_FACTOR = 2.0**-126

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

    A factor is min(1, bound / |g|), or 0 where that is too small for float32, or no number.

    Args:
        norms: L2 norms |g|, one for each gradient.
        bound: the largest length that a gradient keeps.

    Returns:
        A factor for each gradient, in the shape of `norms`.
    """
    return _zero_unless_usable((bound / norms).clamp_(max=1.0))


def normalise(norms: Tensor, bound: float) -> Tensor:
    """Factors of automatic clipping: g / (|g| + gamma), with `bound` for 1, is shorter than the
    bound whatever the gradient (Bu et al. 2023, Eq. 5).

    Args:
        norms: L2 norms |g|, one for each gradient.
        bound: the length that no gradient reaches.

    Returns:
        A factor for each gradient, in the shape of `norms`.
    """
    return _zero_unless_usable(bound / (norms + STABILITY))


def _zero_unless_usable(factors: Tensor) -> Tensor:
    """Factors, in place: 0 where float32 cannot scale by one, or where one is no finite number."""
    return torch.threshold_(factors.nan_to_num_(0.0, 0.0, 0.0), SMALLEST_FACTOR, 0.0)


def scale_rows(rows: Tensor, factors: Tensor, out: Tensor | None = None) -> Tensor:
    """Rows times their factors. A row that is not finite has a factor of 0, and becomes zeros.

    Args:
        rows: of any shape.
        factors: of `clip` or `normalise`, that broadcast to it.
        out: where the product goes, such as `rows` itself.
    """
    return torch.mul(rows, factors, out=out).nan_to_num_(0.0, 0.0, 0.0)


def without_infinities(rows: Tensor) -> Tensor:
    """Rows that a product may add up by their factors: a row that is not finite has a factor of 0,
    and must not make it NaN."""
    return rows.nan_to_num(0.0, 0.0, 0.0)


def keep_within(rows: Tensor, bound: float, counted: Tensor) -> Tensor:
    """Vectors, each cut to the bound; zeros where one does not count, or where float64 does not
    tell its length.

    Sensitivity: a row has length `bound` at most, and is finite, whatever it was.

    Args:
        rows: (records, numbers), of any kind of number.
        bound: the largest L2 length of a row.
        counted: (records,), whether each counts.

    Returns:
        float64 of the same shape.
    """
    rows = rows.double()
    return scale_rows(rows, (clip(rows.norm(dim=1), bound) * counted)[:, None])


def scale_of(clipping: Literal["flat", "automatic"]) -> Scale:
    """The factors that `learner.clipping` names."""
    return normalise if clipping == "automatic" else clip
