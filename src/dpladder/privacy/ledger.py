"""The ledger: everything ever spent on a lineage, as a journal of what happened to its items.

An item is one job's declared spends. It goes RESERVED → COMMITTED (before the job's first private read) → DONE, or from
RESERVED to REFUNDED. Whatever is not refunded is charged. That is why no damaged last entry can lose a charge: a torn
RESERVED gave nobody a token to spend with, a torn COMMITTED or DONE leaves the item charged, a torn REFUNDED gave nothing
back.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

from dpladder.errors import BadInput, Refused
from dpladder.privacy import gdp, journal
from dpladder.privacy.compose import Composition, compose, of_parts
from dpladder.privacy.home import Home, subkey
from dpladder.privacy.journal import Body, Chain, Journal
from dpladder.privacy.spend import Event, Job, Partition, Relation, Spend, from_json, mu, to_json

Mode = Literal["release", "research"]
Status = Literal["RESERVED", "COMMITTED", "DONE", "REFUNDED"]
Draws = Sequence[Mapping[str, Any]]

LATE = 0.1  # selections' share of a lineage's delta
LINEAGE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class Terms:
    """What a lineage's first entry fixes for life. `cap`: rows of one unit at most. In research mode no lifetime holds."""

    lineage: str
    relation: Relation
    unit: str
    cap: int
    delta: float
    split_rule: str
    lifetime_epsilon: float | None = None
    mode: Mode = "release"
    selections: bool = False  # whether private selections may be among what is ever spent under the limit

    def __post_init__(self) -> None:
        limit = self.lifetime_epsilon
        allowed = {
            "lineage": (LINEAGE_NAME.fullmatch(self.lineage), "letters, digits, - and _"),
            "relation": (self.relation in get_args(Relation), f"one of {', '.join(get_args(Relation))}"),
            "mode": (self.mode in get_args(Mode), f"one of {', '.join(get_args(Mode))}"),
            "cap": (self.cap >= 1, "1 or more"),
            "delta": (0.0 < self.delta < 1.0, "between 0 and 1"),
            "lifetime_epsilon": (limit is None or 0.0 < limit < float("inf"), "positive and finite, or none"),
        }
        for name, (holds, what) in allowed.items():
            if not holds:
                raise BadInput(f"{name} is {getattr(self, name)!r}. It must be {what}.")


@dataclass(frozen=True)
class Item:
    """One job's declared spends. `static` digests everything about the job that is known before data is read."""

    job: Job
    static: str
    spends: tuple[Spend, ...]


@dataclass(frozen=True)
class Held:
    """An item in the ledger. `spends` are what it is charged: the `declared` ones, from COMMITTED on the concrete ones,
    which cost no more."""

    token: str
    job: Job
    static: str
    declared: tuple[Spend, ...]
    spends: tuple[Spend, ...]
    status: Status = "RESERVED"
    query: str | None = None
    draws: Draws = ()
    nonce: str | None = field(default=None, repr=False)
    output: str | None = None


@dataclass(frozen=True)
class Anchor:
    """Where a ledger stood. A statement carries it, so that a ledger put back in time is found out."""

    lineage: str
    seq: int
    sha256: str


@dataclass
class State:
    """What the entries read so far add up to."""

    chain: Chain = field(default_factory=Chain)
    terms: Terms | None = None
    items: dict[str, Held] = field(default_factory=dict)
    tokens: dict[Job, list[str]] = field(default_factory=dict)
    nonces: set[str] = field(default_factory=set)

    def charged(self, *without: str) -> tuple[Spend, ...]:
        """Every spend that was not refunded, but those of the tokens in `without`."""
        counted = (h for h in self.items.values() if h.status != "REFUNDED" and h.token not in without)
        return tuple(spend for held in counted for spend in held.spends)

    def of(self, job: Job) -> list[Held]:
        """What was charged for a job, oldest first."""
        held = [self.items[token] for token in self.tokens.get(job, ())]
        return [h for h in held if h.status != "REFUNDED"]

    def done(self, query: str) -> Held | None:
        """The item that released `query`."""
        return next((h for h in self.items.values() if h.query == query and h.status == "DONE"), None)


