"""The public grid: what it costs, and that nobody reads a sum off the low bits of a release any
more."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp, ndtr
from support import Silent, SmoothMeter

from dpladder.config.model import Resources
from dpladder.learn import counts
from dpladder.learn.curator import Curator
from dpladder.learn.data import Data
from dpladder.learn.interface import Constants
from dpladder.learn.queries import UnitMean
from dpladder.learn.second_order import covariance
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.draws import Draw, gaussian
from dpladder.privacy.arrays import Floats, clip_rows
from dpladder.privacy.release.grid import LARGEST_CELL, add_noise_on_grid, grid, slack
from dpladder.privacy.release.meter import Meter
from dpladder.privacy.statement.page import RELEASED_NUMBERS, rounding_text

DELTA = 1e-5
RUNS = 80
SIZE = 4096  # nominal, a power of two: dividing by it and back loses nothing


@dataclass(frozen=True)
class Seeded:
    seed: int

    def stream(self, name: str, index: int) -> bytes:
        return hashlib.sha256(f"{self.seed} {name} {index}".encode()).digest()


def plainly(total: Floats, z: Floats, scale: float) -> Floats:
    """A release without a grid, as SmoothMeter makes it."""
    return total + z * scale


Add = Callable[[Floats, Floats, float], Floats]


def possible(released: Floats, total: Floats, scale: float, add: Add) -> bool:
    """Whether some float z makes this release of this total: the lattice attack of an adversary who
    knows both neighbours' totals. Where a coordinate's noise outweighs its total, hardly more than
    one z could have made it, and no float at all may be that z."""
    middle = (released - total) / scale
    found = add(total, middle, scale) == released
    for direction in (np.inf, -np.inf):
        z = middle
        for _ in range(4):
            z = np.nextafter(z, direction)
            found |= add(total, z, scale) == released
    return bool(found.all())


def excluded(
    meter_of: type[Meter], draw: Draw, release: Callable[[Meter], Floats], *others: Floats
) -> list[int]:
    """In how many runs each neighbour's total cannot have made the release."""
    add = plainly if meter_of is SmoothMeter else add_noise_on_grid
    released = [release(meter_of([draw], Seeded(run))) for run in range(RUNS)]
    return [sum(not possible(one, other, draw.scale, add) for one in released) for other in others]


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_no_neighbour_is_excluded_by_the_low_bits_of_a_mean(epsilon: float) -> None:
    rows = np.random.default_rng(0).normal(size=(4000, 1280)).astype(np.float16)
    labels, radius = np.zeros(4000, np.int64), 30.0
    sigma = gdp.sigma(gdp.mu_from_epsilon(epsilon, DELTA), 1)
    query = UnitMean(name="mean", multiplier=sigma, radius=radius, width=1280)
    constants = Constants(SIZE, 1, 1280)
    draw = query.draw(constants)
    total, without = clip_rows(rows, radius).sum(axis=0), clip_rows(rows[1:], radius).sum(axis=0)

    def release(meter: Meter) -> Floats:
        return counts.ask(query.at(), Data(rows, labels), constants, meter)

    own, others = excluded(SmoothMeter, draw, release, total, without)
    assert own == 0
    assert others > RUNS / 2  # the attack sees what it is for
    assert excluded(Meter, draw, release, total, without) == [0, 0]


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_no_neighbour_is_excluded_by_the_low_bits_of_a_covariance(epsilon: float) -> None:
    rows = np.random.default_rng(0).normal(size=(2000, 32)).astype(np.float16).astype(np.float32)
    constants = Constants(SIZE, 2, 32)
    query = covariance(gdp.sigma(gdp.mu_from_epsilon(epsilon, DELTA), 1), 2.0)
    draw = query.draw(constants)

    def asked(records: Any, meter: Any) -> Floats:
        data = Data(records, np.zeros(len(records), np.int64))
        answer = Curator(data, constants, Resources(threads=1)).ask(query.at(), meter)
        return answer.numpy()

    def release(meter: Meter) -> Floats:
        return asked(rows, meter)

    without = asked(rows[1:], Silent())
    assert excluded(SmoothMeter, draw, release, without)[0] > RUNS / 2
    assert excluded(Meter, draw, release, without) == [0]


