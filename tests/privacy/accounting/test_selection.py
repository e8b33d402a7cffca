"""Private selection against the exact law of its output, published figures, and dp_accounting."""

from __future__ import annotations

import math
from itertools import islice

import mpmath as mp
import numpy as np
import pytest
from folded import by_value, worst_folded
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from dpladder.errors import BadInput
from dpladder.privacy.accounting import booking, gdp, selection, subset
from dpladder.privacy.accounting.booking import Entry, price
from dpladder.privacy.accounting.events import Gaussian, RepeatAndSelect
from dpladder.privacy.accounting.selection import Lean, Runs

DELTA = 1e-5
BASE = gdp.mu_from_epsilon(1.0, DELTA)
SHAPES = (0.0, 0.5, 1.0, 3.0, math.inf)


def stopping(runs):
    return 1 / (1 + selection.continuation_odds(runs))


def weight(runs, x):
    """f'(x), written out anew: the derivative of E[x^K]."""
    if runs.shape == math.inf:
        return runs.mean * np.exp(runs.mean * (x - 1))
    gamma, eta = stopping(runs), runs.shape
    return runs.mean * (gamma / (1 - (1 - gamma) * x)) ** (1 + eta)


def exact_delta(epsilon, mu, runs, seen=1.0):
    """The selection's own profile at epsilon, by quadrature over the score. A run puts out two
    Gaussians, and a share `seen` of its mu^2 is in the score; the highest or the lowest wins; the
    larger of both directions."""
    scored, rest = math.sqrt(seen) * mu, math.sqrt(1 - seen) * mu
    y = np.linspace(-12, 12 + mu, 40_001)
    largest = 0.0
    for rank in (stats.norm.cdf, stats.norm.sf):
        laws = [stats.norm.pdf(y, c) * weight(runs, rank(y, c)) for c in (0.0, scored)]
        for one, other in (laws, laws[::-1]):
            left = epsilon - np.log(one / other)
            gap = profile(left, rest) if rest else np.clip(1 - np.exp(left), 0.0, None)
            largest = max(largest, float(integrate.trapezoid(one * gap, y)))
    return largest


def profile(epsilon, mu):
    below, above = stats.norm.cdf(mu / 2 - epsilon / mu), stats.norm.logcdf(-mu / 2 - epsilon / mu)
    return below - np.exp(epsilon + above)


def epsilon_of_profile(profile, inner, runs, delta, lean=selection.STRAIGHT):
    """The bound for runs of which only a profile delta(epsilon) is known, the larger of both
    directions, and K is a truncated negative binomial (Koskela, Redberg & Wang 2024). In (2), g(u)
    <= e^inner u + profile(inner) for every `inner`: any will do, and the caller looks for a good
    one. The smallest e1 is bisected."""
    after = selection.continuation_odds(runs)
    moved = math.exp(inner) * lean.high / lean.low + after * lean.high * profile(inner)
    low, high = 0.0, 64.0
    while high - low > 1e-10 * high:
        middle = (low + high) / 2
        enough = lean.high * runs.mean * profile(middle) <= delta
        low, high = (low, middle) if enough else (middle, high)
    return high + math.log(lean.high / lean.low) + (1 + runs.shape) * math.log(moved)


@pytest.mark.parametrize(("shape", "expected"), [(1.0, 1.6255), (0.0, 1.5128), (math.inf, 2.210)])
def test_gaussian_runs_cost_what_the_bound_says(shape, expected):
    assert selection.epsilon(BASE, Runs(10, shape), DELTA) == pytest.approx(expected, abs=3e-4)


@pytest.mark.parametrize(("shape", "expected"), [(1.0, 1.999), (0.0, 1.729)])
def test_runs_of_a_known_profile_cost_what_the_bound_says(shape, expected):
    def cost(inner):
        return epsilon_of_profile(lambda e: gdp.delta(e, BASE), inner, Runs(10, shape), DELTA)

    assert min(cost(inner / 50) for inner in range(1, 60)) == pytest.approx(expected, abs=1e-3)


@pytest.mark.few(15)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seen", [0.05, 0.5, 1.0])
@pytest.mark.parametrize(("mu", "mean"), [(0.27, 10.0), (1.0, 4.0), (0.1, 50.0)])
def test_the_exact_law_of_the_winner_respects_the_bound(mu, mean, seen, shape):
    runs = Runs(mean, shape)
    for delta in (1e-5, 1e-2):
        assert exact_delta(selection.epsilon(mu, runs, delta), mu, runs, seen) <= delta


