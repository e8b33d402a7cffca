"""The fit recovers what the releases say, and says what it did where they do not say enough."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpladder.config.sweep_sections import Fit, Search
from dpladder.errors import BadInput
from dpladder.learn.interface import Constants
from dpladder.methods.dp_gd import Descent
from dpladder.privacy.accounting import gdp
from dpladder.search.fit import Target, fit_radius, response_surface
from dpladder.search.space import Space, bounds, decompose
from dpladder.search.trial import Trial

SEARCH = Search(unit="r", prior="none", eta=(0.01, 5.0), steps=(5, 100), decompose="balanced")
CONSTANTS = Constants(n0=4000, classes=10, dimension=64, length=32.0)
LINE = Fit(using="best", against="epsilon")
PARABOLA, POOLED = (
    Fit(using="best", degree=2, against="epsilon"),
    Fit(using="pooled", against="epsilon"),
)
N0, DELTA = 4000, 1e-5


def fixed(eta, fewest, most):
    return SEARCH.model_copy(update={"eta": (eta, eta), "steps": (fewest, most)})


def trial(rung, place, epsilon, r, score, sd=100.0):
    return Trial(rung, place, epsilon, gdp.mu_from_epsilon(epsilon, DELTA), r, r, score, sd, N0)


def ladder(*rungs):
    """One trial per rung: (epsilon, r)."""
    return [trial(k, 0, epsilon, r, 2000.0) for k, (epsilon, r) in enumerate(rungs)]


def hump(
    best_at_one,
    epsilons=(0.1, 0.2),
    rs=(0.2, 1.0, 5.0, 25.0, 125.0),
    gain=1600.0,
    noise=None,
    sd=40.0,
):
    """Trials on a smooth hump whose best r is proportional to epsilon."""
    return [
        trial(
            k,
            place,
            epsilon,
            r,
            1000.0 * k
            + gain / (1 + (math.log(r / (best_at_one * epsilon)) / 2) ** 2)
            + (0.0 if noise is None else float(noise[k, place])),
            sd,
        )
        for k, epsilon in enumerate(epsilons)
        for place, r in enumerate(rs)
    ]


def fit(trials, how=LINE, epsilon=0.88, search=SEARCH):
    return fit_radius(trials, target(epsilon, search), how)


def target(epsilon, search=SEARCH):
    return Target(epsilon, gdp.mu_from_epsilon(epsilon, DELTA), Space(search, Descent(), CONSTANTS))


# Through each rung's best


def test_the_line_of_the_paper():
    trials = ladder((0.1, 3.0), (0.2, 5.0))
    result = fit(trials)
    assert result.r_star == pytest.approx(1.0 + 20.0 * 0.88)
    assert result.coefficients == pytest.approx((1.0, 20.0))
    assert (result.fallback, result.clamped) == (None, False)
    assert fit(trials[::-1]) == result
    low, high, there = (gdp.mu_from_epsilon(epsilon, DELTA) for epsilon in (0.1, 0.2, 0.88))
    against_mu = fit(trials, Fit(against="mu", using="best")).r_star
    assert against_mu == pytest.approx(3.0 + 2.0 * (there - low) / (high - low))


def test_only_each_rungs_best_counts():
    trials = ladder((0.1, 3.0), (0.2, 5.0))
    losers = [trial(0, 1, 0.1, 400.0, 1999.0), trial(1, 1, 0.2, 0.06, 1999.0)]
    assert fit([*losers, *trials]).r_star == fit(trials).r_star


def test_three_rungs_give_the_least_squares_line_and_the_exact_parabola():
    trials = ladder((0.1, 2.0), (0.2, 5.0), (0.3, 10.0))  # r = 1 + 100 e^2
    assert fit(trials).coefficients == pytest.approx((-7 / 3, 40.0))
    result = fit(trials, PARABOLA)
    assert result.coefficients == pytest.approx((1.0, 0.0, 100.0), abs=1e-9)
    assert result.r_star == pytest.approx(1 + 100 * 0.88**2)


FALLS = "the line through each rung's best does not rise with epsilon"


@pytest.mark.parametrize(
    ("trials", "how", "reason"),
    [
        (ladder((0.1, 9.0), (0.2, 4.0)), LINE, FALLS),
        (ladder((0.1, 6.0), (0.2, 6.0)), LINE, FALLS),
        (ladder((0.2, 9.0), (0.2, 4.0)), LINE, "too few distinct values of epsilon for a line"),
        (ladder((0.1, 6.0)), LINE, "too few distinct values of epsilon for a line"),
        (ladder((0.1, 9.0), (0.2, 4.0), (0.2, 4.0)), PARABOLA, FALLS),
    ],
    ids=["falls", "level", "equal epsilon", "one rung", "parabola then line"],
)
def test_without_a_rising_line_r_is_proportional(trials, how, reason):
    result = fit(trials, how)
    ratios = [t.r / t.epsilon for t in trials]
    assert result.r_star == pytest.approx(0.88 * math.prod(ratios) ** (1 / len(ratios)))
    assert result.method == "r proportional to epsilon"
    assert result.fallback is not None
    assert reason in result.fallback


def test_a_parabola_that_turns_gives_way_to_the_line():
    trials = ladder((0.1, 2.0), (0.2, 5.0), (0.3, 6.0))
    result = fit(trials, PARABOLA)
    assert result.r_star == fit(trials, LINE).r_star
    assert result.fallback == "the parabola through each rung's best does not rise with epsilon"


@pytest.mark.parametrize(
    ("rungs", "end"), [(((0.1, 1.0), (0.2, 400.0)), 500.0), (((0.1, 0.05), (0.2, 0.1)), 0.05)]
)
def test_r_beyond_the_range_is_clamped_and_says_so(rungs, end):
    result = fit(ladder(*rungs), epsilon=0.88 if end == 500.0 else 0.02)
    assert (result.r_star, result.clamped) == (end, True)


def test_nearly_equal_epsilons_are_clamped_not_overflowed():
    result = fit(ladder((0.1, 1.0), (0.1 * (1 + 1e-15), 2.0)))
    assert 0.05 <= result.r_star <= 500.0


# All released scores together


@pytest.mark.parametrize("best_at_one", [8.0, 20.0, 60.0])
def test_the_pooled_fit_finds_the_hump(best_at_one):
    result = fit(hump(best_at_one), POOLED)
    assert math.log(result.r_star / (0.88 * best_at_one)) == pytest.approx(0.0, abs=0.4)
    assert result.uncertainty is not None
    low, high = result.uncertainty
    assert low < result.r_star < high
    assert high / low < 30


def test_the_pooled_fit_grows_with_the_target():
    stars = [fit(hump(10.0), POOLED, epsilon).r_star for epsilon in (0.1, 0.3, 0.9, 2.0)]
    assert all(b > 1.8 * a for a, b in pairwise(stars))


def test_the_pooled_fit_survives_one_wrong_score():
    """Noise makes a far loser its rung's best: the line has nothing to go by, the surface has."""
    trials = hump(20.0, sd=300.0, gain=900.0)
    trials[4] = replace(trials[4], score=1200.0)
    assert fit(trials, LINE).fallback is not None
    assert math.log(fit(trials, POOLED).r_star / 17.6) == pytest.approx(0.0, abs=1.0)


