"""How far off predictions of a number are: a first look says what to count, and the figures that
follow.

Errors may be small against the public range, and noise is in proportion to the largest error that
is counted. So a look buys one count a record of how large its error is, on a geometric grid, and
one of where its number lies in the range. The largest error follows from the noised look.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpladder.config.detectability import COUNT_SDS
from dpladder.learn.measures.intervals import (
    Counts,
    NoisedTables,
    Total,
    accepted,
    around,
)
from dpladder.privacy.accounting.rounding import SDS_OF_95_PERCENT, NoisedFigure

ERROR_CELLS = 40  # of errors: below EDGES[0], and between each two
EDGES = 2.0 ** (np.arange(1 - ERROR_CELLS, 1) / 2)  # as shares of the range, up to all of it
TARGET_CELLS = 40  # of numbers, equally wide
TAIL_SDS = 3.5  # deviations that the records beyond a cut must count, to be seen
LEAST_CUT = 4.5  # times the median error over .67, at least; 7e-6 of a Gaussian lies beyond
MOST_CUT = 32.0  # where noise allows it, for errors with long tails
NOISE_OF_CUT = 0.03  # of the RMSE, which a larger cut may cost
CLEAR_SDS = 3.0  # of noise, that a mean must be above: at 2, one draw in twenty told noise alone
QUARTILES = 4.0  # of their distance, either side of the median: numbers beyond count as there
MIDDLE = 0.6745  # deviations of a Gaussian that half of it lies within


@dataclass(frozen=True)
class NumberScale:
    """What counts of a number are in units of, by public facts and a noised look.

    Attributes:
        length: of the range.
        cut: the largest error that is counted, as a share of the range.
        centre: of the part that numbers lie in, as a place in the range from 0 to 1.
        half: of that part's length, as a share of the range.
        of_squares: the variance of a squared error, in units of its mean's square, as the look has
            it; None where nothing was looked at.
        of_errors: likewise of an absolute error.
        of_places: likewise of a number's squared distance from the mean.
        deviation: of numbers about their mean, as a share of the range, with its interval.
    """

    length: float
    cut: float
    centre: float = 0.5
    half: float = 0.5
    of_squares: float | None = None
    of_errors: float | None = None
    of_places: float | None = None
    deviation: NoisedFigure | None = None

    @property
    def largest(self) -> float:
        """The largest error that is counted, in the number's own units."""
        return self.cut * self.length

    def errors(self, errors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Errors, as shares of the range, in units of the largest one: 0 to 1."""
        return np.clip(errors / self.cut, 0.0, 1.0)

    def place(self, places: NDArray[np.float64]) -> NDArray[np.float64]:
        """Places in the range, in the part that numbers lie in: 0 to 1."""
        return np.clip((places - self.centre) / (2.0 * self.half) + 0.5, 0.0, 1.0)

    @staticmethod
    def cells(errors: NDArray[np.float64], places: NDArray[np.float64]) -> NDArray[np.int64]:
        """The cell of the look that each error and each place is in: (records, 2)."""
        size = np.searchsorted(EDGES[:-1], errors, side="right")
        of_range = np.clip((places * TARGET_CELLS).astype(np.int64), 0, TARGET_CELLS - 1)
        return np.stack([size, of_range], axis=1)


def scale_of(
    bought: Mapping[str, tuple[Counts, float]], limits: tuple[float, float], error: float | None
) -> NumberScale:
    """What a test counts numbers in units of.

    Args:
        bought: what it released, its look among them.
        limits: the public range.
        error: the largest error that is counted, where the config says one.

    Returns:
        From the look; without one, or where noise hides all of it, of the whole range.
    """
    length = limits[1] - limits[0]
    if "sizes" not in bought:
        return NumberScale(length, min((error or length) / length, 1.0))
    look, sd = bought["sizes"]
    scale = _scale_of_errors(look[0], sd, length)
    hidden = look[1].sum() <= _seen(sd, look.shape[1])
    return scale if hidden else _with_places(scale, look[1], sd)


def _seen(sd: float, cells: int) -> float:
    return COUNT_SDS * sd * math.sqrt(cells)


def _scale_of_errors(look: Counts, sd: float, length: float) -> NumberScale:
    """The cut from noised counts of errors by their size.

    It lies above the last cell that has records beyond doubt, and at several deviations of a
    Gaussian with this median; at more of them where that costs no noise.
    """
    total = float(look.sum())
    if total <= _seen(sd, len(look)):
        return NumberScale(length, 1.0)
    below = np.cumsum(look)
    middle = int(np.argmax(below >= total / 2.0))
    median = float(EDGES[middle]) / 2.0**0.25
    most = math.sqrt(2.0 * NOISE_OF_CUT * total / sd) if sd else MOST_CUT
    typical = min(max(most, LEAST_CUT), MOST_CUT) * median / MIDDLE
    tail = np.cumsum(look[::-1])[::-1]
    seen = np.flatnonzero(tail > TAIL_SDS * sd * np.sqrt(np.arange(len(look), 0, -1)))
    last = float(EDGES[min(int(seen[-1]) + 1, len(EDGES) - 1)]) if len(seen) else 1.0
    cut = min(max(typical, last), 1.0)
    sizes = np.minimum(EDGES / 2.0**0.25, cut)  # the middles of cells
    first, second, fourth = (float(look @ sizes**power) / total for power in (1, 2, 4))
    if min(first, second) <= 0.0:
        return NumberScale(length, cut)
    return NumberScale(
        length,
        cut,
        of_squares=max(fourth / second**2 - 1.0, 2.0),  # a Gaussian's, at least
        of_errors=max(second / first**2 - 1.0, 0.57),
    )


def _with_places(scale: NumberScale, look: Counts, sd: float) -> NumberScale:
    """The scale, with the part of the range that numbers lie in."""
    cells = len(look)
    below = np.cumsum(look)
    quarter, middle, most = (
        (int(np.argmax(below >= part * below[-1])) + 0.5) / cells for part in (0.25, 0.5, 0.75)
    )
    half = QUARTILES * max(most - quarter, 1.0 / cells)
    first = max(round((middle - half) * cells), 0)
    last = min(round((middle + half) * cells), cells)
    middles = (np.arange(cells) + 0.5) / cells
    inside = np.arange(first, last)
    counts, x = look[inside], middles[inside]
    total = float(counts.sum())
    centre, half = (first + last) / 2 / cells, (last - first) / 2 / cells
    mean = float(counts @ x) / total
    square = float(counts @ (x - mean) ** 2) / total
    fourth = float(np.maximum(counts, 0.0) @ (x - mean) ** 4) / total
    # the mean is noised too, and the noise is that of the least favourable one that it may be
    reach = 3.0 * sd * math.sqrt(float(((x - mean) ** 2).sum())) / total
    means = np.array([[mean - reach], [mean], [mean + reach]])
    noise = sd**2 * float((((x - means) ** 2 - square) ** 2).sum(1).max()) / total**2
    # where in its cell a number lies is not known: a spread of one cell says nothing
    least = max(COUNT_SDS * math.sqrt(noise), (1.5 / cells) ** 2)
    if square <= least:
        return replace(scale, centre=centre, half=half)
    of_places = min(max(fourth / square**2 - 1.0, 0.1), 8.0)
    deviation = _root(_shown_above(least, square, noise, of_places * square**2 / total), 1.0)
    return replace(scale, centre=centre, half=half, of_places=of_places, deviation=deviation)


def _shown_above(least: float, value: float, noise: float, sampling: float) -> NoisedFigure:
    """A figure that is shown only above `least`, which leaves out the draws that fell short. So its
    low end is the least truth of which one shown draw in forty lies as high (Lee et al. 2016)."""
    sd = math.sqrt(2.0 * (noise + sampling))
    truths = np.linspace(max(least - 25.0 * sd, 0.0), value, 2001)  # where tails are above 0
    tail = np.vectorize(math.erfc)
    chances = tail((value - truths) / sd) / tail((least - truths) / sd)
    low = float(truths[int(np.argmax(chances >= 0.025))])
    return replace(around(value, noise, sampling, 0.0, 1.0), low=low)


def _root(square: NoisedFigure, unit: float) -> NoisedFigure:
    """The root of a mean square, in a unit."""
    low, high = (unit * math.sqrt(max(end, 0.0)) for end in square.interval)
    root = math.sqrt(square.value)
    return NoisedFigure(unit * root, unit * square.sd / 2.0 / root, low, high)


def _table_of_squares(tables: NoisedTables) -> tuple[Total, Total] | None:
    """The sum of squared errors, in units of the largest one, and how many records there are."""
    if "squares" in tables:
        return tables.at("squares", (0, 1)), tables.at("squares", (0, np.s_[:2]))
    if "right_and_wrong" in tables:
        return tables.at("right_and_wrong", 1), tables.at("right_and_wrong", np.s_[:])
    return None


def _mean(
    tables: NoisedTables, part: Total, whole: Total, of_one: float | None
) -> NoisedFigure | None:
    """The mean of numbers from 0 to 1, none of which noise hides.

    Args:
        tables: the counts.
        part, whole: the sum of numbers, and how many there are.
        of_one: the variance of one of them, in units of the mean's square; None: as much as may be.
    """
    noise = [tables.noise(part), tables.noise(part, whole), tables.noise(whole)]
    if whole.value <= COUNT_SDS * math.sqrt(noise[2]):
        return None
    mean = part.value / whole.value
    of_mean = math.sqrt(noise[0] - 2 * mean * noise[1] + mean**2 * noise[2]) / whole.value
    if mean <= CLEAR_SDS * of_mean and of_mean:
        return None
    grid = np.linspace(0.0, 1.0, 2001) * min(max(6.0 * mean, 1e-12), 1.0)

    def deviations(grid: Counts) -> Counts:
        most = grid * (1.0 - grid)
        one = most if of_one is None else np.minimum(of_one * grid**2, most)
        variance = noise[0] - 2.0 * grid * noise[1] + grid**2 * noise[2] + one * whole.value
        return (max(part.value, 0.0) - grid * whole.value) / np.sqrt(np.maximum(variance, 1e-300))

    return NoisedFigure(mean, of_mean, *accepted(deviations, grid))


def root_mean_square(
    tables: NoisedTables, scale: NumberScale, sums: tuple[Total, Total] | None = None
) -> NoisedFigure | None:
    """The RMSE in the number's own units, errors beyond the largest counted as that one; None where
    noise hides it."""
    sums = sums or _table_of_squares(tables)
    mean = sums and _mean(tables, *sums, scale.of_squares)
    if mean is None:
        return None
    return NoisedFigure(0.0, 0.0, 0.0, 0.0) if mean.value <= 0 else _root(mean, scale.largest)


def mean_absolute_error(
    tables: NoisedTables, holds: str, scale: NumberScale
) -> NoisedFigure | None:
    """The mean absolute error likewise."""
    mean = _mean(tables, tables.at(holds, 1), tables.at(holds, np.s_[:]), scale.of_errors)
    if mean is None:
        return None
    unit = scale.largest
    return NoisedFigure(unit * mean.value, unit * mean.sd, *(unit * end for end in mean.interval))


def _spread_of_numbers(
    tables: NoisedTables, scale: NumberScale
) -> tuple[float, float, float] | None:
    """Of the mean squared distance from the mean, as a share of the range squared: its value, its
    variance over the noise, and over sampling.

    With U the sum of v and S that of v^2 over n records, it is S / n - (U / n)^2. A count moves it
    by what it moves S, less 2 U/n times what it moves U, plus (U/n)^2 times what it moves n, less
    the value, all over n.
    """
    if "squares" not in tables:
        if scale.deviation is None:
            return None
        one = scale.deviation
        square, noise = one.value**2, (2.0 * one.value * one.sd) ** 2
        low, high = one.interval
        every = ((high**2 - low**2) / (2.0 * SDS_OF_95_PERCENT)) ** 2
        return square, noise, max(every - noise, 0.0)
    counts = tables["squares"][1]
    total = float(counts.sum())
    whole = tables.at("squares", 1)
    if total <= COUNT_SDS * math.sqrt(tables.noise(whole)):
        return None
    mean = float(counts[:2].sum()) / total
    value = float(counts[0]) / total - mean**2
    moved = np.zeros((2, 3))
    moved[1] = (np.array([1.0 - 2.0 * mean, -2.0 * mean, 0.0]) + mean**2 - value) / total
    by = tables.total("squares", moved)
    noise = tables.noise(by)
    if value <= COUNT_SDS * math.sqrt(noise):
        return None
    most = tables.sampling(by)
    if scale.of_places is not None:
        most = min(scale.of_places * value**2 / total, most)
    unit = (2.0 * scale.half) ** 2
    return unit * value, unit**2 * noise, unit**2 * most


def rmse_of_mean(tables: NoisedTables, scale: NumberScale) -> NoisedFigure | None:
    """What always saying the mean would score: a baseline that needs no model."""
    if "squares" in tables:
        spread = _spread_of_numbers(tables, scale)
        return spread and _root(around(*spread, 0.0, 1.0), scale.length)
    one = scale.deviation
    if one is None:
        return None
    unit = scale.length
    return NoisedFigure(unit * one.value, unit * one.sd, *(unit * end for end in one.interval))


def r_squared(tables: NoisedTables, scale: NumberScale) -> NoisedFigure | None:
    """1 - the mean squared error over the mean squared distance from the mean.

    The interval holds each ratio that both means allow (Fieller 1954).
    """
    sums, spread = _table_of_squares(tables), _spread_of_numbers(tables, scale)
    if sums is None or spread is None:
        return None
    part, whole = sums
    value, of_value, chance = spread
    mean = part.value / whole.value
    unit = scale.cut**2
    error, noise = unit * mean, unit**2 * tables.noise(part - mean * whole) / whole.value**2
    most = max(mean * (1.0 - mean), 0.0)
    one = most if scale.of_squares is None else min(scale.of_squares * mean**2, most)
    sampling = unit**2 * one / whole.value
    ratio = error / value
    sd = math.sqrt(noise + ratio**2 * of_value) / value
    square = SDS_OF_95_PERCENT**2
    a, b = value**2 - square * (of_value + chance), error * value
    c = error**2 - square * (noise + sampling)
    if a <= 0.0:  # the spread of numbers may be nothing
        return None
    root = math.sqrt(max(b**2 - a * c, 0.0))
    return NoisedFigure(
        min(1.0 - ratio, 1.0), sd, 1.0 - (b + root) / a, min(1.0 - (b - root) / a, 1.0)
    )
