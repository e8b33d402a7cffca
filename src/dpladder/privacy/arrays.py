"""Rows of float64, and how long they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
TINY = 1e-12  # a record of zeros has no direction


def lengths_of(rows: Floats) -> Floats:
    """The L2 length of each row: rows of shape (..., length) give (..., 1)."""
    lengths: Floats = np.sqrt((rows * rows).sum(axis=-1, keepdims=True))
    return lengths


def to_length(rows: Floats, length: float) -> Floats:
    """Each row scaled to this length. A row of zeros stays one: it has no direction. A row without
    a finite length becomes one."""
    norms = lengths_of(rows)
    return _scale_finite(rows, norms, length / np.maximum(norms, TINY))


def scale_into_ball(rows: NDArray[Any], radius: float, exact: bool) -> Floats:
    """Rows within a ball around 0, each as a function of itself alone; where `exact`, at its edge.

    Sensitivity: a row has length `radius` at most, whatever it was.
    """
    return to_length(np.asarray(rows, np.float64), radius) if exact else clip_rows(rows, radius)


def clip_rows(rows: NDArray[Any], radius: float) -> Floats:
    """Each row x as x * min(1, radius / ||x||), in float64 (Abadi et al. 2016, Algorithm 1); zeros
    where it has no finite length.

    Sensitivity: a row has length `radius` at most, whatever it was.

    Args:
        rows: of shape (..., length), of any kind of number.
        radius: L2, above 0.
    """
    rows = np.asarray(rows, np.float64)
    norms = lengths_of(rows)
    factors = np.divide(radius, norms, out=np.ones_like(norms), where=norms > radius)
    return _scale_finite(rows, norms, factors)


def _scale_finite(rows: Floats, norms: Floats, factors: Floats) -> Floats:
    """Rows times their factors; zeros where a norm is not finite, for what is not finite is no
    number times zero."""
    return np.multiply(rows, factors, out=np.zeros_like(rows), where=np.isfinite(norms))
