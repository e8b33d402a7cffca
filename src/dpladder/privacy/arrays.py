"""Rows of float64: how long they are, scaled, clipped, and mapped to what a training sees.

`xp` is the library that computes, numpy or torch: `export` writes what follows into a model's own
file, whose rows are tensors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
TINY = 1e-12  # a record of zeros has no direction


def lengths_of(rows: Any, xp: Any = np) -> Any:
    """The L2 length of each row: rows of shape (..., length) give (..., 1)."""
    return xp.sqrt((rows * rows).sum(-1, keepdims=True))


def to_length(rows: Any, length: float, xp: Any = np) -> Any:
    """Each row scaled to this length. A row of zeros stays one: it has no direction. A row without
    a finite length becomes one."""
    norms = lengths_of(rows, xp)
    return _scale_finite(rows, norms, length / norms.clip(TINY), xp)


def scale_into_ball(rows: Any, radius: float, exact: bool, xp: Any = np) -> Any:
    """Rows within a ball around 0, each as a function of itself alone; where `exact`, at its edge.

    Sensitivity: a row has length `radius` at most, whatever it was.
    """
    rows = xp.asarray(rows, dtype=xp.float64)
    return to_length(rows, radius, xp) if exact else clip_rows(rows, radius, xp)


def clip_rows(rows: Any, radius: float, xp: Any = np) -> Any:
    """Each row x as x * min(1, radius / ||x||), in float64 (Abadi et al. 2016, Algorithm 1); zeros
    where it has no finite length.

    Sensitivity: a row has length `radius` at most, whatever it was.

    Args:
        rows: of shape (..., length), of any kind of number.
        radius: L2, above 0.
        xp: numpy or torch.
    """
    rows = xp.asarray(rows, dtype=xp.float64)
    norms = lengths_of(rows, xp)
    return _scale_finite(rows, norms, (radius / norms.clip(TINY)).clip(max=1.0), xp)


def _scale_finite(rows: Any, norms: Any, factors: Any, xp: Any) -> Any:
    """Rows times their factors; zeros where a norm is not finite, for what is not finite is no
    number times zero."""
    finite = xp.isfinite(norms)
    return xp.where(finite, rows, 0.0) * xp.where(finite, factors, 0.0)


def with_curves(rows: Any, curves: Sequence[tuple[Any, ...]], xp: Any = np) -> Any:
    """Rows with curves beside their numbers: hat functions on knots, and products of two bases.

    Between two knots one hat falls from 1 to 0 and the next one rises, so a weighted sum of a
    column's hats is any piecewise linear curve. Beyond its outer knots a curve is flat.

    Args:
        rows: float64 of shape (..., length).
        curves: a list of bases for each block that is appended. A basis is the place of a number
            and its knots, or the place of the first of some levels and their count; a block of two
            has all products.
        xp: numpy or torch.
    """
    blocks = [rows]
    for bases in curves:
        block = _basis(rows, bases[0], xp)
        for basis in bases[1:]:
            products = block[..., :, None] * _basis(rows, basis, xp)[..., None, :]
            block = products.reshape(*products.shape[:-2], -1)
        blocks.append(block)
    return xp.concatenate(blocks, -1)


def curves_width(curves: Sequence[tuple[Any, ...]]) -> int:
    """How many numbers `with_curves` appends to a row."""
    sizes = [[n if isinstance(n, int) else len(n) for _, n in bases] for bases in curves]
    return sum(math.prod(size) for size in sizes)


def _basis(rows: Any, basis: tuple[int, Any], xp: Any) -> Any:
    """The hats of the number at a place, one for each knot; or levels as they are."""
    place, knots = basis
    if isinstance(knots, int):
        return rows[..., place : place + knots]
    ends = xp.asarray(knots, dtype=xp.float64)
    x = rows[..., place : place + 1]
    ramps = ((x - ends[:-1]) / (ends[1:] - ends[:-1])).clip(0.0, 1.0)
    one = xp.ones_like(x)
    return xp.concatenate([one, ramps], -1) - xp.concatenate([ramps, 0.0 * one], -1)


def map_rows(
    rows: Any,
    mean: Any,
    radius: float | None,
    exact: bool,
    length: float | None,
    constant: float,
    xp: Any = np,
) -> Any:
    """Rows as a training sees them, each by itself: scaled into a ball, less a mean, at one length,
    with a constant feature in the mean's place (`Map` in data/centre.py says why).

    Args:
        rows: float64 of shape (..., length).
        mean: that rows lose; None where they lose none.
        radius, exact: of the ball; without a radius rows stay as they are.
        length: that rows are scaled to at last; None leaves them as they are.
        constant: the share of a centred row's length that is a constant feature's.
        xp: numpy or torch.
    """
    if radius is not None:
        rows = scale_into_ball(rows, radius, exact, xp)
    if mean is not None:
        rows = rows - mean
    if length is not None:
        rows = to_length(rows, length, xp)
    if mean is not None and constant > 0:
        whole = lengths_of(rows, xp) if length is None else xp.full_like(rows[..., :1], length)
        rows = xp.concatenate([rows * (1 - constant**2) ** 0.5, constant * whole], -1)
    return rows
