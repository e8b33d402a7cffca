"""Draws of r stay where they are and in range; every r they give splits into (eta, steps)."""

from __future__ import annotations

import math
from random import Random

import hypothesis
import pytest
from hypothesis import settings
from hypothesis import strategies as st

from dpladder.config.learners import learner_of
from dpladder.config.sweep_sections import Search
from dpladder.errors import BadInput
from dpladder.learn.interface import Constants
from dpladder.methods.dp_gd import Descent
from dpladder.search import space as spaces
from dpladder.search.space import PROPORTIONAL_WIDTH, Space, bounds, clamp, decompose
from dpladder.search.trial import Trial

DRAWS = ("stratified", "log_uniform", "uniform", "grid", "binary")
WAYS = ("eta_first", "steps_first", "balanced", "random")
PRIORS = ("none", "monotone", "proportional")

# The paper's: r itself, over four decades.
DECADES = {
    "unit": "r",
    "prior": "none",
    "eta": (0.01, 5.0),
    "steps": (5, 100),
    "decompose": "balanced",
}
CONSTANTS = Constants(n0=4000, classes=10, dimension=64, length=32.0)

rates = st.floats(1e-4, 1e3)
counts = st.integers(1, 10_000)


@st.composite
def searches(take):
    eta, steps = sorted((take(rates), take(rates))), sorted((take(counts), take(counts)))
    return given(
        draw=take(st.sampled_from(DRAWS)),
        eta=tuple(eta),
        steps=tuple(steps),
        decompose=take(st.sampled_from(WAYS)),
        prior=take(st.sampled_from(PRIORS)),
        seed=take(st.integers(0, 2**40)),
    )


def given(**keys):
    return Search(**DECADES | keys)


def draw(search, epsilon, rung, trial, before=None):
    """The r of a draw, of gradient descent on 4,000 records."""
    return spaces.draw(
        Space(search, Descent(), CONSTANTS), epsilon / 3, epsilon, rung, trial, before
    )[1]


def chosen(r, epsilon=0.1):
    return Trial(
        rung=0, trial=0, epsilon=epsilon, mu=epsilon / 3, kappa=r, r=r, score=0.0, sd=1.0, counted=1
    )


def assert_splits(search, place):
    low, high = bounds(search)
    r = clamp(low * (high / low) ** place, search)
    eta, steps = decompose(r, search)
    assert search.eta[0] <= eta <= search.eta[1]
    assert search.steps[0] <= steps <= search.steps[1]
    assert math.isclose(eta * steps, r, rel_tol=1e-9)


@pytest.mark.ci
@settings(max_examples=500, deadline=None)
@hypothesis.given(searches(), st.floats(0, 1))
def test_any_r_in_reach_splits_within_bounds(search, place):
    assert_splits(search, place)


def test_ten_thousand_random_requests_split_within_bounds():
    random = Random(0)
    for _ in range(10_000):
        eta = sorted(10 ** random.uniform(-5, 3) for _ in range(2))
        steps = sorted(round(10 ** random.uniform(0, 4)) for _ in range(2))
        search = given(eta=tuple(eta), steps=tuple(steps), decompose=random.choice(WAYS))
        assert_splits(search, random.random())


@settings(max_examples=500, deadline=None)
@hypothesis.given(
    searches(),
    st.floats(1e-3, 10),
    st.floats(1e-3, 10),
    st.integers(0, 5),
    st.integers(0, 50),
    st.data(),
)
def test_every_draw_is_in_reach(search, epsilon, earlier, rung, trial, data):
    low, high = bounds(search)
    place = data.draw(st.floats(0, 1))
    before = chosen(clamp(low * (high / low) ** place, search), earlier) if rung else None
    r = draw(search, epsilon, rung, trial, before)
    assert low * (1 - 1e-12) <= r <= high * (1 + 1e-12)
    decompose(r, search)


@pytest.mark.ci
@settings(max_examples=500, deadline=None)
@hypothesis.given(searches(), st.floats(1e-9, 1e9))
def test_clamp_finds_the_nearest_r_that_steps_reach(search, r):
    candidates = [
        min(max(r, search.eta[0] * steps), search.eta[1] * steps)
        for steps in range(search.steps[0], min(search.steps[1], search.steps[0] + 200) + 1)
    ]
    nearest = min(abs(math.log(candidate / r)) for candidate in candidates)
    assert abs(math.log(clamp(r, search) / r)) <= nearest + 1e-9