def test_small_counts_are_released_on_one_grid_at_the_probabilities_of_the_rounded_gaussian() -> (
    None
):
    """Count 0 against count 1: each cell's frequency is the ideal one's, within four standard
    errors over all cells."""
    sd, runs = 137.0, 200_000
    step = grid(sd)
    for count in (0, 1):
        meter = Meter([gaussian("score", sd, 1.0, (runs,))], Seeded(count))
        cells = meter.publish("score", np.full(runs, float(count))) / step
        assert np.array_equal(cells, np.rint(cells))
        edges = np.arange(-40, 41) - 0.5
        seen, _ = np.histogram(cells, edges)
        ideal = runs * np.diff(ndtr((edges * step - count) / sd))
        chi2 = float(((seen - ideal) ** 2 / ideal).sum())
        assert chi2 < len(seen) + 4 * math.sqrt(2 * len(seen))


@given(st.floats(1e-12, 1e12), st.floats(-1e12, 1e12), st.floats(-12, 12))
def test_a_release_is_the_multiple_of_the_step_nearest_to_the_noised_total(
    scale: float, total: float, noise: float
) -> None:
    step = grid(scale)
    assert math.frexp(step)[0] == 0.5
    assert scale / 16 < step <= scale / 8
    if abs(total) / step > 2.0**50:
        return
    released = float(add_noise_on_grid(np.float64(total), np.float64(noise), scale))
    assert (released / step).is_integer()
    assert abs(released - (total + noise * scale)) <= step / 2 * (1 + 1e-9) + 1e-15 * abs(total)


def test_whatever_the_total_is_every_multiple_near_it_can_be_released() -> None:
    """The same cells are reached from totals on any lattice: no total leaves a mark of its own."""
    random, scale = np.random.default_rng(0), 3.0
    noise = random.normal(size=20_000)
    for total in (0.0, 1.0, 1.0 + 2.0**-30, float(np.float16(0.1)), 1e6 + 1 / 3):
        cells = add_noise_on_grid(np.full(20_000, total), noise, scale) / grid(scale)
        near = cells - round(total / grid(scale))
        assert set(range(-20, 21)) <= set(near.astype(int))


def test_tensors_and_arrays_are_rounded_alike() -> None:
    random = np.random.default_rng(0)
    total, noise = random.normal(size=(50, 3)) * 1e3, random.normal(size=(50, 3))
    there = add_noise_on_grid(torch.from_numpy(total), torch.from_numpy(noise), 0.7).numpy()
    assert np.array_equal(there, add_noise_on_grid(total, noise, 0.7))


def test_a_total_far_beyond_its_noise_is_cut_at_the_last_cell_and_stays_finite() -> None:
    for far in (1e300, math.inf):
        ends = add_noise_on_grid(np.array([far, -far]), np.array([5.0, 5.0]), 1.0) / grid(1.0)
        assert ends.tolist() == [LARGEST_CELL, 40.0 - LARGEST_CELL]
        there = add_noise_on_grid(
            torch.tensor([far, -far]).double(), torch.tensor([5.0, 5.0]).double(), 1.0
        )
        assert (there / grid(1.0)).tolist() == ends.tolist()


def test_a_total_that_is_no_number_is_released_as_0_is() -> None:
    total, noise = np.array([math.nan, 0.0, 7.0]), np.array([1.5, 1.5, -2.0])
    released = add_noise_on_grid(total, noise, 3.0)
    assert np.array_equal(released, add_noise_on_grid(np.array([0.0, 0.0, 7.0]), noise, 3.0))
    there = add_noise_on_grid(torch.from_numpy(total), torch.from_numpy(noise), 3.0)
    assert there.tolist() == released.tolist()
    assert float(add_noise_on_grid(np.float64(math.nan), np.float64(1.5), 3.0)) == released[0]


U = 2.0**-50  # what noise.py tells distances in


