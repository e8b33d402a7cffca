"""Noised tables that agree with each other, and 95 % intervals of what follows from them.

An interval covers two chances: the noise, and which records happened to be in the test. It holds
all values that a two-sided test at 5 % would not refuse (Wilson 1927), so it stays within what is
possible near 0 and 1, and where there are few records. Everything here is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpladder.config.detectability import COUNT_SDS
from dpladder.privacy.accounting.rounding import SDS_OF_95_PERCENT, NoisedFigure

Counts = NDArray[np.float64]
GRID = np.sin(np.linspace(0.0, math.pi / 2, 2001)) ** 2  # of shares, finest near 0 and 1


@dataclass(frozen=True, eq=False)
class Total:
    """A weighed sum of noised cells.

    Attributes:
        value: the sum.
        weights: of each cell of all tables, in a row.
    """

    value: float
    weights: Counts

    def __add__(self, other: Total) -> Total:
        return Total(self.value + other.value, self.weights + other.weights)

    def __rmul__(self, factor: float) -> Total:
        return Total(factor * self.value, factor * self.weights)

    def __sub__(self, other: Total) -> Total:
        return self + (-1.0) * other


class NoisedTables:
    """Tables of counts with independent noise, brought to agree on what several of them count.

    True counts agree. Of all counts that agree the nearest ones are taken, each cell weighed by one
    over the variance of its noise: the best linear unbiased ones (Hay et al. 2010, section 4).

    Args:
        tables: cells with the deviation of their noise, by what they hold.
        sums: of each table, names and weights of sums of its cells. Sums of one name are the same
            count.
    """

    def __init__(
        self,
        tables: Mapping[str, tuple[Counts, float]],
        sums: Mapping[str, Iterable[tuple[str, Counts]]] | None = None,
    ) -> None:
        self.bought = dict(tables)
        self._start, self._cells, length = {}, {}, 0
        for holds, (cells, _) in tables.items():
            self._start[holds], length = length, length + cells.size
        self._length = length
        noise = [np.full(cells.size, sd**2) for cells, sd in tables.values()]
        self._variance = np.concatenate([np.empty(0), *noise])
        values = np.concatenate([np.empty(0), *(np.ravel(cells) for cells, _ in tables.values())])
        first: dict[str, Counts] = {}
        apart = []
        for holds, pairs in (sums or {}).items():
            for name, weights in pairs:
                row = self._row(holds, weights)
                if name in first:
                    apart.append(row - first[name])
                first.setdefault(name, row)
        self._apart = np.array(apart).reshape(len(apart), length)
        moved = self._variance * self._apart  # of what cells differ by, with each cell
        self._inverse = np.linalg.pinv(moved @ self._apart.T, rcond=1e-9, hermitian=True)
        values = values - moved.T @ (self._inverse @ (self._apart @ values))
        self.values = values
        for holds, (cells, _) in tables.items():
            start = self._start[holds]
            self._cells[holds] = values[start : start + cells.size].reshape(cells.shape)

    def __contains__(self, holds: str) -> bool:
        return holds in self._cells

    def __getitem__(self, holds: str) -> Counts:
        """The cells of a table, which agree with those of all others."""
        return self._cells[holds]

    def total(self, holds: str, weights: Counts) -> Total:
        """A weighed sum of a table's cells; `weights` are of its shape."""
        row = self._row(holds, weights)
        return Total(float(row @ self.values), row)

    def at(self, holds: str, place: object) -> Total:
        """The sum of the cells at a place: an index of the table."""
        weights = np.zeros(self._cells[holds].shape)
        weights[place] = 1.0  # type: ignore[call-overload]
        return self.total(holds, weights)

    def noise(self, one: Total, other: Total | None = None) -> float:
        """The covariance that the noise gives two sums; of one, its variance."""
        with_it = self._variance * (one if other is None else other).weights
        shared = self._apart @ (self._variance * one.weights)
        value = one.weights @ with_it - shared @ self._inverse @ (self._apart @ with_it)
        return float(value) if other is not None else max(float(value), 0.0)

    def sampling(self, one: Total) -> float:
        """At most the variance that a sum has by which records are in the test, each of which is in
        one cell, or shared out among several."""
        return float(np.maximum(self.values, 0.0) @ one.weights**2)

    def _row(self, holds: str, weights: Counts) -> Counts:
        row = np.zeros(self._length)
        start = self._start[holds]
        row[start : start + weights.size] = weights.ravel()
        return row