@pytest.mark.parametrize("r", [0.0499, 500.1, 0.0, -1.0, math.inf, math.nan])
def test_an_r_out_of_reach_is_refused_with_the_bounds(r):
    with pytest.raises(
        BadInput, match=r"eta in \[0.01, 5.0\] and steps in \[5, 100\] give r from 0.05 to 500"
    ):
        decompose(r, given())


def test_an_r_between_two_step_counts_is_refused_when_eta_is_fixed():
    search = given(eta=(0.5, 0.5), steps=(5, 100))
    assert decompose(3.0, search) == (0.5, 6)
    with pytest.raises(BadInput, match="out of reach"):
        decompose(3.2, search)
    assert clamp(3.2, search) == 3.0
    assert clamp(3.3, search) == 3.5


@pytest.mark.parametrize(
    ("way", "expected"),
    # r = 50 is three quarters up the log range, and so are 5 * 20^0.75 = 47.3 steps
    [("eta_first", (5.0, 10)), ("steps_first", (0.5, 100)), ("balanced", (50 / 47, 47))],
)
def test_the_three_decompositions(way, expected):
    assert decompose(50.0, given(decompose=way)) == pytest.approx(expected)


def test_random_splits_hang_on_r_and_the_public_seed_alone():
    """Panda et al. split r at random: over many r every possible number of steps comes up."""
    search = given(decompose="random")
    steps = [decompose(r, search)[1] for r in [20.0 + 0.01 * k for k in range(2000)]]
    assert min(steps) == 5
    assert max(steps) == 100
    assert sum(steps) / len(steps) == pytest.approx(52.5, abs=2.5)  # 4 deviations
    assert decompose(20.0, search) == decompose(20.0, given(decompose="random"))
    assert decompose(20.0, search) != decompose(20.0, given(decompose="random", seed=1))


def test_balanced_steps_grow_with_r():
    search = given()
    steps = [decompose(0.05 * 1.2**k, search)[1] for k in range(50)]
    assert steps == sorted(steps)
    assert steps[0] == 5
    assert decompose(500.0, search) == (5.0, 100)


@pytest.mark.parametrize("kind", DRAWS)
def test_a_draw_depends_on_its_own_place_and_the_public_seed(kind):
    """Frozen values: another machine, version or number of trials gives the same r."""
    frozen = {
        "stratified": [6.521121333, 0.193400786, 57.358025256],
        "log_uniform": [33.726299921, 0.143947711, 0.616943808],
        "uniform": [353.639474197, 57.448604303, 136.445809696],
        "grid": [5.0, 0.5, 50.0],
        "binary": [5.0, 0.5, 50.0],
    }
    first = [draw(given(draw=kind, seed=7), 0.1, 0, trial) for trial in range(3)]
    assert first == pytest.approx(frozen[kind], rel=1e-6)
    assert kind in ("grid", "binary") or first != [
        draw(given(draw=kind, seed=8), 0.1, 0, t) for t in range(3)
    ]


@pytest.mark.parametrize("kind", ["stratified", "log_uniform", "uniform"])
def test_rungs_draw_independently(kind):
    search = given(draw=kind)
    assert [draw(search, 0.1, 0, t) for t in range(3)] != [
        draw(search, 0.1, 1, t) for t in range(3)
    ]


@pytest.mark.parametrize("trials", range(1, 20))
def test_stratified_draws_leave_no_wide_gap(trials):
    """Golden steps on a circle leave gaps of three sizes at most, none above twice the even one."""
    for seed in range(20):
        search = given(seed=seed)
        places = sorted(
            math.log(draw(search, 0.1, 0, t) / 0.05) / math.log(1e4) for t in range(trials)
        )
        gaps = [b - a for a, b in zip(places, [*places[1:], places[0] + 1], strict=True)]
        assert max(gaps) <= 2.0 / trials + 1e-9


def test_uniform_is_uniform_in_r_and_log_uniform_in_its_logarithm():
    def low_half(kind):
        return sum(draw(given(draw=kind, seed=s), 0.1, 0, 0) < 5.0 for s in range(400))

    assert low_half("uniform") < 15  # 1 % of the range lies there
    assert 150 < low_half("log_uniform") < 250  # half of it in log: 5 standard deviations


