"""What a private search spends of a total: its events, from public figures alone.

A plan asks here before anything is read, and nothing heavy is loaded. A job asks the ledger
instead, which holds what the plan asked for.
"""

from __future__ import annotations

import math
from functools import cache
from importlib import import_module

from dpladder.config.search_sections import (
    PLUGIN_SEARCHES,
    DpHypo,
    KoskelaKulkarni,
    NaiveComposition,
    PrivateSearch,
    ProposeTest,
    RandomSearch,
    SecretRuns,
)
from dpladder.errors import Refused
from dpladder.privacy.accounting import booking, gdp, selection
from dpladder.privacy.accounting.booking import Entry
from dpladder.privacy.accounting.events import (
    Booked,
    Counted,
    Exponential,
    Gaussian,
    Relation,
    RepeatAndSelect,
    SubsetSelect,
)
from dpladder.privacy.accounting.selection import STRAIGHT, Lean, Runs

SHAPES = {"logarithmic": 0.0, "geometric": 1.0, "poisson": math.inf}


@cache
def price(
    search: PrivateSearch, epsilon: float, delta: float, relation: Relation
) -> tuple[Counted, ...]:
    """The dearest events of this search that cost no more than the total."""
    match search:
        case RandomSearch():  # the whole total, on one training
            return (Counted(Gaussian(gdp.sigma(gdp.mu_from_epsilon(epsilon, delta), 1))),)
        case NaiveComposition():  # trainings of equal mu, whose squares add up to the total's
            sigma = gdp.sigma(gdp.mu_from_epsilon(epsilon, delta), search.runs)
            return (Counted(Gaussian(sigma), search.runs),)
        case KoskelaKulkarni():
            return (Counted(_cost_on_subset(search, epsilon, delta, relation)),)
        case ProposeTest():
            return _cost_of_proposals(search, epsilon, delta, relation)
    if search.name in PLUGIN_SEARCHES:
        cost = import_module(f"{PLUGIN_SEARCHES[search.name].room}.cost")
        return tuple(cost.price(search, epsilon, delta, relation))
    return (Counted(_cost_of_repeats(search, epsilon, delta)),)


def runs_of(search: SecretRuns) -> Runs:
    return Runs(search.mean, SHAPES[search.law])


def lean_bounds(search: SecretRuns, epsilon: float) -> Lean:
    """How far DP-HyPO's proposals may lean for its share of epsilon: (2 + shape) log(high/low) of
    it (Wang et al. 2023, Theorem 1)."""
    if not isinstance(search, DpHypo):
        return STRAIGHT
    half = search.adapting * epsilon / (2 + SHAPES[search.law]) / 2
    return Lean(math.exp(-half), math.exp(half))


def _cost_of_repeats(search: SecretRuns, epsilon: float, delta: float) -> RepeatAndSelect:
    runs, lean = runs_of(search), lean_bounds(search, epsilon)
    limit = selection.largest_count(runs)

    def event(mu: float) -> RepeatAndSelect:
        return RepeatAndSelect(
            Gaussian(gdp.sigma(mu, 1)), runs.mean, runs.shape, limit, lean.low, lean.high
        )

    return event(
        selection.largest(
            lambda mu: epsilon_alone(event(mu), delta), epsilon, gdp.mu_from_epsilon(epsilon, delta)
        )
    )


def epsilon_alone(event: RepeatAndSelect | SubsetSelect, delta: float) -> float:
    return booking.epsilon(booking.price(event, "add_remove"), delta)


def _cost_on_subset(
    search: KoskelaKulkarni, epsilon: float, delta: float, relation: Relation
) -> SubsetSelect:
    """Every run costs as much as the final training, the same noise relative to its own sum."""
    if relation != "add_remove":
        raise Refused(
            "tuning on a random subset is bounded under add_remove alone, and the lineage's "
            f"relation is {relation}. Choose another way to search."
        )
    runs = runs_of(search)
    limit = selection.largest_count(runs)
    delta0 = booking.delta0_of(delta, booking.FINAL)

    def event(mu: float) -> SubsetSelect:
        one = Gaussian(gdp.sigma(mu, 1))
        tuning = RepeatAndSelect(one, runs.mean, runs.shape, limit)
        return SubsetSelect(search.share, tuning, one, search.apart, delta0)

    return event(
        selection.largest(
            lambda mu: epsilon_alone(event(mu), delta),
            epsilon,
            gdp.mu_from_epsilon(epsilon, delta),
            1e-6,
        )
    )


def _cost_of_proposals(
    search: ProposeTest, epsilon: float, delta: float, relation: Relation
) -> tuple[Counted, ...]:
    """A share of mu^2 for the final training, the rest for as many rounds of tests as there can
    be."""
    rounds, delta0 = rounds_of(search), booking.delta0_of(delta, booking.FINAL)
    whole = booking.largest_mu(epsilon, delta, Entry(delta0=delta0))
    final = math.sqrt(search.final) * whole
    tests = gdp.remaining(whole, [final])

    def booked(epsilon0: float) -> Booked:
        return Booked((Counted(Exponential(epsilon0), rounds),), delta0)

    def cost(epsilon0: float) -> float:
        try:
            return booking.price(booked(epsilon0), relation).mu
        except Refused:  # no Gaussian dominates that many rounds: a smaller epsilon is looked for
            return math.inf

    epsilon0 = selection.largest(cost, tests, 2 * gdp.pure_of_mu(tests), 1e-7)
    return Counted(Gaussian(gdp.sigma(final, 1))), Counted(booked(epsilon0))


def rounds_of(search: ProposeTest) -> int:
    """The most there can be: every hit gains a step, and between two hits one miss at most (Ding &
    Wu, section 4). Counted from a level of 0, whatever the classes."""
    return 2 * math.ceil(1 / search.step) - 1