def share(
    tables: NoisedTables,
    part: Total,
    whole: Total,
    spread: Callable[[Counts], Counts] | None = None,
    however_few: bool = False,
) -> NoisedFigure | None:
    """A share of records, or a mean of numbers from 0 to 1.

    The interval holds each share a at which part - a whole lies within 1.96 deviations of 0: of
    its noise, and of `whole` records that each have a variance of `spread`.

    Args:
        tables: the counts.
        part, whole: sums of them.
        spread: the variance of one record's number, where their mean is a. None: a (1 - a), the
            most there is.
        however_few: whether a share is made of any number of records.

    Returns:
        The share; None where noise hides whether there are any records.
    """
    noise = [tables.noise(part), tables.noise(part, whole), tables.noise(whole)]
    if not however_few and whole.value <= COUNT_SDS * math.sqrt(noise[2]):
        return None
    records = max(whole.value, 1.0 if however_few else 1e-9)
    value = min(max(part.value / records, 0.0), 1.0)
    inside = value * max(whole.value, 0.0)  # no more than all records, and no fewer than none

    def deviations(grid: Counts) -> Counts:
        each = grid * (1.0 - grid) if spread is None else spread(grid)
        variance = noise[0] - 2.0 * grid * noise[1] + grid**2 * noise[2] + each * records
        return (inside - grid * max(whole.value, 0.0)) / np.sqrt(np.maximum(variance, 1e-300))

    sd = math.sqrt(max(noise[0] - 2 * value * noise[1] + value**2 * noise[2], 0.0)) / records
    return NoisedFigure(value, sd, *accepted(deviations, GRID))


def accepted(deviations: Callable[[Counts], Counts], grid: Counts) -> tuple[float, float]:
    """The smallest and largest value that is not refused at 5 %, between those of a grid.

    Args:
        deviations: of each value, by how many deviations the data speak against it.
        grid: in rising order, to which the answer is cut.
    """
    within = SDS_OF_95_PERCENT - np.abs(deviations(grid))
    inside = np.flatnonzero(within >= 0.0)
    if not len(inside):  # what is nearest to possible
        nearest = float(grid[int(np.argmax(within))])
        return nearest, nearest
    ends = []
    for place, step in ((int(inside[0]), -1), (int(inside[-1]), 1)):
        end = float(grid[place])
        if 0 <= place + step < len(grid):
            part = within[place] / (within[place] - within[place + step])
            end += float(part * (grid[place + step] - grid[place]))
        ends.append(end)
    return ends[0], ends[1]


def around(value: float, noise: float, sampling: float, least: float, most: float) -> NoisedFigure:
    """A figure whose chances are Gaussian, cut to what is possible.

    Args:
        value: the figure.
        noise: its variance over the noise.
        sampling: its variance over which records are in the test.
        least, most: of what is possible.
    """
    half = SDS_OF_95_PERCENT * math.sqrt(noise + sampling)
    low, high = (min(max(value + side * half, least), most) for side in (-1, 1))
    return NoisedFigure(min(max(value, least), most), math.sqrt(noise), low, high)


def mean_of(
    figures: Sequence[NoisedFigure | None], same_records: bool = False
) -> NoisedFigure | None:
    """The mean of figures with independent noise; None where one of them cannot be told.

    Its interval follows from theirs (Donner & Zou 2012, the method of variance estimates recovery).

    Args:
        figures: with intervals.
        same_records: whether they are about the same records. Then chance may move all of them
            together, and their deviations over sampling add up.
    """
    known = [one for one in figures if one is not None]
    if len(known) < len(figures) or not known:
        return None
    value = math.fsum(one.value for one in known) / len(known)
    sd = math.hypot(*(one.sd for one in known)) / len(known)
    ends = []
    for side in (-1, 1):
        reach = [abs(one.interval[side > 0] - one.value) for one in known]
        noise = [
            min(SDS_OF_95_PERCENT * one.sd, far) for one, far in zip(known, reach, strict=True)
        ]
        chance = [math.sqrt(far**2 - near**2) for far, near in zip(reach, noise, strict=True)]
        sampling = math.fsum(chance) if same_records else math.hypot(*chance)
        ends.append(value + side * math.hypot(*noise, sampling) / len(known))
    return NoisedFigure(value, sd, *ends)