@pytest.mark.parametrize("shape", SHAPES)
def test_the_exact_law_of_the_winner_beside_other_releases_respects_the_bound(shape):
    """A second release is a part of every run that no score sees."""
    runs, mu, beside = Runs(10.0, shape), 0.27, 1.2
    both = math.hypot(mu, beside)
    selected = price(RepeatAndSelect(Gaussian(1 / mu), 10.0, shape), "add_remove")
    for delta in (1e-5, 1e-2):
        bound = booking.epsilon(booking.total([selected, Entry(beside)]), delta)
        seen = (0.5 * mu * mu) / both**2
        assert exact_delta(bound, both, runs, seen) <= delta
        assert exact_delta(booking.epsilon(selected, delta), both, runs, seen) > delta


@pytest.mark.few(3)
@pytest.mark.parametrize("run", [0.3, 1.0, 3.0])
@pytest.mark.parametrize(("shape", "gap"), [(0.0, 1.06), (1.0, 1.08), (math.inf, 1.2)])
def test_the_bound_is_hardly_above_what_the_worst_known_ranking_costs(shape, gap, run):
    runs, mu = Runs(10.0, shape), gdp.mu_from_epsilon(run, DELTA)
    folded, _, _ = worst_folded(mu, runs, DELTA)
    assert by_value(mu, runs, DELTA) < folded <= selection.epsilon(mu, runs, DELTA) <= gap * folded


def test_neither_part_of_the_bound_may_be_left_out():
    runs = Runs(10.0, math.inf)
    rank = selection.rank_loss(0.27, runs)
    assert exact_delta(selection.epsilon(0.27, runs, DELTA) - rank, 0.27, runs, 0.8) > 5 * DELTA
    geometric = Runs(10.0, 1.0)
    assert exact_delta(selection.rank_loss(0.27, geometric), 0.27, geometric) > 100 * DELTA


def test_a_known_number_of_runs_would_break_the_bound():
    fixed = selection.epsilon(BASE, Runs(10, 1.0), DELTA)
    y = np.linspace(-12, 12, 400_001)
    laws = [10 * stats.norm.pdf(y, c) * stats.norm.cdf(y, c) ** 9 for c in (0.0, BASE)]
    gap = np.clip(laws[0] - math.exp(fixed) * laws[1], 0.0, None)
    assert integrate.trapezoid(gap, y) > 20 * DELTA


def test_publishing_the_number_of_runs_would_break_the_bound():
    runs = Runs(10, 1.0)
    claimed, gap = selection.epsilon(BASE, runs, DELTA), 0.0
    y = np.linspace(-10, 10, 4_001)
    pdf, cdf = ([law(y, c) for c in (0.0, BASE)] for law in (stats.norm.pdf, stats.norm.cdf))
    for k, probability in islice(selection._law(runs), 200):
        laws = [probability * k * pdf[i] * cdf[i] ** (k - 1) for i in (0, 1)]
        gap += integrate.trapezoid(np.clip(laws[0] - math.exp(claimed) * laws[1], 0.0, None), y)
    assert gap > 10 * DELTA


def test_geometric_is_liu_and_talwar():
    assert stopping(Runs(8, 1.0)) == pytest.approx(1 / 8)
    pure = epsilon_of_profile(lambda e: float(e < 0.5), 0.5, Runs(8, 1.0), DELTA)
    assert pure == pytest.approx(3 * 0.5, abs=1e-6)  # their theorem 3.2: three times a pure run


def test_adapting_costs_what_dp_hypo_says_for_pure_runs():
    runs, lean = Runs(8, 1.0), Lean(0.7, 1.4)
    pure = epsilon_of_profile(lambda e: float(e < 1), 1.0, runs, DELTA, lean)
    assert pure == pytest.approx(5.0794, abs=1e-4)


def test_a_lean_enlarges_every_weight_by_its_upper_end():
    runs, lean = Runs(8, 1.0), Lean(0.8, 1.5)
    outer = gdp.epsilon(BASE, DELTA / (8 * 1.5))
    expected = outer + math.log(1.5 / 0.8) + selection.rank_loss(BASE, runs, lean)
    assert selection.epsilon(BASE, runs, DELTA, lean) == pytest.approx(expected, rel=1e-8)


