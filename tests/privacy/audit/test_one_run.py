"""The bound from one run: right where it can be said in closed form, and wrong no more often than
it says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dpladder.errors import BadInput
from dpladder_audit.engine.one_run import mu_bound, refutes

CANARIES, GAMES = 60, 40_000


@pytest.mark.parametrize("right", [0.6, 0.9, 0.99])
def test_one_coin_is_guessed_as_often_as_a_gaussian_allows(right):
    """The best guess about one coin is right with probability Phi(mu/2), so that is what `right` of
    the time refutes."""
    assert mu_bound(1, 1, 1, right) == pytest.approx(2 * stats.norm.ppf(right), rel=1e-3)


def test_guesses_that_say_nothing_refute_nothing():
    assert mu_bound(30, 60, CANARIES, 0.05) == 0.0
    assert mu_bound(0, 0, CANARIES, 0.05) == 0.0
    with pytest.raises(BadInput, match="cannot be"):
        mu_bound(61, 60, CANARIES, 0.05)


@given(st.integers(1, 100), st.integers(0, 99), st.floats(1e-4, 0.4))
def test_more_right_guesses_and_more_chance_refute_more(guesses, correct, chance):
    correct = min(correct, guesses - 1)
    found = mu_bound(correct, guesses, 200, chance)
    assert found <= mu_bound(correct + 1, guesses, 200, chance) + 2e-4
    assert found <= mu_bound(correct, guesses, 200, 1.1 * chance) + 2e-4


def apart(coins, mu, random):
    """A number for each coin."""
    return coins * mu + random.normal(size=coins.shape)


def together(coins, mu, random):
    """Two numbers for all coins: their noise is shared, so guesses are right, or wrong,
    together."""
    half = coins.shape[1] // 2
    signs = np.where(np.arange(coins.shape[1]) < half, 1.0, -1.0)
    told = (coins * signs).sum(1, keepdims=True) * mu + random.normal(size=(len(coins), 1))
    return told * signs


def gambled(coins, mu, random):
    """The same, but told in some games alone, so that luck is shared."""
    told = apart(coins, mu, random)
    shared = random.normal(size=(len(coins), 1)) > 1.0
    return np.where(shared, told, 0.5 * mu)


@pytest.mark.ci
@pytest.mark.parametrize("release", [apart, together, gambled])
@pytest.mark.parametrize("mu", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("guesses", [6, 20, 60])
@pytest.mark.parametrize("chance", [0.05, 0.3])
def test_an_honest_claim_is_refuted_no_more_often_than_stated(release, mu, guesses, chance):
    random = np.random.default_rng(0)
    coins = random.random((GAMES, CANARIES)) < 0.5
    scores = release(coins, mu, random) - mu / 2
    surest = np.argsort(-np.abs(scores), axis=1)[:, :guesses]
    correct = np.take_along_axis((scores > 0) == coins, surest, 1).sum(1)
    refuted = [refutes(mu, count, guesses, CANARIES, chance) for count in range(guesses + 1)]
    failed = int(np.array(refuted)[correct].sum())
    assert failed <= stats.binom.isf(1e-6, GAMES, chance)


def test_a_claim_of_half_of_what_is_true_is_refuted_in_most_games():
    random = np.random.default_rng(1)
    coins = random.random((300, 2_000)) < 0.5
    scores = apart(coins, 2.0, random) - 1.0
    surest = np.argsort(-np.abs(scores), axis=1)[:, :500]
    correct = np.take_along_axis((scores > 0) == coins, surest, 1).sum(1)
    assert np.mean([refutes(1.0, int(count), 500, 2_000, 0.05) for count in correct]) > 0.9