@dataclass(frozen=True)
class Ledger:
    """A lineage's ledger. What was read of it is remembered: entries are only ever added."""

    home: Home
    lineage: str
    state: State = field(default_factory=State, repr=False, compare=False)

    @property
    def folder(self) -> Path:
        return self.home.ledgers / self.lineage


def open_ledger(home: Home, terms: Terms) -> Ledger:
    """The ledger of a lineage, opened under `terms` when new. Other terms are refused: they hold for life."""
    ledger = Ledger(home, terms.lineage)

    def opened(state: State) -> Step:
        if state.terms is None:
            _refuse_orphan(ledger)
            return "OPENED", dataclasses.asdict(terms)
        check_terms(state.terms, terms)
        return None

    try:
        ledger.folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise journal.unwritable(ledger.folder, error) from None
    _append(ledger, opened)
    return ledger


def check_terms(fixed: Terms, given: Terms) -> None:
    old, new = dataclasses.asdict(fixed), dataclasses.asdict(given)
    if differing := [f"{key} is {old[key]}, not {new[key]}" for key in old if old[key] != new[key]]:
        raise Refused(
            f"lineage {fixed.lineage} was opened under other terms, which hold for its life: {'; '.join(differing)}. "
            "Go back to them. A changed version of the same data is the same lineage and gets no new budget."
        )


def reserve(ledger: Ledger, items: Iterable[Item], respend: bool = False) -> tuple[Held, ...]:
    """Charge the items that are new, all or none, in one entry; each item's place in the ledger comes back."""
    wanted = tuple(items)

    def reserved(state: State) -> Step:
        new, replaced = admit(terms_of(ledger, state), state, wanted, respend)
        body = [{"token": secrets.token_hex(16), **_to_json(item)} for item in new]
        return ("RESERVED", {"items": body, "replaces": replaced}) if new or replaced else None

    state = _append(ledger, reserved)
    return tuple(_place(state, item) for item in wanted)


def admit(
    terms: Terms, state: State, items: Sequence[Item], respend: bool = False
) -> tuple[list[Item], list[str]]:
    """The items that would be new charges, and the tokens of unused reservations that they replace. Writes nothing.

    A job has one unused reservation at most. What it holds under the same `static` stands; with `respend` even what is
    used is reserved once more, and a job that proves unchanged when it runs is restored and gives that back.
    """
    if len({item.job for item in items}) < len(items):
        raise BadInput(
            "a job is declared twice in one reservation. Declare each job once, with all its spends."
        )
    new: list[Item] = []
    replaced: list[str] = []
    paid_again: list[Job] = []
    for item in items:
        _check_spends(terms, item.job, item.spends)
        held = state.of(item.job)
        # What earlier versions left may have changed a price that nobody has paid yet.
        stands = [
            h
            for h in held
            if h.static == item.static and (h.status != "RESERVED" or h.declared == item.spends)
        ]
        replaced += [h.token for h in held if h.status == "RESERVED" and h not in stands]
        if any(h.status == "RESERVED" or not respend for h in stands):
            continue
        new.append(item)
        if any(h.status == "DONE" for h in held):
            paid_again.append(item.job)
    kept = state.charged(*replaced)
    asked = tuple(spend for item in new for spend in item.spends)
    if paid_again and not respend:
        before, after = ever(terms, kept).epsilon, ever(terms, kept + asked).epsilon
        raise Refused(
            f"{name(paid_again[0])} is done and paid for, and a changed config would pay again for {len(paid_again)} "
            f"such job(s): lineage {terms.lineage} would go from epsilon = {_up(before)} to {_up(after)}. Undo the "
            "change, or accept the price with respend: true."
        )
    if new:
        _check_lifetime(terms, kept, asked)
    return new, replaced