@given(st.floats(0.01, 2.0), st.floats(1.5, 100.0), st.sampled_from(SHAPES))
@settings(max_examples=60, deadline=None)
def test_no_lean_is_plain_selection_and_any_costs_at_most_the_published_amount(mu, mean, shape):
    runs = Runs(mean, shape)
    straight = selection.epsilon(mu, runs, DELTA)
    assert selection.epsilon(mu, runs, DELTA, Lean(1.0, 1.0)) == straight
    leaning = selection.epsilon(mu, runs, DELTA, Lean(0.9, 1.2))
    assert leaning >= selection.epsilon(mu, runs, DELTA / 1.2) + math.log(1.2 / 0.9) - 1e-9
    if shape < math.inf:
        published = (2 + shape) * math.log(1.2 / 0.9)
        assert leaning <= selection.epsilon(mu, runs, DELTA / 1.2) + published + 1e-6


@given(st.floats(0.01, 2.0), st.floats(1.5, 100.0), st.sampled_from(SHAPES))
@settings(max_examples=60, deadline=None)
def test_cost_grows_with_the_runs_and_falls_with_delta(mu, mean, shape):
    cost = selection.epsilon(mu, Runs(mean, shape), DELTA)
    assert cost > gdp.epsilon(mu, DELTA)
    assert selection.epsilon(1.1 * mu, Runs(mean, shape), DELTA) > cost
    assert selection.epsilon(mu, Runs(1.1 * mean, shape), DELTA) > cost
    assert selection.epsilon(mu, Runs(mean, shape), 2 * DELTA) < cost


@pytest.mark.parametrize("mean", [1.5, 10.0])
def test_the_law_of_the_number_is_the_one_named(mean):
    ks = np.arange(1, 60)
    gamma = stopping(Runs(mean, 1.0))
    laws = {
        0.0: stats.logser.pmf(ks, 1 - stopping(Runs(mean, 0.0))),
        1.0: stats.geom.pmf(ks, gamma),
        math.inf: stats.poisson.pmf(ks, mean),
    }
    negative = stats.nbinom(3, stopping(Runs(mean, 3.0)))
    laws[3.0] = negative.pmf(ks) / negative.sf(0)
    for shape, expected in laws.items():
        found = dict(islice(selection._law(Runs(mean, shape)), 61))
        assert [found[k] for k in ks] == pytest.approx(expected, rel=1e-9)


@pytest.mark.ci
@pytest.mark.few(3)
@pytest.mark.parametrize("shape", [1e-15, 1e-9, 1e-3, 1e3, 1e6, 1e9, 1e15])
@pytest.mark.parametrize("mean", [1.001, 1.5, 400.0])
@pytest.mark.parametrize("mu", [1e-3, 0.5])
def test_laws_near_the_logarithmic_and_the_poisson_one_cost_what_they_do(mu, mean, shape):
    """Against 40 digits: there gamma, or gamma^eta, is too near 1 to be told from it."""
    with mp.workdps(40):
        eta = mp.mpf(shape)

        def above(odds):
            return odds * eta / (1 - (1 + odds) ** -eta) - mean

        odds = mp.findroot(above, (mp.mpf(10) ** -25, mp.mpf(10) ** 5), "anderson", tol=1e-30)
        places = (mp.mpf(place) / 500 for place in range(-4_000, 2_000))
        exact = max(
            mp.log1p(odds * mp.ncdf(z + mu)) - mp.log1p(odds * mp.ncdf(z)) for z in places
        ) * (1 + eta)
    assert exact <= selection.rank_loss(mu, Runs(mean, shape)) <= exact * (1 + 1e-5)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_number_has_its_mean_and_its_tail_is_paid_for(shape):
    runs = Runs(10.0, shape)
    limit = selection.largest_count(runs)
    law = np.array([p for k, p in islice(selection._law(runs), 20 * limit)])
    first = 0 if shape == math.inf else 1
    assert law @ np.arange(first, first + len(law)) == pytest.approx(10.0)
    tail = law[limit + 1 - first :].sum()
    assert tail <= selection.RARE < law[limit - first :].sum()


@pytest.mark.few(7)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("limit", [1, 2, 5, 30])
def test_a_law_cut_off_anywhere_keeps_both_bounds(shape, limit):
    """The weight of ranks by the law that is really drawn, against that of the whole law."""
    runs, first = Runs(10.0, shape), 0 if shape == math.inf else 1
    law = np.array([p for _, p in islice(selection._law(runs), limit + 1 - first)])
    law[0] += 1 - law.sum()
    drawn = [selection.number(u, runs, limit) for u in (np.arange(20_000) + 0.5) / 20_000]
    counts = np.bincount(drawn, minlength=limit + 1)[first:] / 20_000
    np.testing.assert_allclose(counts, law, atol=2e-4)
    ks = np.arange(first, limit + 1)
    assert law @ ks <= 10.0

    def cut(x):
        return (law * ks * np.asarray(x)[:, None] ** np.maximum(ks - 1, 0)).sum(axis=1)

    x = np.linspace(1e-6, 1, 400)
    if limit > first:  # one run or none leaves no rank to weigh
        grows = np.diff(np.log(cut(x))) <= np.diff(np.log(weight(runs, x))) + 1e-12
        assert grows.all()