def test_the_slack_is_what_the_theorem_says_of_normals_and_of_laplace_noise() -> None:
    """Recomputed from how far a computed sample is from an ideal one, for every width of a cell."""
    widths = np.linspace(1 / 16, 1 / 8, 1001)
    normal = 2 * 52 * U / widths * np.exp(8 * widths + widths**2 / 2)
    laplace = 2 * 210 * U / widths * np.exp(widths)
    left_out = max(2 * ndtr(-8.0), 2 * math.exp(-35)) + 8 * 2.0**-64
    epsilon, delta = slack(1)
    assert 0.8 * epsilon < 2 * max(*normal, *laplace) <= epsilon
    assert 0.6 * delta < 2 * left_out <= delta
    assert slack(10_000_000) == pytest.approx((1e7 * epsilon, 1e7 * delta))
    assert slack(10_000_000) < (2e-4, 4e-8)


def test_the_figure_on_the_page_is_rounded_to_the_safe_side() -> None:
    told = [float(word) for word in rounding_text().split() if word[0].isdigit()]
    assert all(shown >= true for shown, true in zip(told, slack(RELEASED_NUMBERS), strict=True))


# --- noised numbers that are compared -------------------------------------------------------------

ROUND = (
    Draw("level", "laplace", 2.0 * 0.02 / 0.1, (400,), sensitivity=0.02, under="rounds"),
    Draw("utility", "laplace", 4.0 * 0.02 / 0.1, (400,), sensitivity=0.04, under="rounds"),
)
"""Of AboveThreshold at epsilon 0.1, over utilities that a unit moves by 0.02."""


def log_below(z: Floats) -> Floats:
    """The log of a Laplace variable's distribution function."""
    return np.where(z < 0, np.minimum(z, 0) - math.log(2), np.log1p(-np.exp(-np.maximum(z, 0)) / 2))


def loss_of_round(
    epsilon: float, moves: float, places: tuple[float, ...], fineness: float
) -> float:
    """How much less likely the last candidate is to be the first above its level when a unit pulls
    it down and all others up: both noises on grids, every cell of the level's counted exactly.

    Args:
        places: of the others, of the last one and of the level, in scales of a utility's noise, and
            the number of others.
    """
    others, last, level, count = places
    of_level, of_utility = 2 * moves / epsilon, 4 * moves / epsilon
    fine, coarse = (2.0 ** math.floor(math.log2(s / fineness)) for s in (of_level, of_utility))
    cells = np.arange(-60 * int(2 * fineness), 60 * int(2 * fineness) + 1) * fine
    width = fine / of_level / 2
    logs = np.where(
        cells == 0,
        np.log(-np.expm1(-width)),
        -np.abs(cells) / of_level + math.log(math.sinh(width)),
    )
    at = np.floor((level * of_utility + cells) / coarse) * coarse + coarse / 2

    def probability(shift: float) -> float:
        below = log_below(at / of_utility - others - shift)
        above = log_below(-(at / of_utility - last + shift))
        return float(logsumexp(logs + count * below + above))

    return probability(0.0) - probability(moves / of_utility)


def test_comparing_on_the_grid_of_releases_would_cost_more_than_is_charged() -> None:
    """Rounding is no post-processing of a comparison. What it adds is within what grid.py says."""
    moves, epsilon = 0.020021706867929645, 0.02
    places = (-0.19012455444986387, -7.827719983696936, -4.555681835917574, 5)
    losses = {one: loss_of_round(epsilon, moves, places, one) for one in (8.0, 64.0, 512.0)}
    assert losses[8.0] > 1.001 * epsilon
    assert all(loss <= epsilon + 5.5 / fineness for fineness, loss in losses.items())
    assert losses[512.0] < 1.00001 * epsilon


def test_rounds_of_comparisons_are_noised_finely_enough_for_the_slack_that_is_stated() -> None:
    meter = Meter(ROUND, Seeded(0))
    steps = []
    for draw in ROUND:
        cells = meter.publish(draw.name, np.zeros(draw.shape))
        powers = 2.0 ** np.arange(10, -70, -1.0)
        steps.append(next(step for step in powers if (cells % step == 0).all()))
    level, utility = (draw.scale for draw in ROUND)
    fine, coarse = steps
    more = (coarse + fine) / level + (2 * coarse + fine) / utility
    assert 0 < more < slack(2)[0]