def commit(ledger: Ledger, token: str, query: str, spends: Iterable[Spend], draws: Draws = ()) -> Held:
    """Bind a reservation to its query, before the job's first private read. Its nonce is good for this query alone.

    An attempt that died before DONE published nothing: the same query gets the same nonce again, free.
    """
    concrete = tuple(dataclasses.replace(spend, query=query) for spend in spends)
    declared_draws = json.loads(json.dumps(draws))

    def committed(state: State) -> Step:
        terms, held = terms_of(ledger, state), _held(ledger, state, token)
        again = (held.query, held.spends, held.draws) == (query, concrete, declared_draws)
        if again and held.status == "COMMITTED":
            return None
        if held.status != "RESERVED":
            raise Refused(
                f"{name(held.job)} is {held.status} in the ledger and cannot spend on this query: its reservation was "
                "taken back, or its data, code or upstream releases changed since. Plan it again with respend: true."
            )
        if state.done(query):
            raise Refused(
                f"{name(held.job)} asks what was released before. Restore the stored bytes: they are free."
            )
        _check_spends(terms, held.job, concrete)
        _check_within(held, concrete)
        _check_lifetime(terms, state.charged(token), concrete)
        body = {"token": token, "query": query, "spends": to_json(concrete), "draws": declared_draws}
        return "COMMITTED", body | {"nonce": secrets.token_hex(16)}

    return _append(ledger, committed).items[token]


def finish(ledger: Ledger, token: str, output: str) -> Held:
    """DONE: the stored output is the release. The first to finish wins; a later one is given the first's output."""

    def done(state: State) -> Step:
        held = _held(ledger, state, token)
        if held.status == "DONE":
            return None
        if held.status != "COMMITTED":
            raise Refused(f"{name(held.job)} is {held.status}, not COMMITTED: it has nothing to release.")
        return "DONE", {"token": token, "output": output}

    return _append(ledger, done).items[token]


def refund(ledger: Ledger, tokens: Iterable[str]) -> None:
    """Give unused reservations back, all or none, by revoking the tokens that COMMIT would need."""
    revoked = list(tokens)

    def refunded(state: State) -> Step:
        held = [_held(ledger, state, token) for token in revoked]
        if used := [h for h in held if h.status in ("COMMITTED", "DONE")]:
            raise Refused(
                f"{name(used[0].job)} is {used[0].status}: it may have read private data and stays charged."
            )
        live = [h.token for h in held if h.status == "RESERVED"]
        return ("REFUNDED", {"tokens": live}) if live else None

    _append(ledger, refunded)


def load(ledger: Ledger) -> State:
    """The state of a ledger, empty where there is none; refused if anything in it is not as it was written."""
    if ledger.folder.is_dir():
        journal.advance(_journal(ledger), ledger.state.chain, partial(_fold, ledger, ledger.state))
    return ledger.state


def verify(ledger: Ledger, anchors: Iterable[Anchor] = ()) -> list[str]:
    """Every problem by name; none if the ledger is whole and holds all that the anchors saw in it."""
    state, chain = State(), Chain()
    if ledger.folder.is_dir():
        journal.read(_journal(ledger), chain, partial(_fold, ledger, state))
    problems = chain.problems
    if chain.torn:
        problems.append(f"entry {len(chain.hashes)} is half-written; the next run repairs it")
    for anchor in anchors:
        if anchor.lineage != ledger.lineage or anchor.seq == 0:
            continue
        if anchor.seq > len(chain.hashes):
            problems.append(
                f"a statement saw entry {anchor.seq}, the ledger ends at {len(chain.hashes)}: rolled back or truncated"
            )
        elif chain.hashes[anchor.seq - 1] != anchor.sha256:
            problems.append(
                f"entry {anchor.seq} is not the one that a statement saw: rolled back and written anew"
            )
    return problems


def head(ledger: Ledger) -> Anchor:
    chain = load(ledger).chain
    return Anchor(ledger.lineage, len(chain.hashes), chain.head)


