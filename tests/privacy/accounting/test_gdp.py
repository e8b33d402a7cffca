"""Closed forms against 60-digit arithmetic, the published figures, and the promises about
rounding."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpladder.errors import BadInput
from dpladder.privacy.accounting import gdp

EPSILONS = [1e-4, 1e-3, 0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 100.0]
DELTAS = [1e-3, 1e-5, 1e-7, 1e-10, 1e-15]

epsilons = st.floats(-4, 2).map(lambda power: 10**power)
deltas = st.floats(-15, -3).map(lambda power: 10**power)
mus = st.floats(-4, 1).map(lambda power: 10**power)
steps = st.integers(1, 10**6)


def reference_delta(epsilon: float, mu: float) -> mpmath.mpf:
    """Balle & Wang 2018, Theorem 8, as printed there."""
    with mpmath.workdps(60):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
        return mpmath.ncdf(-e / m + m / 2) - mpmath.exp(e) * mpmath.ncdf(-e / m - m / 2)


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_figures_are_safe_and_within_1e_9_of_the_exact_ones(epsilon: float, delta: float) -> None:
    mu = gdp.mu_from_epsilon(epsilon, delta)
    assert reference_delta(epsilon, mu) <= delta < reference_delta(epsilon, mu * (1 + 1e-9))
    spent = gdp.epsilon(mu, delta)
    assert reference_delta(spent, mu) <= delta < reference_delta(spent * (1 - 1e-9), mu)
    exact = reference_delta(epsilon, mu)
    assert exact <= gdp.delta(epsilon, mu) <= exact * (1 + 1e-12)


@pytest.mark.parametrize(
    ("epsilon", "mu"),
    [
        (0.0, 1e-8),
        (0.0, 3.0),
        (0.0, 40.0),
        (0.3, 2.0),
        (1e-6, 1e-3),
        (2.0, 30.0),
        (3.0, 0.1),
        (8.0, 0.5),
        (1e-9, 1e-9),
    ],
)
def test_delta_keeps_its_digits_everywhere(epsilon: float, mu: float) -> None:
    exact = reference_delta(epsilon, mu)
    assert min(exact, 1) <= gdp.delta(epsilon, mu) <= exact * (1 + 1e-12)


def test_delta_below_the_smallest_double_is_rounded_up_to_it() -> None:
    assert gdp.delta(100, 0.01) == math.ulp(0.0)
    assert gdp.delta(1e300, 1e-300) == math.ulp(0.0)
    assert gdp.delta(1, 0) == 0


# Reference figures.
@pytest.mark.parametrize(
    ("epsilon", "mu"),
    [
        (0.01, 0.004102),
        (0.02, 0.007587),
        (0.05, 0.017310),
        (0.1, 0.032521),
        (0.2, 0.061334),
        (0.3, 0.088983),
        (0.5, 0.142211),
        (0.7, 0.193555),
        (0.88, 0.238568),
        (0.9, 0.243509),
        (0.96, 0.258266),
        (0.99, 0.265609),
        (1, 0.268051),
        (2, 0.501552),
        (4, 0.924931),
        (8, 1.666031),
    ],
)
def test_mu_at_delta_1e_5_is_the_published_one(epsilon: float, mu: float) -> None:
    assert gdp.mu_from_epsilon(epsilon, 1e-5) == pytest.approx(mu, abs=5.01e-7)


def test_a_hundred_steps_at_epsilon_001_need_sigma_2438() -> None:
    assert gdp.sigma(gdp.mu_from_epsilon(0.01, 1e-5), 100) == pytest.approx(2437.85, abs=0.005)


@given(epsilons, deltas)
def test_epsilon_of_an_affordable_mu_is_affordable(epsilon: float, delta: float) -> None:
    mu = gdp.mu_from_epsilon(epsilon, delta)
    assert epsilon * (1 - 1e-9) <= gdp.epsilon(mu, delta) <= epsilon
    assert delta * (1 - 1e-11) <= gdp.delta(epsilon, mu) <= delta


@given(mus, deltas)
def test_delta_of_a_stated_epsilon_is_the_stated_one(mu: float, delta: float) -> None:
    assert gdp.delta(gdp.epsilon(mu, delta), mu) <= delta


@given(st.floats(1e-6, 1e6), steps)
def test_calibrated_sigma_spends_no_more_than_asked(mu: float, steps: int) -> None:
    assert mu * (1 - 1e-9) <= gdp.mu_from_sigma(gdp.sigma(mu, steps), steps) <= mu


@given(epsilons, epsilons, deltas)
def test_mu_grows_with_epsilon(one: float, other: float, delta: float) -> None:
    low, high = sorted((one, other))
    assert gdp.mu_from_epsilon(low, delta) <= gdp.mu_from_epsilon(high, delta) * (1 + 1e-11)


@given(mus, mus, deltas)
def test_epsilon_grows_with_mu(one: float, other: float, delta: float) -> None:
    low, high = sorted((one, other))
    assert gdp.epsilon(low, delta) <= gdp.epsilon(high, delta) * (1 + 1e-9)


@given(st.floats(0.1, 1e4), steps, steps)
def test_mu_grows_with_steps_and_falls_with_sigma(sigma: float, one: int, other: int) -> None:
    low, high = sorted((one, other))
    assert gdp.mu_from_sigma(sigma, low) <= gdp.mu_from_sigma(sigma, high)
    assert gdp.mu_from_sigma(sigma * 1.01, low) < gdp.mu_from_sigma(sigma, low)


@given(st.lists(mus, max_size=30), st.randoms())
def test_order_of_composition_does_not_matter(spent: list[float], random: object) -> None:
    shuffled = spent.copy()
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert gdp.compose(spent) == gdp.compose(shuffled)


def test_mus_compose_as_the_root_of_their_squares() -> None:
    assert gdp.compose([0.3, 0.4]) == pytest.approx(0.5, rel=1e-14)
    assert gdp.compose([0.3, 0.4]) >= 0.5
    assert gdp.compose([]) == 0
    assert gdp.compose([0.1] * 100) == pytest.approx(gdp.mu_from_sigma(10, 100), rel=1e-14)


@given(st.floats(1e-6, 1e6), steps, st.lists(mus, min_size=1, max_size=20))
def test_short_formulas_round_up_to_the_last_bit(
    number: float, steps: int, spent: list[float]
) -> None:
    """In exact fractions, squared: doubles alone fall below about half the time."""
    assert (Fraction(gdp.mu_from_sigma(number, steps)) * Fraction(number)) ** 2 >= steps
    assert (Fraction(gdp.sigma(number, steps)) * Fraction(number)) ** 2 >= steps
    assert Fraction(gdp.compose(spent)) ** 2 >= sum(Fraction(mu) ** 2 for mu in spent)


@given(mus, st.lists(mus, max_size=20))
def test_spending_what_remains_stays_within_the_total(total: float, spent: list[float]) -> None:
    left = gdp.remaining(total, spent)
    if left:
        assert total * (1 - 1e-9) <= gdp.compose([*spent, left]) <= total
    else:
        assert gdp.compose(spent) >= total * (1 - 1e-9)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.1, 0.999, 1.0, 3.0, 30.0, 100.0, 600.0])
def test_mu_of_pure_dp_is_twice_the_quantile(epsilon: float) -> None:
    with mpmath.workdps(400):
        e = mpmath.mpf(epsilon)
        # 2 Phi^-1(e^e/(1+e^e)): the root of P(N > mu/2) = 1/(1+e^e) must lie just below ours.
        mu = mpmath.mpf(gdp.mu_of_pure(epsilon))
        wanted = 1 / (1 + mpmath.exp(e))
        assert mpmath.ncdf(-mu / 2) <= wanted < mpmath.ncdf(-mu / 2 * (1 - mpmath.mpf("1e-9")))


@given(st.floats(0.01, 20), st.floats(0, 1))
def test_the_mu_of_pure_dp_covers_randomised_response(epsilon: float, fraction: float) -> None:
    """Randomised response is the worst epsilon-DP mechanism: delta(e) = (e^epsilon - e^e) / (1 +
    e^epsilon)."""
    at = fraction * epsilon
    worst = -math.expm1(at - epsilon) / (1 + math.exp(-epsilon))
    assert worst <= gdp.delta(at, gdp.mu_of_pure(epsilon)) * (1 + 1e-12)


@pytest.mark.parametrize(
    "mu", [1e-9, 1e-4, 0.0073, 0.0325, 0.268, 1.0, 5.0, 56.0, 60.0, *map(float, range(70, 400, 7))]
)
def test_pure_dp_within_a_mu_never_costs_more_than_it(mu: float) -> None:
    epsilon = gdp.pure_of_mu(mu)
    assert gdp.mu_of_pure(epsilon) <= mu
    if mu < 56.5:
        assert gdp.mu_of_pure(epsilon * (1 + 1e-6)) > mu
    else:  # a bound takes its place, which leaves out the tail's other factor
        assert epsilon == pytest.approx(mu * mu / 8, rel=0.01)


def test_mu_of_pure_dp_beyond_the_floats_is_still_a_bound() -> None:
    assert gdp.mu_of_pure(699) < gdp.mu_of_pure(701) < gdp.mu_of_pure(699) * 1.01


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0])
@pytest.mark.parametrize(
    "function",
    [
        lambda bad: gdp.delta(bad, 1),
        lambda bad: gdp.delta(1, bad),
        lambda bad: gdp.epsilon(bad, 1e-5),
        lambda bad: gdp.epsilon(1, bad),
        lambda bad: gdp.mu_from_epsilon(bad, 1e-5),
        lambda bad: gdp.mu_from_epsilon(1, bad),
        lambda bad: gdp.sigma(bad, 1),
        lambda bad: gdp.sigma(1, bad),
        lambda bad: gdp.mu_from_sigma(bad, 1),
        lambda bad: gdp.mu_from_sigma(1, bad),
        lambda bad: gdp.compose([1, bad]),
        lambda bad: gdp.remaining(bad, [1]),
        lambda bad: gdp.remaining(1, [bad]),
        lambda bad: gdp.mu_of_pure(bad),
        lambda bad: gdp.pure_of_mu(bad),
    ],
)
def test_impossible_numbers_are_refused(function: object, bad: float) -> None:
    with pytest.raises(BadInput, match=str(bad)):
        function(bad)  # type: ignore[operator]


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 1e-5), (1, 0), (1, 1)])
def test_a_budget_is_positive_and_delta_below_one(epsilon: float, delta: float) -> None:
    with pytest.raises(BadInput):
        gdp.mu_from_epsilon(epsilon, delta)


@pytest.mark.parametrize("epsilon", [1e155, 1e308])
def test_an_epsilon_whose_figures_would_overflow_is_named(epsilon: float) -> None:
    with pytest.raises(BadInput, match=r"epsilon is 1e\+\d+. It must be at most 1e\+12"):
        gdp.mu_from_epsilon(epsilon, 1e-5)
