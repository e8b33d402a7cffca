"""How well scores rank: the area under the ROC curve, from a first look and two sums a class.

The look is a noised histogram of the scores of each class on a public grid. From it follow two
public distributions of scores, Q0 and Q1, however poor. The rest of the price buys, of each record
of class 1, where its score stands among Q0, and of each of class 0, where it stands among Q1. With
A(P0, P1) the area, which is linear in both distributions,

    A(P0, P1) = A(Q0, P1) + A(P0, Q1) - A(Q0, Q1) + A(P0 - Q0, P1 - Q1).

The first two are means of bought sums, the third is public. A count that is bought anyway says how
often the model is right, and so whether a standing is high or low. What is bought is the rest: its
noise weighs less. The last one is a product of two errors: what it may come to is part of the
interval. So no bins have to be right, and ties within them hide nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from dpladder.config.detectability import COUNT_SDS
from dpladder.learn.measures.intervals import GRID, Counts, NoisedTables, Total, accepted
from dpladder.privacy.accounting.rounding import NoisedFigure

CELLS = 128  # of the grid: a power of two
LEAST = 0.05  # margin, below which cells are equally wide; above, each is 12 % wider than the last
STEP = 0.12
EDGES = LEAST * np.sinh(STEP * np.arange(-CELLS // 2, CELLS // 2 + 1))
MIDDLES = LEAST * np.sinh(STEP * (np.arange(CELLS) - (CELLS - 1) / 2))
# What scores are taken for, before any look. Chosen on made-up scores: bench_ranking.py.
SPREAD = 2.0  # of scores about the log-odds of the rarer class
SLOPE = 0.5  # of the log-odds of a class against its score
TRUST = 0.3  # how far a half may hold another share than expected; less at each finer level
FINER = 0.7
DRAWS = 100  # of the look's noise, which say how far a look may be wrong
UNSEEN = 1.3  # how much wider what the look hides is than those draws


def cells_of(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """The cell of the grid that each score is in, whatever it is."""
    return np.searchsorted(EDGES[1:-1], scores, side="right")


@dataclass(frozen=True, eq=False)
class Ranking:
    """Where a score stands among those of each class, by a noised look: public.

    Attributes:
        classes: (2, cells), the share of each class in each cell.
    """

    classes: Counts

    def standing(self, scores: NDArray[np.float64], among: int) -> NDArray[np.float64]:
        """The share of a class that lies below each score, from 0 to 1."""
        known = np.clip(np.nan_to_num(scores), EDGES[0], EDGES[-1])
        below = np.append(0.0, np.cumsum(self.classes[among]))
        return np.clip(np.interp(known, EDGES, below), 0.0, 1.0)

    def left_open(self, among: int) -> float:
        """How far apart two standings may be of records that the model is right about, or of two
        that it is wrong about: it says the second class above a score of 0."""
        below = float(self.standing(np.zeros(1), among)[0])
        return max(below, 1.0 - below)


@dataclass(frozen=True, eq=False)
class BoughtScores:
    """What was bought of the scores of both classes before they are ranked.

    Attributes:
        cells: (2, cells), noised.
        sd: of the noise in each cell.
        sides: (2, 2), of each class how many scores are below 0 and above, noised: told as the
            first class, and as the second.
        sd_of_sides: of the noise in these, which is far smaller.
    """

    cells: Counts
    sd: float
    sides: Counts
    sd_of_sides: float

    @property
    def sizes(self) -> Counts:
        """How many records each class has; 1 at least."""
        return np.maximum(self.sides.sum(axis=1), 1.0)


def ranking_of(look: BoughtScores) -> Ranking:
    """What a look says of the scores of both classes."""
    return Ranking(_smooth(look, look.cells[None], look.sides[None], look.sizes)[0])


def _smooth(look: BoughtScores, cells: Counts, sides: Counts, sizes: Counts) -> Counts:
    """Distributions of both classes, from noised histograms (draws, 2, cells) and sides.

    First that of all scores, about a Gaussian at the log-odds of the classes. Then each class's,
    about what a logistic slope makes of all.
    """
    centre = min(max(math.log(sizes[1] / sizes[0]), -7.0), 7.0)
    inner = [NormalDist(centre, SPREAD).cdf(edge) for edge in EDGES[1:-1].tolist()]
    expected = 0.99 * np.diff([0.0, *inner, 1.0]) + 0.01 / CELLS
    noise = np.array([look.sd, look.sd_of_sides])
    summed = cells.sum(axis=1), sides.sum(axis=1)
    every = _by_halves(*summed, noise * math.sqrt(2.0), expected, sizes.sum())
    second = 1.0 / (1.0 + np.exp(-SLOPE * (MIDDLES - centre)))
    each = [every * (1.0 - second), every * second]
    both = [
        _by_halves(cells[:, one], sides[:, one], noise, each[one], sizes[one]) for one in (0, 1)
    ]
    return np.stack(both, axis=1)


def _by_halves(noised: Counts, sides: Counts, sds: Counts, expected: Counts, size: float) -> Counts:
    """A distribution over cells: each half of a stretch gets a share of it, between the expected
    share and the noised one, by the variances of both. Of the first halves, below 0 and above, the
    sides say more than the cells."""
    noised, expected = np.broadcast_arrays(noised, expected)
    levels = [(noised, expected)]
    while levels[-1][0].shape[-1] > 1:
        pairs = (one[..., ::2] + one[..., 1::2] for one in levels[-1])
        levels.append(tuple(pairs))  # type: ignore[arg-type]
    levels[-2] = sides, levels[-2][1]
    mass = np.full((*noised.shape[:-1], 1), float(size))
    for depth, (counts, of) in enumerate(levels[-2::-1]):
        usual = of[..., ::2] / (of[..., ::2] + of[..., 1::2])
        seen = 0.5 + (counts[..., ::2] - counts[..., 1::2]) / (2.0 * mass)
        variance = sds[0] ** 2 * (CELLS >> (depth + 1)) if depth else sds[1] ** 2
        noise = variance / (2.0 * mass**2)
        trust = (TRUST * FINER**depth) ** 2 * 4.0 * usual * (1.0 - usual)
        left = np.clip(usual + trust / (trust + noise) * (seen - usual), 0.0, 1.0)
        halves = np.stack([mass * left, mass * (1.0 - left)], axis=-1)
        mass = np.maximum(halves.reshape(*mass.shape[:-1], -1), 1e-9)
    return mass / mass.sum(axis=-1, keepdims=True)


def area(first: Counts, second: Counts) -> Counts:
    """How often the second scores above the first, half a point for the same cell."""
    return np.asarray(((np.cumsum(first, axis=-1) - first / 2.0) * second).sum(axis=-1))


def area_under_curve(
    tables: NoisedTables, ranks: Sequence[tuple[Total, Total]], look: BoughtScores
) -> NoisedFigure | None:
    """The area, with an interval for noise, sampling, and what the look may hide.

    It holds each area at which the sum of the second class's standings lies within 1.96 deviations
    of what it should be: as many records are noised as are summed (Fieller 1954).

    Args:
        tables: the counts.
        ranks: of each class, the sum of its records' standings, and how many there are.
        look: as it was bought.

    Returns:
        The figure; None where noise hides whether a class has any records.
    """
    (above, first), (standing, second) = ranks
    ranking = ranking_of(look)
    if min(first.value, second.value) <= 0.0 or any(
        one.value <= COUNT_SDS * math.sqrt(tables.noise(one)) for one in (first, second)
    ):
        return None
    of_first = min(max(above.value / first.value, 0.0), 1.0)
    public = float(area(*ranking.classes))
    noise_of_first = tables.noise(above - of_first * first) / first.value**2
    sizes = np.maximum([first.value, second.value], 1.0)
    hidden = UNSEEN * _hidden(ranking, look, sizes)
    sampled = _sampling(np.array(public), *sizes)
    ratio = float(np.clip(_sampling_by_look(ranking, *sizes) / sampled, 0.4, 1.0))
    noise = (tables.noise(standing), tables.noise(standing, second), tables.noise(second))

    value = min(max(standing.value / second.value + of_first - public, 0.0), 1.0)

    def deviations(grid: Counts) -> Counts:
        inside = np.clip(grid + public - of_first, 0.0, 1.0)
        variance = noise[0] - 2.0 * inside * noise[1] + inside**2 * noise[2]
        chance = noise_of_first + ratio * _sampling(grid, *sizes) + hidden**2
        return (
            (value - grid)
            * second.value
            / np.sqrt(np.maximum(variance + second.value**2 * chance, 1e-300))
        )

    mean = min(max(value + public - of_first, 0.0), 1.0)
    of_second = tables.noise(standing - mean * second) / second.value**2
    sd = math.sqrt(of_second + noise_of_first + hidden**2)
    return NoisedFigure(value, sd, *accepted(deviations, GRID))


def _hidden(ranking: Ranking, look: BoughtScores, sizes: Counts) -> float:
    """The root mean square of the product of both errors, where scores are as the look has them."""
    # simulated by a public seed, to tell how wide an interval is; it protects nothing
    noise = np.random.default_rng(0).normal(size=(DRAWS, 2, CELLS + 2))
    cells = sizes[:, None] * ranking.classes
    sides = cells.reshape(2, 2, -1).sum(axis=2)
    again = _smooth(
        look,
        cells + look.sd * noise[..., :CELLS],
        sides + look.sd_of_sides * noise[..., CELLS:],
        sizes,
    )
    apart = ranking.classes - again
    return float(np.sqrt(np.mean(area(apart[:, 0], apart[:, 1]) ** 2)))


def _sampling(value: Counts, first: float, second: float) -> Counts:
    """The variance over which records are in the test (Hanley & McNeil 1982, Eq. 2)."""
    both_below = np.maximum(value / (2.0 - value) - value**2, 0.0)
    both_above = np.maximum(2.0 * value**2 / (1.0 + value) - value**2, 0.0)
    spread = value * (1.0 - value) + (second - 1.0) * both_below + (first - 1.0) * both_above
    return np.asarray(spread / (first * second))


def _sampling_by_look(ranking: Ranking, first: float, second: float) -> float:
    """The same for the look's own distributions (DeLong et al. 1988)."""
    below = np.cumsum(ranking.classes, axis=1) - ranking.classes / 2.0
    square = float(area(*ranking.classes)) ** 2
    of_second = float(below[0] ** 2 @ ranking.classes[1]) - square
    of_first = float((1.0 - below[1]) ** 2 @ ranking.classes[0]) - square
    return of_second / second + of_first / first
