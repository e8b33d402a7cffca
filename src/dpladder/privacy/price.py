"""What a private search spends of a total: its events, from public figures alone. A job asks the ledger instead, which
holds what the plan asked for here."""

from __future__ import annotations

import math
from functools import cache

from dpladder.config.searches import (
    DpHypo,
    KoskelaKulkarni,
    NaiveComposition,
    PrivateSearch,
    ProposeTest,
    RandomSearch,
    SecretRuns,
)
from dpladder.errors import Refused
from dpladder.privacy import gdp, selection, winner
from dpladder.privacy.selection import STRAIGHT, Lean, Runs
from dpladder.privacy.spend import (
    Counted,
    Exponential,
    Gaussian,
    Relation,
    RepeatAndSelect,
    SubsetSelect,
)

SHAPES = {"logarithmic": 0.0, "geometric": 1.0, "poisson": math.inf}


@cache
def price(search: PrivateSearch, epsilon: float, delta: float, relation: Relation) -> tuple[Counted, ...]:
    """The dearest events of this search that cost no more than the total."""
    total = gdp.mu(epsilon, delta)
    match search:
        case RandomSearch():
            return (Counted(Gaussian(gdp.sigma(total, 1))),)
        case NaiveComposition(runs=runs):
            return (Counted(Gaussian(gdp.sigma(total, runs)), runs),)
        case ProposeTest():
            return _rounds(search, total, epsilon, delta)
        case KoskelaKulkarni():
            return (Counted(_on_subset(search, epsilon, delta, relation)),)
    return (Counted(_repeated(search, epsilon, delta)),)


def runs_of(search: SecretRuns) -> Runs:
    return Runs(search.mean, SHAPES[search.law])


def lean_of(search: SecretRuns, epsilon: float) -> Lean:
    """How far DP-HyPO's proposals may lean for its share of epsilon: (2 + shape) log(high/low) of it (Wang et al. 2023,
    Theorem 1)."""
    if not isinstance(search, DpHypo):
        return STRAIGHT
    half = search.adapting * epsilon / (2 + SHAPES[search.law]) / 2
    return Lean(math.exp(-half), math.exp(half))


def rounds_of(search: ProposeTest) -> int:
    """The most there can be: every hit gains a step, and between two hits one miss at most (Ding & Wu, section 4). Counted
    from a level of 0, whatever the classes."""
    return 2 * math.ceil(1 / search.step) - 1


def _repeated(search: SecretRuns, epsilon: float, delta: float) -> RepeatAndSelect:
    runs, lean = runs_of(search), lean_of(search, epsilon)
    limit = selection.most(runs)

    def event(mu: float) -> RepeatAndSelect:
        return RepeatAndSelect(Gaussian(gdp.sigma(mu, 1)), runs.mean, runs.shape, limit, lean.low, lean.high)

    return event(selection.largest(lambda mu: _alone(event(mu), delta), epsilon, gdp.mu(epsilon, delta)))


def _on_subset(search: KoskelaKulkarni, epsilon: float, delta: float, relation: Relation) -> SubsetSelect:
    """Every run costs as much as the final training: the same noise, relative to its own sum."""
    if relation != "add_remove":
        raise Refused(
            f"tuning on a random subset is bounded under add_remove alone, and the lineage's relation is {relation}. "
            "Choose another way to search."
        )
    runs = runs_of(search)
    limit = selection.most(runs)

    def event(mu: float) -> SubsetSelect:
        one = Gaussian(gdp.sigma(mu, 1))
        return SubsetSelect(
            search.share, RepeatAndSelect(one, runs.mean, runs.shape, limit), one, search.apart
        )

    return event(selection.largest(lambda mu: _alone(event(mu), delta), epsilon, gdp.mu(epsilon, delta)))


def _rounds(search: ProposeTest, total: float, epsilon: float, delta: float) -> tuple[Counted, ...]:
    final, rounds = math.sqrt(search.final) * total, rounds_of(search)

    def cost(epsilon0: float) -> float:
        return selection.tested_epsilon(final, epsilon0, rounds, delta)

    epsilon0 = selection.largest(cost, epsilon, epsilon)
    return Counted(Gaussian(gdp.sigma(final, 1))), Counted(Exponential(epsilon0), rounds)


def _alone(event: RepeatAndSelect | SubsetSelect, delta: float) -> float:
    cost = winner.epsilon(0.0, [(event, 1)], delta)
    return math.inf if cost is None else cost