def lineages(home: Home) -> list[str]:
    return sorted(path.name for path in home.ledgers.glob("*") if path.is_dir())


def terms_of(ledger: Ledger, state: State) -> Terms:
    if state.terms is None:
        raise Refused(
            f"lineage {ledger.lineage} has no ledger in {ledger.home.path}. Is this the right home?"
        )
    return state.terms


def spent(ledger: Ledger, state: State) -> Composition:
    """What the lineage has cost so far."""
    return ever(terms_of(ledger, state), state.charged())


def name(job: Job) -> str:
    """A job as messages call it."""
    return f"{job.experiment}/{job.rule}" + "".join(f" {key}={value}" for key, value in job.wildcards)


Step = tuple[str, Body] | None  # the entry to append, if any


def _append(ledger: Ledger, decide: Callable[[State], Step]) -> State:
    state = ledger.state
    journal.append(_journal(ledger), state.chain, partial(_fold, ledger, state), partial(decide, state))
    return state


def _journal(ledger: Ledger) -> Journal:
    return Journal(ledger.folder, subkey(ledger.home, "ledger"))


def _fold(ledger: Ledger, state: State, kind: str, body: Body) -> None:
    match kind:
        case "OPENED":
            terms = Terms(**body)
            if state.terms is not None or terms.lineage != ledger.lineage:
                raise Refused(f"opens lineage {terms.lineage} inside the ledger of {ledger.lineage}")
            state.terms = terms
        case "RESERVED":
            for token in body["replaces"]:
                _move(state, token, "REFUNDED")
            for item in body["items"]:
                declared = from_json(item["spends"])
                held = Held(item["token"], from_json(item["job"]), item["static"], declared, declared)
                state.items[held.token] = held
                state.tokens.setdefault(held.job, []).append(held.token)
        case "COMMITTED":
            if body["nonce"] in state.nonces:
                raise Refused("uses a nonce that was used before")
            state.nonces.add(body["nonce"])
            _move(state, status="COMMITTED", **body | {"spends": from_json(body["spends"])})
        case "DONE":
            _move(state, status="DONE", **body)
        case "REFUNDED":
            for token in body["tokens"]:
                _move(state, token, "REFUNDED")
        case _:
            raise Refused(f"has the type {kind}, which this version does not know: upgrade dpladder")


BEFORE: dict[Status, Status] = {"COMMITTED": "RESERVED", "DONE": "COMMITTED", "REFUNDED": "RESERVED"}


def _move(state: State, token: str, status: Status, **facts: Any) -> None:
    held = state.items[token]
    if held.status != BEFORE[status]:
        raise Refused(f"makes {name(held.job)} {status} when it is {held.status}")
    state.items[token] = dataclasses.replace(held, status=status, **facts)


def _to_json(item: Item) -> Body:
    return {"job": to_json(item.job), "static": item.static, "spends": to_json(item.spends)}


def _held(ledger: Ledger, state: State, token: str) -> Held:
    if token not in state.items:
        raise Refused(f"no such reservation on lineage {ledger.lineage}. Plan the job again.")
    return state.items[token]


def _place(state: State, item: Item) -> Held:
    """The job's unused reservation if it has one, else its last use under the same `static`."""
    held = [h for h in state.of(item.job) if h.static == item.static]
    return next((h for h in held if h.status == "RESERVED"), held[-1])


def _check_spends(terms: Terms, job: Job, spends: Iterable[Spend]) -> None:
    for spend in spends:
        if spend.job != job:
            raise BadInput(
                f"a spend of {name(spend.job)} is declared under {name(job)}. Declare it under its own job."
            )
        if (spend.lineage, spend.relation) != (terms.lineage, terms.relation):
            raise Refused(
                f"{name(job)} spends on lineage {spend.lineage} under {spend.relation}; this is the ledger of "
                f"{terms.lineage} under {terms.relation}, for life. Spend on each lineage in its own ledger and relation."
            )