def test_more_noise_widens_the_interval():
    def width(sd):
        interval = fit(hump(20.0, sd=sd), POOLED).uncertainty
        assert interval is not None
        return math.log(interval[1] / interval[0])

    assert width(10.0) < width(400.0) < width(4000.0)


def test_the_interval_covers_as_often_as_it_says():
    """80 % intervals, on humps of another shape than the fit's: 145 of 200 at least, 2.6 sd below
    160; seeded."""
    random = np.random.default_rng(0)
    covered = 0
    for _ in range(200):
        best_at_one = math.exp(random.uniform(math.log(4), math.log(150)))
        noise = random.normal(size=(2, 5)) * 100.0
        interval = fit(hump(best_at_one, noise=noise, sd=100.0), POOLED).uncertainty
        assert interval is not None
        covered += interval[0] <= 0.88 * best_at_one <= interval[1]
    assert covered >= 145


def test_identical_scores_leave_the_middle_of_what_is_possible():
    trials = [replace(t, score=2000.0) for t in hump(20.0)]
    result = fit(trials, POOLED)
    low, high = bounds(SEARCH)
    middle = math.sqrt(low * 8.8 * high)  # r* stays in the range at epsilon 0.1 too
    assert abs(math.log(result.r_star / middle)) < 1.0
    assert result.spread == 0.0


def test_the_score_unit_does_not_matter():
    trials = hump(20.0)
    scaled = [replace(t, score=t.score * 10, sd=t.sd * 10, counted=N0 * 10) for t in trials]
    assert fit(trials, POOLED).r_star == pytest.approx(fit(scaled, POOLED).r_star)


def test_pooled_with_one_rung_relies_on_proportion():
    one = [t for t in hump(20.0) if t.rung == 1]
    assert math.log(fit(one, POOLED).r_star / 17.6) == pytest.approx(0.0, abs=0.5)


def test_spread_is_one_when_scores_are_noise_and_large_when_they_are_not():
    """Mean square over 300 ladders of 2 x 3 trials: 1 within 6 standard errors, which are 0.041
    each."""
    noise = np.random.default_rng(1).normal(size=(300, 2, 3)) * 100.0
    squares = [
        (
            fit(
                [trial(k, i, 0.1, 1.0, 2000.0 + float(row[k, i])) for k in (0, 1) for i in range(3)]
            ).spread
            or 0.0
        )
        ** 2
        for row in noise
    ]
    assert np.mean(squares) == pytest.approx(1.0, abs=0.25)
    assert (fit(hump(20.0, sd=40.0), POOLED).spread or 0) > 5