@given(st.floats(1e-9, 1.0), st.sampled_from(SHAPES))
@settings(deadline=None)
def test_a_uniform_becomes_a_number_by_inversion(uniform, shape):
    runs = Runs(4.0, shape)
    k = selection.number(uniform, runs, 300)
    below = sum(p for _, p in islice(selection._law(runs), 300) if _ < k)
    assert below < uniform
    assert selection.number(uniform, runs, 2) == (k if k <= 2 else 0 if shape == math.inf else 1)


@given(st.floats(0.1, 8.0), st.sampled_from(SHAPES))
@settings(max_examples=30, deadline=None)
def test_the_largest_affordable_run_uses_the_whole_total(epsilon, shape):
    def cost(mu):
        return selection.epsilon(mu, Runs(10, shape), DELTA)

    mu = selection.largest(cost, epsilon, gdp.mu_from_epsilon(epsilon, DELTA))
    assert cost(mu) <= epsilon < cost(1.0001 * mu)


def test_laws_and_leans_that_mean_nothing_are_refused():
    with pytest.raises(BadInput, match="mean must exceed 1"):
        Runs(1.0, 1.0)
    with pytest.raises(BadInput, match="mean must exceed 0"):
        Runs(0.0, math.inf)
    with pytest.raises(BadInput, match="0 < low <= 1 <= high"):
        Lean(1.1, 1.2)


@pytest.mark.parametrize("shape", [0.0, 1.0, math.inf])
@pytest.mark.parametrize("lean", [Lean(), Lean(0.5, 1.2), Lean(0.9, 3.0)], ids=str)
@pytest.mark.parametrize("mu", [0.05, 0.7, 2.0])
def test_no_rank_moves_its_weight_by_more_than_is_charged(mu, lean, shape):
    """(2) over a fine grid of ranks; with a Poisson law also to 60 digits, at the peak."""
    runs = Runs(8, shape)
    z = np.linspace(-40, 40, 400_001)
    before, after = lean.low * stats.norm.cdf(z), lean.high * stats.norm.cdf(z + mu)
    if shape == math.inf:
        most = (runs.mean * (after - before)).max()
    else:
        odds = selection.continuation_odds(runs)
        most = (1 + shape) * np.log((1 + odds * after) / (1 + odds * before)).max()
    charged = selection.rank_loss(mu, runs, lean)
    assert most * (1 - 1e-12) <= charged <= most * (1 + 1e-5)
    if shape == math.inf:
        with mp.workdps(60):
            peak = -mp.mpf(mu) / 2 + mp.log(mp.mpf(lean.high) / lean.low) / mu
            assert charged >= runs.mean * (
                lean.high * mp.ncdf(peak + mu) - lean.low * mp.ncdf(peak)
            )


@pytest.mark.parametrize("sigma", [0.5, 2.0, 20.0])
def test_ratios_of_a_selection_are_a_law_under_both_neighbours(sigma):
    """Where rounding turns the first slopes, its mass is rounded up."""
    ratios, masses, beyond = subset.likelihood_ratios(RepeatAndSelect(Gaussian(sigma), 8.0, 1.0))
    assert 1 - 1e-12 <= masses.sum() <= 1 + 1e-5
    assert (ratios * masses).sum() + beyond == pytest.approx(1.0, abs=1e-9)
    assert 0 <= beyond < 1e-6


@pytest.mark.parametrize("mu", [0.05, 0.7, 3.0])
def test_a_profile_at_any_epsilon_is_rounded_up(mu):
    epsilons = np.linspace(-4.0, 4.0, 81)
    for at, bound in zip(epsilons, subset._signed_profile(epsilons, mu), strict=True):
        far = gdp.delta(abs(at), mu) / (1 + 5e-13)
        exact = far if at >= 0 else 1.0 - math.exp(at) * (1.0 - far)
        assert exact <= bound <= exact * (1 + 1e-8) + 1e-15
