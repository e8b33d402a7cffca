"""The best trial is the one with the highest released score; a private selection has the law it claims."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from dpladder.errors import BadInput, Refused
from dpladder.privacy import gdp
from dpladder.privacy.meter import Meter
from dpladder.search.select import best, select_privately, selection_draws, selection_epsilon
from dpladder.search.trial import Trial


def trials(*scores):
    return [Trial(0, place, 0.1, 0.03, 1.0 + place, score, 10.0, 100) for place, score in enumerate(scores)]


class Streams:
    """Streams by seed, so that a selection can be repeated."""

    def __init__(self, seed):
        self.seed = seed

    def stream(self, name, index):
        return f"{name}/{index}/{self.seed}".encode().ljust(32, b".")[:32]


def picked(counts, epsilon, relation="add_remove", repeats=4000):
    return Counter(
        select_privately(counts, epsilon, relation, Meter(selection_draws(len(counts)), Streams(seed)))
        for seed in range(repeats)
    )


def test_the_highest_score_wins():
    assert best(trials(3.0, 9.0, -4.0)).trial == 1


def test_equal_scores_go_to_the_first_in_public_order_whatever_the_order_given():
    tied = trials(5.0, 5.0, 5.0)
    assert best(tied).trial == 0
    assert best(tied[::-1]).trial == 0


def test_a_score_that_is_not_finite_never_wins():
    assert best(trials(math.nan, 2.0, math.inf)).trial == 1


def test_no_usable_score_is_named():
    with pytest.raises(BadInput, match="none of the rung's 2 trials has a finite score"):
        best(trials(math.nan, None))


@pytest.mark.parametrize(("relation", "factor"), [("add_remove", 1.0), ("replace_one", 2.0)])
def test_the_exponential_mechanism_has_its_law(relation, factor):
    """4,000 selections against softmax: chi-square with 2 degrees of freedom, above 27.6 once in 10^6."""
    counts, epsilon = [10, 12, 7], 0.5
    weights = np.exp(epsilon / factor * np.array(counts, dtype=float))
    expected = 4000 * weights / weights.sum()
    seen = picked(counts, epsilon, relation)
    assert sum((seen[i] - expected[i]) ** 2 / expected[i] for i in range(3)) < 27.6


def test_users_of_several_records_are_selected_for_with_less_certainty():
    counts, meter = [10, 12, 7], Meter(selection_draws(3), Streams(1))
    select_privately(counts, 0.5, "add_remove", meter, sensitivity=5.0)
    wide = Counter(
        select_privately(counts, 0.5, "add_remove", Meter(selection_draws(3), Streams(s)), sensitivity=1e6)
        for s in range(3000)
    )
    assert min(wide.values()) > 850  # 1,000 each, 5 standard deviations


def test_a_large_epsilon_finds_the_best_even_among_huge_counts():
    assert picked([10**9, 10**9 + 1, 0], 100.0, repeats=50) == Counter({1: 50})


def test_selection_draws_only_what_it_declares():
    meter = Meter(selection_draws(2), Streams(0))
    with pytest.raises(Refused):
        select_privately([1, 2, 3], 1.0, "add_remove", meter)


@pytest.mark.parametrize("mu", [1e-4, 0.0073, 0.0325, 0.268, 1.0, 5.0])
def test_selection_epsilon_never_costs_more_than_its_mu(mu):
    assert gdp.mu_of_pure(selection_epsilon(mu)) <= mu
    assert gdp.mu_of_pure(selection_epsilon(mu) * (1 + 1e-6)) > mu
