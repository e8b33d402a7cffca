"""What a lineage has room for: the filter over its life, and what a job may spend of what it
reserved."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from dpladder.errors import Refused
from dpladder.privacy.accounting import booking, gdp
from dpladder.privacy.accounting.booking import FREE, Entry
from dpladder.privacy.accounting.composition import Composition, compose, entry_of, most
from dpladder.privacy.accounting.events import Job, Partition, Spend
from dpladder.privacy.accounting.shown import down, up, up_short
from dpladder.privacy.ledger.state import Held, Terms, called


def caps(terms: Terms) -> Entry:
    """What all that is ever spent on a lineage may come to, component by component: a filter on
    each (booking.py)."""
    beside = Entry(loss=terms.loss, weight=math.log(terms.weight), delta0=terms.share * terms.delta)
    limit = terms.lifetime_epsilon
    mu = math.inf if limit is None else booking.largest_mu(limit, terms.delta, beside)
    return replace(beside, mu=mu)


def left(terms: Terms, charged: tuple[Spend, ...]) -> float:
    """Epsilon of the largest Gaussian mechanism that the limit still has room for, rounded down:
    who asks for just that must get it."""
    room = gdp.remaining(caps(terms).mu, [most(charged).mu])
    return math.floor(gdp.epsilon(room, terms.delta) * 1e4) / 1e4 if room else 0.0


def ever(terms: Terms, spends: Sequence[Spend]) -> Composition:
    """What spends cost over a lineage's life."""
    return compose(spends, terms.delta)


def check_spends(terms: Terms, job: Job, spends: Iterable[Spend]) -> None:
    for spend in spends:
        if (spend.lineage, spend.relation) != (terms.lineage, terms.relation):
            raise Refused(
                f"{called(job)} spends on lineage {spend.lineage} under {spend.relation}; this is "
                f"the ledger of {terms.lineage} under {terms.relation}, for life. Spend on each "
                "lineage in its own ledger and relation."
            )


def check_within(held: Held, concrete: Iterable[Spend], job: Job) -> None:
    """What a job really spends on each part may cost no more than it reserved, component by
    component."""
    declared, asked = _by_parts(held.spends), _by_parts(concrete)
    if any(not entry.within(declared.get(parts, FREE)) for parts, entry in asked.items()):
        raise Refused(
            f"{called(job)} would spend more than it reserved, or something else. Derive its "
            "noise from the reserved mu (gdp.sigma rounds to the safe side), or plan the job again."
        )


def _by_parts(spends: Iterable[Spend]) -> dict[Partition, Entry]:
    """What is spent on each partition."""
    found: dict[Partition, list[Entry]] = {}
    for spend in spends:
        found.setdefault(spend.partition, []).append(entry_of(spend))
    return {partition: booking.total(entries) for partition, entries in found.items()}


def check_lifetime(terms: Terms, kept: tuple[Spend, ...], asked: tuple[Spend, ...]) -> None:
    """The filter: every part stays within every cap."""
    if over := over_lifetime(terms, kept, asked):
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


def over_lifetime(terms: Terms, kept: tuple[Spend, ...], asked: tuple[Spend, ...]) -> str:
    """What there is no room for; empty where there is. Research has no limit but delta itself."""
    limit, need = caps(terms), most(kept + asked)
    if terms.mode == "research":
        return ALL_OF_DELTA if need.delta0 >= terms.delta else ""
    if need.delta0 > limit.delta0:
        return (
            f"lineage {terms.lineage} keeps {up_short(terms.share)} of its delta for trainings on "
            "samples and for searches booked like them, and this would use more. That share is "
            "fixed when a lineage is opened (privacy.share, by default 0.3 where a config samples "
            "and 0.1 where it searches so). Train on full batches"
        )
    if (need.loss > limit.loss or need.weight > limit.weight) and limit.mu < math.inf:
        return (
            f"lineage {terms.lineage} was opened with a lifetime limit that leaves private "
            f"selections a loss of {up_short(terms.loss)} and a weight of "
            f"{up_short(terms.weight)}; this needs {up(need.loss)} and "
            f"{up(math.exp(need.weight) + 1e-6, 2)}. Search by the ladder; or, for data that "
            "nothing was spent on yet, declare privacy.lifetime.loss and privacy.lifetime.weight "
            "so (dpladder.Ledger: loss=, weight=)"
        )
    if terms.lifetime_epsilon is None or need.mu <= limit.mu:
        return ""
    before, total = compose(kept, terms.delta), compose(kept + asked, terms.delta)
    room = left(terms, kept)
    remains = f", which leaves epsilon = {down(room)}" if room else ""
    return (
        f"lineage {terms.lineage} has a lifetime limit of epsilon = "
        f"{up_short(terms.lifetime_epsilon)} at delta = {up_short(terms.delta)}. Spent or "
        f"reserved so far: {up(before.epsilon)}{remains}. Asked for: "
        f"{up(compose(asked, terms.delta).epsilon)}, which would make {up(total.epsilon)}"
    )
