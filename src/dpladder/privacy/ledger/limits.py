"""What a lineage has room for: the filter over its life, and what a job may spend of what it
reserved."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from dpladder.errors import Refused
from dpladder.privacy.accounting import booking, gdp
from dpladder.privacy.accounting.booking import NO_COST, Entry
from dpladder.privacy.accounting.composition import Composition, compose, entry_of, largest_entry
from dpladder.privacy.accounting.events import Job, Partition, Spend
from dpladder.privacy.accounting.rounding import round_down, round_up, round_up_short
from dpladder.privacy.ledger.state import LedgerCharge, Terms


def caps(terms: Terms) -> Entry:
    """What all that is ever spent on a lineage may come to, component by component: a filter on
    each. That is what makes the limit hold whatever is chosen because of what (booking.py)."""
    beside = Entry(loss=terms.loss, weight=math.log(terms.weight), delta0=terms.share * terms.delta)
    limit = terms.lifetime_epsilon
    mu = math.inf if limit is None else booking.largest_mu(limit, terms.delta, beside)
    return replace(beside, mu=mu)


def remaining_epsilon(terms: Terms, charged: tuple[Spend, ...]) -> float:
    """Epsilon of the largest Gaussian mechanism that the limit still has room for, rounded down:
    who asks for just that must get it.

    Args:
        terms: of the lineage.
        charged: all that was charged, what is reserved included.
    """
    room = gdp.remaining(caps(terms).mu, [largest_entry(charged).mu])
    return math.floor(gdp.epsilon(room, terms.delta) * 1e4) / 1e4 if room else 0.0


def lifetime_cost(terms: Terms, spends: Sequence[Spend]) -> Composition:
    """What spends cost over a lineage's life, at its delta."""
    return compose(spends, terms.delta)


def check_spends(terms: Terms, job: Job, spends: Iterable[Spend]) -> None:
    """Refuse spends on another lineage, or under another relation, than the ledger's own.

    Args:
        terms: the ledger's.
        job: for the message.
        spends: what is to be charged.

    Raises:
        Refused: one is another lineage's, or under another relation.
    """
    for spend in spends:
        if (spend.lineage, spend.relation) != (terms.lineage, terms.relation):
            raise Refused(
                f"{job} spends on lineage {spend.lineage} under {spend.relation}; this "
                f"is the ledger of {terms.lineage} under {terms.relation}, for life. Spend on each "
                "lineage in its own ledger and relation."
            )


def check_within(charge: LedgerCharge, concrete: Iterable[Spend], job: Job) -> None:
    """Refuse what a job would spend on any part beyond what it reserved, component by component.

    A plan that fitted must fit still when it is carried out.

    Args:
        charge: the reservation.
        concrete: what the job would spend.
        job: for the message.

    Raises:
        Refused: it is more, or something else.
    """
    declared, actual = _entries_by_partition(charge.spends), _entries_by_partition(concrete)
    if any(
        not entry.costs_no_more_than(declared.get(parts, NO_COST))
        for parts, entry in actual.items()
    ):
        raise Refused(
            f"{job} would spend more than it reserved, or something else. Derive its "
            "noise from the reserved mu (gdp.sigma rounds to the safe side), or plan the job again."
        )


def _entries_by_partition(spends: Iterable[Spend]) -> dict[Partition, Entry]:
    """What is spent on each partition."""
    by_partition: dict[Partition, list[Entry]] = {}
    for spend in spends:
        by_partition.setdefault(spend.partition, []).append(entry_of(spend))
    return {partition: booking.total(entries) for partition, entries in by_partition.items()}


def check_lifetime(terms: Terms, paid: tuple[Spend, ...], wanted: tuple[Spend, ...]) -> None:
    """The filter: every part stays within every cap.

    Args:
        terms: of the lineage.
        paid: all that was charged before, what is reserved included.
        wanted: what is asked for now.

    Raises:
        Refused: there is no room for it. Nothing was charged.
    """
    if over := lifetime_problem(terms, paid, wanted):
        raise Refused(f"{over}. Nothing was charged: {_WITHIN}.")


_WITHIN = (
    "undo what asks for it, and what was released is restored, free; or ask for no more than "
    "remains. What is reserved and unused (`dpladder ledger show`) comes back when a run of its "
    "experiment no longer plans it, or by the refund() of whoever reserved it"
)


ALL_OF_DELTA = (
    "trainings on samples and searches like them would be booked at all of delta, and no figure "
    "would be left: lower privacy.share, or research.repeats, or train on full batches"
)


def lifetime_problem(terms: Terms, paid: tuple[Spend, ...], wanted: tuple[Spend, ...]) -> str:
    """What there is no room for, in a sentence; empty where there is room. Research has no limit
    but delta itself.

    Args:
        terms: the lineage's.
        paid: all that was charged before, what is reserved included.
        wanted: what is asked for now.
    """
    limit, need = caps(terms), largest_entry(paid + wanted)
    if terms.mode == "research":
        return ALL_OF_DELTA if need.delta0 >= terms.delta else ""
    if need.delta0 > limit.delta0:
        return (
            f"lineage {terms.lineage} keeps {round_up_short(terms.share)} of its delta for "
            "trainings on samples and for searches booked like them, and this would use more. That "
            "share is fixed when a lineage is opened (privacy.share, by default 0.3 where a config "
            "samples and 0.1 where it searches so). Train on full batches"
        )
    if (need.loss > limit.loss or need.weight > limit.weight) and limit.mu < math.inf:
        return (
            f"lineage {terms.lineage} has a lifetime limit that leaves private "
            f"selections a loss of {round_up_short(terms.loss)} and a weight of "
            f"{round_up_short(terms.weight)}; this needs {round_up(need.loss)} and "
            f"{round_up(math.exp(need.weight) + 1e-6, 2)}. Search by the ladder; or, for data that "
            "nothing was spent on yet, declare privacy.lifetime.loss and privacy.lifetime.weight "
            "so (dpladder.Ledger: loss=, weight=)"
        )
    if terms.lifetime_epsilon is None or need.mu <= limit.mu:
        return ""
    before, total = compose(paid, terms.delta), compose(paid + wanted, terms.delta)
    room = remaining_epsilon(terms, paid)
    remains = f", which leaves epsilon = {round_down(room)}" if room else ""
    return (
        f"lineage {terms.lineage} has a lifetime limit of epsilon = "
        f"{round_up_short(terms.lifetime_epsilon)} at delta = {round_up_short(terms.delta)}. Spent "
        f"or reserved so far: {round_up(before.epsilon)}{remains}. Asked for: "
        f"{round_up(compose(wanted, terms.delta).epsilon)}, which would make "
        f"{round_up(total.epsilon)}"
    )