def test_monotone_starts_where_the_rung_below_ended():
    search = given(prior="monotone")
    assert all(draw(search, 0.2, 1, t, chosen(20.0, 0.1)) >= 20.0 for t in range(50))
    # descending rungs
    assert all(draw(search, 0.05, 1, t, chosen(20.0, 0.1)) <= 20.0 for t in range(50))
    # equal epsilon tells nothing
    assert min(draw(search, 0.1, 1, t, chosen(20.0, 0.1)) for t in range(50)) < 1.0


def test_proportional_is_centred_at_the_scaled_r():
    search = given(prior="proportional")
    drawn = [draw(search, 0.2, 1, t, chosen(3.0, 0.1)) for t in range(200)]
    assert min(drawn) == pytest.approx(6.0 / PROPORTIONAL_WIDTH, rel=0.05)
    assert max(drawn) == pytest.approx(6.0 * PROPORTIONAL_WIDTH, rel=0.05)
    assert max(draw(search, 0.2, 1, t, chosen(400.0, 0.1)) for t in range(200)) <= 500.0


def test_binary_halves_the_interval_at_each_rung():
    search = given(draw="binary")
    widths = []
    for rung in (1, 2, 3):
        drawn = [draw(search, 0.1, rung, t, chosen(5.0)) for t in range(255)]
        widths.append(math.log(max(drawn) / min(drawn)) / math.log(1e4))
    assert widths == pytest.approx([0.5, 0.25, 0.125], rel=0.02)
    assert draw(search, 0.1, 1, 0, chosen(5.0)) == pytest.approx(5.0)


def test_a_range_of_one_point_is_no_division_by_zero():
    search = given(eta=(0.5, 0.5), steps=(10, 10))
    assert draw(search, 0.1, 0, 0) == 5.0
    assert decompose(5.0, search) == (0.5, 10)


# In kappa


def space(name="dp_gd", **keys):
    return Space(Search(**keys), learner_of({"name": name}), CONSTANTS)


@pytest.mark.parametrize(
    "name", ["dp_gd", "dp_mlp", "dp_adam", "dp_adam_wosm", "dp_fc", "dp_zo", "dp_ls", "dp_newton"]
)
@pytest.mark.parametrize("mu", [0.03, 0.3, 2.0])
def test_a_place_and_its_r_are_two_names_of_one_thing(name, mu):
    own = space(name)
    for kappa in (0.3, 2.0, 8.0):
        r = own.r(kappa, mu)
        reached = own.reach()[0] * 1.01 < r < own.reach()[1] * 0.99
        assert not reached or own.kappa(r, mu) == pytest.approx(kappa, rel=0.02)
        assert own.clamp(r) == pytest.approx(r)


def test_one_kappa_is_an_r_that_grows_with_mu_and_n0():
    own = space()
    assert own.r(2.0, 0.06) == pytest.approx(2 * own.r(2.0, 0.03), rel=1e-6)
    twice = Space(
        own.search, own.learner, Constants(n0=8000, classes=10, dimension=64, length=32.0)
    )
    assert twice.r(2.0, 0.03) == pytest.approx(2 * own.r(2.0, 0.03), rel=1e-6)
    long = Space(own.search, own.learner, Constants(n0=4000, classes=10, dimension=64, length=64.0))
    assert long.r(2.0, 0.03) == pytest.approx(own.r(2.0, 0.03) / 2, rel=1e-6)


def test_a_replaced_unit_doubles_the_noise_and_halves_r():
    replaced = Constants(4000, 10, 64, relation="replace_one", length=32.0)
    assert Space(Search(), Descent(), replaced).r(2.0, 0.03) == pytest.approx(
        space().r(2.0, 0.03) / 2, rel=1e-6
    )


def test_trials_lie_around_the_prior_and_wider_than_it():
    own = space(expected=(2.0, 1.9))
    places = [spaces.draw(own, 0.05, 0.1, 0, trial)[0] for trial in range(3)]
    assert places == pytest.approx(
        [2.0 * 1.9 ** (-2 * 0.6745), 2.0 * 1.9 ** (2 * 0.6745), 2.0], rel=0.01
    )
    fourth = [spaces.draw(own, 0.05, 0.1, 0, trial)[0] for trial in range(4)]
    assert fourth[:3] == places


def test_trials_of_a_prior_stay_in_the_range():
    own = space(expected=(2.0, 30.0), kappa=(0.5, 5.0))
    places = [spaces.draw(own, 0.05, 0.1, 0, trial)[0] for trial in range(9)]
    assert min(places) == pytest.approx(0.5, rel=0.01)
    assert max(places) == pytest.approx(5.0, rel=0.01)
