"""A private feature mean (Sun et al. 2023): a noised sum of records in a public ball, over the public nominal size."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

BLOCK = 8192  # rows held in float64 at a time


class Noise(Protocol):
    """The part of the meter that this mechanism draws from."""

    def gaussian(self, name: str, scale: float, shape: tuple[int, ...]) -> NDArray[np.float64]: ...


def noised_mean(
    features: NDArray[Any], labels: NDArray[Any], radius: float, n0: int, meter: Noise, scale: float
) -> NDArray[np.float64]:
    """(sum over valid records of clip(x, radius) + N(0, scale² I)) / n0.

    One record moves the sum by at most `radius`, a unit of c records by c * radius (under replace_one twice that), and
    `scale` is the caller's, as reserved: sensitivity / mu.
    """
    total = np.zeros(features.shape[1])
    for block in _blocks(features):
        total += clip_rows(features[block], radius)[np.asarray(labels[block]) >= 0].sum(axis=0)
    return (total + meter.gaussian("mean", scale, total.shape)) / n0


def apply_mean(features: NDArray[Any], mean: NDArray[np.float64], radius: float) -> NDArray[np.float32]:
    """The same public map for train and test rows: into the ball, minus the released mean, into the ball again."""
    centred = np.empty(features.shape, np.float32)
    for block in _blocks(features):
        centred[block] = clip_rows(clip_rows(features[block], radius) - mean, radius)
    return centred


def _blocks(features: NDArray[Any]) -> list[slice]:
    return [slice(start, start + BLOCK) for start in range(0, len(features), BLOCK)]


def clip_rows(rows: NDArray[Any], radius: float) -> NDArray[np.float64]:
    """Each row x as x * min(1, radius / ||x||), in float64."""
    rows = np.asarray(rows, np.float64)
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    factors = np.divide(radius, norms, out=np.ones_like(norms), where=norms > radius)
    return rows * factors[:, None]
