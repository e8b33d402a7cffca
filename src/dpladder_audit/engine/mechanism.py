"""A mechanism as its auditor sees it, and what its event claims."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any, TypeVar

from dpladder.errors import BadInput
from dpladder.privacy.accounting import events
from dpladder.privacy.accounting.events import (
    Booked,
    Composed,
    Counted,
    Event,
    Laplace,
    Relation,
    Sampled,
)
from dpladder.privacy.arrays import Floats
from dpladder.privacy.release.meter import Draw, Meter, Streams

SourceOfQuery = Callable[[str, str], Streams]
Run = Callable[[Any, Meter], Floats]
Unit = TypeVar("Unit")


@dataclass(frozen=True)
class Mechanism:
    """A mechanism as its auditor sees it: the event charged for one run, and how to run it on
    made-up data.

    Attributes:
        name: of the attack.
        event: what the ledger would be charged.
        draws: that a run makes.
        scale: of the noise in what is published: one figure, or one per number.
        run: from data and a meter to what is published, a row of numbers. It may have a method
            `many`, which takes meters instead of one: what the workflow makes in one pass is
            attacked so.
        neighbours: pairs of data sets. On the first one of all, every published number must be a
            constant plus noise; for a learner, records that contribute nothing do that.
        relation: what makes them neighbours.
        tight: promises that some pair reaches the claim. So the audit can show that it sees: the
            bound must come within a factor of two. Claim an epsilon of 6 to 20 then (2 or 3 for
            Laplace noise).
        winner: of a search, which puts one of many trainings out, that training's event. What is
            published carries its noise, and may move by no more; the bound on epsilon is held
            against the whole search.
        effort: share of the usual number of runs, for what is slow.
    """

    name: str
    event: Event
    draws: tuple[Draw, ...]
    scale: float | Floats
    run: Run
    neighbours: tuple[tuple[Any, Any], ...]
    relation: Relation = "add_remove"
    tight: bool = False
    winner: Event | None = None
    effort: float = 1.0


def neighbours(
    base: Sequence[Unit], canaries: Sequence[Unit], relation: Relation
) -> tuple[tuple[tuple[Unit, ...], tuple[Unit, ...]], ...]:
    """Every way in which one canary makes a neighbour of some data.

    Args:
        base: units that both neighbours hold.
        canaries: units that one neighbour has more, or in place of another. Under replace_one the
            first data set of all holds the first canary, so let that be the one that contributes
            nothing.
        relation: `add_remove` or `replace_one`.

    Returns:
        Pairs of data sets. Under add_remove a canary joins nobody like it, and then its like.
    """
    data = tuple(base)
    if relation == "replace_one":
        return tuple(((*data, one), (*data, other)) for one, other in permutations(canaries, 2))
    added = tuple((data, (*data, canary)) for canary in canaries)
    doubled = tuple(((*data, canary), (*data, canary, canary)) for canary in canaries)
    return added + doubled


def claimed_shift(mechanism: Mechanism) -> float:
    """By how much one unit may move a release, in units of the noise: what the event says, sample
    or no sample.

    Returns:
        mu for Gaussian noise, in L2; epsilon for Laplace noise, in L1.

    Raises:
        BadInput: the event is of neither kind of noise, or not of the kind that is drawn.
    """
    event = mechanism.winner or _without_sampling(mechanism.event)
    claimed = (
        _pure_epsilon(event)
        if kind_of_noise(mechanism) == "laplace"
        else events.mu(event) or math.nan
    )
    if math.isnan(claimed):
        raise BadInput(
            f"mechanism {mechanism.name} is charged as {mechanism.event} and adds "
            f"{kind_of_noise(mechanism)} noise. An audit knows events made of Gaussian or of "
            "Laplace, Poisson sampled or not, with noise to match."
        )
    return claimed


def _without_sampling(event: Event) -> Event:
    """The event as if everybody were in every sample: sampling makes it cost less, and moves no sum
    less."""
    match event:
        case Sampled(_, inner):
            return _without_sampling(inner)
        case Composed(events) | Booked(events):
            return Composed(
                tuple(Counted(_without_sampling(part.event), part.count) for part in events)
            )
    return event


def _pure_epsilon(event: Event) -> float:
    """The sum of the epsilons of Laplace noise; NaN where an event is another one."""
    match event:
        case Laplace(scale):
            return 1 / scale
        case Composed(events):
            return sum(part.count * _pure_epsilon(part.event) for part in events)
    return math.nan


def kind_of_noise(mechanism: Mechanism) -> str:
    """Gaussian or Laplace: a mechanism of both is refused, for one norm counts in an attack."""
    if mechanism.winner is not None:
        return "gaussian"
    kinds = {draw.distribution for draw in mechanism.draws} & {"gaussian", "laplace"}
    if len(kinds) != 1:
        raise BadInput(
            f"mechanism {mechanism.name} declares {' and '.join(sorted(kinds)) or 'no'} noise. An "
            "audit takes Gaussian or Laplace noise in one mechanism: register the others on their "
            "own."
        )
    return kinds.pop()


def norm_of(mechanism: Mechanism) -> int:
    """The norm in which sensitivity counts: L1 for Laplace, L2 for Gaussian noise."""
    return 1 if kind_of_noise(mechanism) == "laplace" else 2