def _check_within(held: Held, concrete: Iterable[Spend]) -> None:
    declared, other_declared = _by_partition(held.spends)
    asked, other_asked = _by_partition(concrete)
    if other_asked != other_declared or any(m > declared.get(part, 0.0) for part, m in asked.items()):
        raise Refused(
            f"{name(held.job)} would spend more than it reserved, or something else. Derive its noise from the reserved "
            "mu (gdp.sigma rounds to the safe side), or plan the job again."
        )


def _by_partition(
    spends: Iterable[Spend],
) -> tuple[dict[Partition, float], Counter[tuple[Partition, Event, int]]]:
    """The mu of the Gaussians on each partition, which is exact however they were chosen; and every other event."""
    gaussians: dict[Partition, list[float]] = {}
    others: Counter[tuple[Partition, Event, int]] = Counter()
    for spend in spends:
        own = mu(spend.event, spend.count)
        if own is None:
            others[spend.partition, spend.event, spend.count] += 1
        else:
            gaussians.setdefault(spend.partition, []).append(own)
    return {partition: gdp.compose(mus) for partition, mus in gaussians.items()}, others


def _check_lifetime(terms: Terms, kept: tuple[Spend, ...], asked: tuple[Spend, ...]) -> None:
    if terms.mode == "research" or terms.lifetime_epsilon is None:
        return
    total = ever(terms, kept + asked)
    if not terms.selections and any(figure.mu is None for figure in total.parts.values()):
        raise Refused(
            f"lineage {terms.lineage} was opened with a lifetime limit that private selections do not share, and the limit "
            "would no longer hold with one. Search by the ladder; or, for data that nothing was spent on yet, declare "
            "privacy.lifetime.selections: true. Nothing was charged."
        )
    delta = terms.delta * (1 - LATE if terms.selections else 1)
    limit = gdp.mu(terms.lifetime_epsilon, delta)
    # By mu where there is one: its sums are monotone to the last bit, a root-found epsilon need not be.
    if total.mu <= limit if total.mu is not None else total.epsilon <= terms.lifetime_epsilon:
        return
    before = ever(terms, kept)
    left = gdp.remaining(limit, [before.mu]) if before.mu is not None else 0.0
    remains = f", which leaves epsilon = {gdp.epsilon(left, delta):.4f}" if left else ""
    raise Refused(
        f"lineage {terms.lineage} has a lifetime limit of epsilon = {terms.lifetime_epsilon:g} at delta = {terms.delta:g}. "
        f"Spent or reserved so far: {_up(before.epsilon)}{remains}. Asked for: {_up(ever(terms, asked).epsilon)}, which "
        f"would make {_up(total.epsilon)}. Nothing was charged: plan within what remains, or refund unused reservations."
    )


def ever(terms: Terms, spends: Sequence[Spend]) -> Composition:
    """What spends cost over a lineage's life, in which what is spent next depends on what was released before.

    Gaussians alone keep to a limit by their mu, selections by their Renyi curves, and results decide which of the two
    it will be for a part of the data: by the union of both events each must keep to it at its own share of delta.
    """
    if not terms.selections:
        return compose(spends, terms.delta, adaptive=True)
    gaussian = compose(spends, terms.delta * (1 - LATE), adaptive=True).parts
    late = compose(spends, terms.delta * LATE, adaptive=True).parts
    return of_parts({part: late[part] if figure.mu is None else figure for part, figure in gaussian.items()})


def _up(epsilon: float) -> str:
    return f"{math.ceil(epsilon * 1e4) / 1e4:.4f}"


def _refuse_orphan(ledger: Ledger) -> None:
    releases = ledger.home.releases / ledger.lineage
    if releases.exists():
        raise Refused(
            f"the ledger of lineage {ledger.lineage} is gone from {ledger.folder}, but its releases are in {releases}. "
            "Restore the ledger: what was spent stays spent."
        )