def test_a_rung_may_score_higher_as_a_whole():
    level = [replace(t, score=t.score - 1000.0 * t.rung) for t in hump(20.0, rs=(1.0, 5.0, 25.0))]
    raised = [replace(t, score=t.score + 1500.0 * t.rung) for t in level]
    moved, still = fit(raised, POOLED), fit(level, POOLED)
    assert moved.r_star == pytest.approx(still.r_star, rel=0.1)
    assert moved.uncertainty == pytest.approx(still.uncertainty, rel=0.2)


def test_a_dip_is_not_taken_for_the_best():
    grid, weights = response_surface(hump(20.0, gain=-1600.0), target(0.88), POOLED)
    near = np.abs(grid - math.log(0.88 * 20.0)) < math.log(3)
    assert weights[near].sum() < 0.15  # 0.3 where nothing is known


def test_pooled_has_no_parabola():
    with pytest.raises(BadInput, match=r"given fit.degree 2. Use degree 1"):
        fit(hump(20.0), Fit(using="pooled", degree=2, against="epsilon"))


# In kappa

KAPPA = Search(expected=(2.0, 1.9))
ONE = Fit()


def in_kappa(*scores, epsilon=0.1, kappas=(0.5, 1.5, 4.5, 13.0), sd=20.0):
    """A rung of trials at these places."""
    own = target(epsilon, KAPPA)
    return [
        Trial(0, k, epsilon, own.mu, kappa, own.space.r(kappa, own.mu), score, sd, N0)
        for k, (kappa, score) in enumerate(zip(kappas, scores, strict=True))
    ]


def test_without_trials_kappa_is_the_priors_and_r_grows_with_mu():
    small, large = (fit([], ONE, epsilon, KAPPA) for epsilon in (0.1, 2.0))
    assert small.kappa_star == pytest.approx(2.0, rel=0.02)
    assert large.kappa_star == pytest.approx(2.0, rel=0.02)
    assert large.r_star / small.r_star > 8
    low, high = small.uncertainty
    assert math.log(high / low) == pytest.approx(2 * 1.2816 * math.log(1.9), rel=0.05)


def test_scores_that_say_nothing_leave_the_prior():
    found = fit(in_kappa(2000.0, 2000.0, 2000.0, 2000.0, sd=4000.0), ONE, 0.88, KAPPA)
    assert found.kappa_star == pytest.approx(2.0, rel=0.1)


def test_scores_move_kappa_away_from_the_prior_as_far_as_they_are_exact():
    high = (1000.0, 1600.0, 2300.0, 2600.0)
    exact = fit(in_kappa(*high, sd=10.0), ONE, 0.88, KAPPA).kappa_star
    blurred = fit(in_kappa(*high, sd=1000.0), ONE, 0.88, KAPPA).kappa_star
    assert exact > blurred > 2.0
    assert exact > 4.0


def test_one_rung_is_enough_and_its_kappa_holds_for_every_total():
    trials = in_kappa(1500.0, 2300.0, 2400.0, 1600.0)
    stars = [fit(trials, ONE, epsilon, KAPPA) for epsilon in (0.2, 0.88, 4.0)]
    assert [star.kappa_star for star in stars] == pytest.approx([stars[0].kappa_star] * 3, rel=0.02)


def test_the_best_alone_is_a_mean_of_the_winners_kappas():
    trials = in_kappa(1500.0, 2300.0, 2400.0, 1600.0)
    found = fit(trials, Fit(using="best"), 0.88, KAPPA)
    assert found.kappa_star == pytest.approx(4.5, rel=0.02)


def test_the_papers_axes_work_in_kappa_too():
    """r proportional to epsilon is a kappa that falls as epsilon grows faster than mu."""
    trials = in_kappa(1500.0, 2300.0, 2400.0, 1600.0, sd=5.0)
    mu, epsilon = (fit(trials, Fit(against=axis), 4.0, KAPPA) for axis in ("mu", "epsilon"))
    assert mu.kappa_star == pytest.approx(fit(trials, ONE, 4.0, KAPPA).kappa_star, rel=0.35)
    assert epsilon.r_star > mu.r_star


@pytest.mark.ci
@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 3),
            st.floats(1e-3, 10),
            st.floats(0.05, 500),
            st.floats(-1e6, 1e6),
            st.floats(0, 1e5),
        ),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from(
        [LINE, PARABOLA, POOLED, Fit(using="best", against="mu"), Fit(using="pooled", against="mu")]
    ),
    st.sampled_from([SEARCH, fixed(0.5, 5, 9), fixed(1.0, 3, 3)]),
    st.floats(1e-3, 10),
)
def test_whatever_the_releases_r_star_can_be_trained(rows, how, search, epsilon):
    trials = [
        trial(rung, place, e, r, score, sd) for place, (rung, e, r, score, sd) in enumerate(rows)
    ]
    result = fit(trials, how, epsilon, search)
    low, high = bounds(search)
    assert low * (1 - 1e-12) <= result.r_star <= high * (1 + 1e-12)
    eta, steps = decompose(result.r_star, search)
    assert search.eta[0] <= eta <= search.eta[1]
    assert search.steps[0] <= steps <= search.steps[1]
    assert all(math.isfinite(c) for c in result.coefficients)
