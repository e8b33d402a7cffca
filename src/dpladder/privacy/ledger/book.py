"""The ledger: everything ever spent on a lineage, as a journal of what happened to its items.

An item is one job's declared spends. It goes RESERVED → COMMITTED (before the job's first private
read) → DONE, or from RESERVED to REFUNDED. Whatever is not refunded is charged. That is why no
damaged last entry can lose a charge: a torn RESERVED gave nobody a token to spend with, a torn
COMMITTED or DONE leaves the item charged, a torn REFUNDED gave nothing back.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

from dpladder.errors import BadInput, Refused
from dpladder.privacy.accounting import booking, gdp
from dpladder.privacy.accounting.booking import FREE, Entry
from dpladder.privacy.accounting.composition import Composition, compose, entry_of, most
from dpladder.privacy.accounting.draws import Draw, tie
from dpladder.privacy.accounting.draws import to_json as to_json_draw
from dpladder.privacy.accounting.events import (
    Counted,
    Job,
    Partition,
    Relation,
    Spend,
    from_json,
    to_json,
)
from dpladder.privacy.accounting.shown import up
from dpladder.privacy.ledger import journal, unsound
from dpladder.privacy.ledger.home import Home, make_folder, subkey
from dpladder.privacy.ledger.journal import Body, Chain, Journal
from dpladder.privacy.ledger.team import limits, user

Mode = Literal["release", "research"]
Status = Literal["RESERVED", "COMMITTED", "DONE", "REFUNDED"]
Draws = Sequence[Mapping[str, Any]]  # as the journal holds them
Units = Mapping[str, object]  # the keys of the config that say by what units are known

# the experiment that mechanisms outside the workflow are booked under (embed/); no config's may
# have a space
OWN = "own code"
NOTHING: Mapping[Any, Any] = {}
BY_IDS = "ids"  # a version, where another one's parts hang on contents
LINEAGE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class Terms:
    """What a lineage's first entry fixes for life. `cap`: rows of one unit at most. In research
    mode no lifetime holds."""

    lineage: str
    relation: Relation
    unit: str
    cap: int
    delta: float
    split_rule: str
    lifetime_epsilon: float | None = None
    mode: Mode = "release"
    # Of delta, what booked events may use up; and of the limit, what private selections may: their
    # losses together, and the product of their weights (accounting/booking.py).
    share: float = 0.0
    loss: float = 0.0
    weight: float = 1.0

    def __post_init__(self) -> None:
        limit = self.lifetime_epsilon
        allowed = {
            "lineage": (LINEAGE_NAME.fullmatch(self.lineage), "letters, digits, - and _"),
            "relation": (
                self.relation in get_args(Relation),
                f"one of {', '.join(get_args(Relation))}",
            ),
            "mode": (self.mode in get_args(Mode), f"one of {', '.join(get_args(Mode))}"),
            "cap": (self.cap >= 1, "1 or more"),
            "delta": (0.0 < self.delta < 1.0, "between 0 and 1"),
            "lifetime_epsilon": (
                limit is None or 0.0 < limit < float("inf"),
                "positive and finite, or none",
            ),
            "share": (0.0 <= self.share < 1.0, "0 or more, and below 1"),
            "loss": (
                0.0 <= self.loss < (math.inf if limit is None else limit),
                "0 or more, and below the limit",
            ),
            "weight": (1.0 <= self.weight < math.inf, "1 or more, and finite"),
        }
        for name, (holds, what) in allowed.items():
            if not holds:
                raise BadInput(f"{name} is {getattr(self, name)!r}. It must be {what}.")


def caps(terms: Terms) -> Entry:
    """What all that is ever spent on a lineage may come to, component by component: a filter on
    each (booking.py)."""
    beside = Entry(loss=terms.loss, weight=math.log(terms.weight), delta0=terms.share * terms.delta)
    limit = terms.lifetime_epsilon
    mu = math.inf if limit is None else booking.largest_mu(limit, terms.delta, beside)
    return replace(beside, mu=mu)


@dataclass(frozen=True)
class Item:
    """One job's declared spends. `static` digests everything about the job that is known before
    data is read: config keys, and the `versions` of the mechanisms that it stands on. `code`: a
    digest of the code that runs it, told and no identity."""

    job: Job
    static: str
    spends: tuple[Spend, ...]
    versions: Mapping[str, int] = field(default_factory=dict)
    code: str = ""


@dataclass(frozen=True)
class Held:
    """An item in the ledger. `spends` are what it is charged: the `declared` ones, from COMMITTED
    on the concrete ones, which cost no more. `reserved` and `released` are the entries that say so:
    what was reserved before any release cannot have been chosen by one."""

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
    reserved: int = 0
    released: int | None = None
    # empty: all first ones, of before versions were
    versions: Mapping[str, int] = field(default_factory=dict)
    code: str = ""
    unsound: str = ""  # why it costs more than was booked, where it does
    # the entry of the last run that took it up again, after something else was released
    continued: int | None = None
    by: str = ""  # who asked; empty of before that was noted


@dataclass(frozen=True)
class Anchor:
    """Where a ledger stood. A statement carries it, so that a ledger put back in time is found
    out."""

    lineage: str
    seq: int
    sha256: str


@dataclass
class State:
    """What the entries read so far add up to."""

    chain: Chain = field(default_factory=Chain)
    entries: int = 0
    terms: Terms | None = None
    items: dict[str, Held] = field(default_factory=dict)
    tokens: dict[Job, list[str]] = field(default_factory=dict)
    nonces: set[str] = field(default_factory=set)
    experiments: list[str] = field(default_factory=list)  # oldest first
    # names of experiments before today's
    former: dict[str, list[str]] = field(default_factory=dict)
    # by the operator: the lineage is about other people than those before it
    confirmed: bool = False
    choices: dict[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    # of the data that was read last: empty where parts hang on ids, None before anything was read
    version: str | None = None
    # what the config said of how units are known, when something was reserved last; None before
    units: Units | None = None

    def charged(self, *without: str) -> tuple[Spend, ...]:
        """Every spend that was not refunded, but those of the tokens in `without`."""
        counted = (
            h for h in self.items.values() if h.status != "REFUNDED" and h.token not in without
        )
        return tuple(
            spend
            for held in counted
            for spend in (held.spends if held.status == "RESERVED" else self.settled(held.spends))
        )

    def settled(self, read: Iterable[Spend]) -> tuple[Spend, ...]:
        """Spends that read data, on the version that was read last as spends on the current one,
        which is what is planned for: a plan cannot know more. Those on earlier versions stay apart.
        So do those of before records lost their ids: by its content a record has another part."""
        return tuple(
            spend  # as it is, not made anew: a thousand of them are read at every COMMIT
            if not spend.partition.parts
            or (known := self._known(spend.partition.version)) == spend.partition.version
            else replace(spend, partition=replace(spend.partition, version=known))
            for spend in read
        )

    def _known(self, version: str) -> str:
        """A version as plans know it."""
        return "" if self.version in (None, version) else version or BY_IDS

    def named(self, names: Mapping[Job, Sequence[str]]) -> State:
        """The same, where these jobs have these answers too, by their tokens."""
        tokens = {job: [*known] for job, known in self.tokens.items()}
        for job, more in names.items():
            tokens.setdefault(job, []).extend(more)
        return replace(self, tokens=tokens)

    def by_name(self) -> Iterator[tuple[Job, Held]]:
        """Every item under each job that it answers: its own, and those of experiments that were
        renamed since."""
        for job, tokens in self.tokens.items():
            yield from ((job, self.items[token]) for token in tokens)

    def of(self, job: Job) -> list[Held]:
        """What was charged for a job, oldest first."""
        held = [self.items[token] for token in self.tokens.get(job, ())]
        return [h for h in held if h.status != "REFUNDED"]

    def done(self, query: str) -> Held | None:
        """The item that released `query`."""
        return next(
            (h for h in self.items.values() if h.query == query and h.status == "DONE"), None
        )


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
    """The ledger of a lineage, opened under `terms` when new. Other terms are refused: they hold
    for life."""
    ledger = Ledger(home, terms.lineage)
    kept = _kept_queries(ledger)

    def opened(state: State) -> Step:
        _refuse_strangers(ledger, state, kept)
        if state.terms is None:
            return "OPENED", dataclasses.asdict(terms)
        check_terms(state.terms, terms)
        return None

    try:
        make_folder(ledger.folder)
    except OSError as error:
        raise journal.unwritable(ledger.folder, error) from None
    _append(ledger, opened)
    return ledger


def confirm(ledger: Ledger) -> None:
    """Note the operator's word that a lineage is about other people than those that home knows."""

    def confirmed(state: State) -> Step:
        return None if state.confirmed else ("CONFIRMED", {})

    _append(ledger, confirmed)


def note(
    ledger: Ledger,
    experiments: Iterable[str],
    names: Mapping[Job, Sequence[str]] = NOTHING,
    former: Mapping[str, Sequence[str]] = NOTHING,
) -> None:
    """Note a config's experiments, in its order: of several that share free work the one that came
    first does it, wherever others are put later. `names`: jobs that what others were charged for
    answers too, by its tokens; `former`: the names that experiments had before."""
    given = list(experiments)

    def noted(state: State) -> Step:
        body = {
            "experiments": [name for name in given if name not in state.experiments],
            "names": [
                {"job": to_json(job), "tokens": new}
                for job, tokens in names.items()
                if (new := [one for one in tokens if one not in state.tokens.get(job, ())])
            ],
            "former": {
                name: new
                for name, known in former.items()
                if (new := [one for one in known if one not in state.former.get(name, ())])
            },
        }
        return ("PLANNED", body) if any(body.values()) else None

    _append(ledger, noted)


def settle(ledger: Ledger, chosen: Mapping[str, tuple[str, Mapping[str, Any]]]) -> None:
    """Remember what a plan chose for its experiments, under a digest of what each choice hung on,
    before it is paid for."""

    def remembered(state: State) -> Step:
        new = [
            {"experiment": name, "inputs": inputs, "chosen": dict(values)}
            for name, (inputs, values) in chosen.items()
            if state.choices.get((name, inputs)) != values
        ]
        return ("SETTLED", {"choices": new}) if new else None

    _append(ledger, remembered)


def remembered_choices(state: State) -> dict[tuple[str, str], Mapping[str, Any]]:
    """Those of experiments for which something was committed: the others may be chosen anew."""
    paid = {
        held.job.experiment for held in state.items.values() if held.status in ("COMMITTED", "DONE")
    }
    return {key: chosen for key, chosen in state.choices.items() if key[0] in paid}


def check_terms(fixed: Terms, given: Terms) -> None:
    old, new = dataclasses.asdict(fixed), dataclasses.asdict(given)
    if differing := [f"{key} is {old[key]}, not {new[key]}" for key in old if old[key] != new[key]]:
        raise Refused(
            f"lineage {fixed.lineage} was opened under other terms, which hold for its life: "
            f"{'; '.join(differing)}. Go back to them. A changed version of the same data is the "
            "same lineage and gets no new budget."
        )


def reserve(
    ledger: Ledger,
    items: Iterable[Item],
    respend: bool | Collection[Job] = False,
    units: Units | None = None,
) -> tuple[Held, ...]:
    """Charge the items that are new, all or none, in one entry; each item's place in the ledger
    comes back. `units`: by what they are known, where their parts hang on it."""
    wanted = tuple(items)

    def reserved(state: State) -> Step:
        new, replaced = admit(terms_of(ledger, state), state, wanted, respend, units)
        check_user(ledger, terms_of(ledger, state), state, new, replaced)
        if new:
            check_units(ledger, state, units, replaced)
        body = [{"token": secrets.token_hex(16), **_to_json(item)} for item in new]
        continued = _continued(state, wanted, replaced)
        if not (new or replaced or continued):
            return None
        told = {"units": dict(units)} if new and units is not None else {}
        return "RESERVED", {"items": body, "replaces": replaced, "continued": continued, **told}

    state = _append(ledger, reserved)
    return tuple(_place(state, item) for item in wanted)


def check_units(
    ledger: Ledger, state: State, units: Units | None, without: Collection[str] = ()
) -> None:
    """Refuse units that are known by something else than those of what is charged already: a
    person's part would be another, and parts compose as if nobody were in two of them."""
    stands = any(
        held.status != "REFUNDED" and held.token not in without and spend.partition.parts
        for held in state.items.values()
        for spend in held.spends
    )
    before = state.units
    if units is None or before is None or not stands or units == before:
        return
    key = min(one for one in {*units, *before} if units.get(one) != before.get(one))
    raise Refused(
        f"lineage {ledger.lineage} knows its units by {key}: {_or_empty(before.get(key))}, and the "
        f"config says {_or_empty(units.get(key))}. By another column the same people would lie in "
        "other parts, and bear what was spent on two of them. Nothing was charged: go back to it; "
        "where the column is only called otherwise now, call it as before."
    )


def _or_empty(value: object) -> str:
    return "empty" if value is None else str(value)


def check_user(
    ledger: Ledger, terms: Terms, state: State, new: Sequence[Item], replaced: Sequence[str] = ()
) -> None:
    """Refuse what a member of a group may not spend, though the lineage has room for it."""
    me, limit = user(), limits(ledger.home).of(user())
    if not new or limit is None or terms.mode == "research":
        return
    mine = spends_of(state, me, replaced)
    total = ever(terms, [*mine, *(spend for item in new for spend in item.spends)]).epsilon
    if total > limit:
        raise Refused(
            f"{me} may spend epsilon = {limit:g} of lineage {terms.lineage}, by "
            f"{ledger.home.limits}, spent or reserved {up(ever(terms, mine).epsilon)}, and asks "
            f"for what would make {up(total)}. Nothing was charged: ask for less, or ask the owner "
            "of this home."
        )


def spends_of(state: State, name: str, without: Sequence[str] = ()) -> tuple[Spend, ...]:
    """What a user asked for, and what was not refunded."""
    others = [held.token for held in state.items.values() if held.by != name]
    return state.charged(*others, *without)


def _continued(state: State, items: Iterable[Item], replaced: Sequence[str]) -> list[str]:
    """The reservations that this run takes up again after something was released: who goes on has
    seen that, as far as the figure of a single model is concerned."""
    last = max((held.released or 0 for held in state.items.values()), default=0)
    return [
        held.token
        for item in items
        for held in state.of(item.job)
        if held.status == "RESERVED" and held.token not in replaced
        if held.static == item.static and (held.continued or held.reserved) < last
    ]


def admit(
    terms: Terms,
    state: State,
    items: Sequence[Item],
    respend: bool | Collection[Job] = False,
    units: Units | None = None,
) -> tuple[list[Item], list[str]]:
    """The items that would be new charges, and the tokens of unused reservations that they replace.
    Writes nothing.

    A job has one unused reservation at most. What it holds under the same `static` stands, unused
    only while `units` are known as they were; with `respend`, of all jobs or of some, even what is
    used is reserved once more, and a job that proves unchanged when it runs is restored and gives
    that back.
    """
    moved = None not in (units, state.units) and units != state.units
    if len({item.job for item in items}) < len(items):
        raise BadInput(
            "a job is declared twice in one reservation. Declare each job once, with all its "
            "spends."
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
            if h.static == item.static
            and (
                h.status != "RESERVED"
                or (not moved and (h.declared, h.code) == (item.spends, item.code))
            )
        ]
        replaced += [h.token for h in held if h.status == "RESERVED" and h not in stands]
        again = respend if isinstance(respend, bool) else item.job in respend
        if any(h.status == "RESERVED" or not again for h in stands):
            continue
        new.append(item)
        if any(h.status == "DONE" for h in held) and not again:
            paid_again.append(item.job)
    kept = state.charged(*replaced)
    asked = tuple(spend for item in new for spend in item.spends)
    if paid_again:
        raise _paid_again(terms, paid_again, kept, asked)
    if new:
        _check_lifetime(terms, kept, asked)
    return new, replaced


def _paid_again(
    terms: Terms, jobs: Sequence[Job], kept: tuple[Spend, ...], asked: tuple[Spend, ...]
) -> Refused:
    """What a change would cost that pays again, and whether the lifetime has room for that."""
    before, after = ever(terms, kept).epsilon, ever(terms, kept + asked).epsilon
    accept = "or accept the price with respend: true"
    if over := _over_lifetime(terms, kept, asked):
        accept = f"respend: true is no way out here, for {over}"
    return Refused(
        f"{name(jobs[0])} is done and paid for, and a changed config would pay again for "
        f"{len(jobs)} such job(s): lineage {terms.lineage} would go from epsilon = {up(before)} to "
        f"{up(after)}. Undo the change, and what was released is restored, free; {accept}."
    )


def commit(
    ledger: Ledger, token: str, query: str, spends: Iterable[Spend], draws: Sequence[Draw]
) -> Held:
    """Bind a reservation to its query, before the job's first private read. Its nonce is good for
    this query alone. Refused unless the declared draws cost exactly what is charged.

    An attempt that died before DONE published nothing: the same query gets the same nonce again,
    free.
    """
    concrete = tuple(dataclasses.replace(spend, query=query) for spend in spends)
    replaced = any(spend.relation == "replace_one" for spend in concrete)
    charged = [Counted(spend.event, spend.count) for spend in concrete]
    tie(charged, draws, "replace_one" if replaced else "add_remove")
    declared_draws = json.loads(json.dumps([to_json_draw(draw) for draw in draws]))
    return _commit(ledger, token, query, concrete, declared_draws)


def commit_elsewhere(ledger: Ledger, token: str, query: str, spends: Iterable[Spend]) -> Held:
    """COMMIT for a mechanism whose noise is not the meter's (embed/): that it earns its charge is
    its author's word. A query is for one attempt alone, for what an attempt that died has shown to
    whom nobody knows."""
    return _commit(
        ledger, token, query, tuple(replace(spend, query=query) for spend in spends), None
    )


def _commit(
    ledger: Ledger, token: str, query: str, concrete: tuple[Spend, ...], draws: Draws | None
) -> Held:
    def committed(state: State) -> Step:
        terms, held = terms_of(ledger, state), _held(ledger, state, token)
        again = draws is not None and (held.query, held.spends, held.draws) == (
            query,
            concrete,
            draws,
        )
        if again and held.status == "COMMITTED":
            return None
        if held.status != "RESERVED":
            raise Refused(
                f"{name(held.job)} is {held.status} in the ledger and {_NOT_AGAIN[held.status]}"
            )
        if state.done(query):
            raise Refused(
                f"{name(held.job)} asks what was released before. Restore the stored bytes: they "
                "are free."
            )
        _check_spends(terms, held.job, concrete)
        _check_within(held, concrete)
        _check_lifetime(terms, state.charged(token), state.settled(concrete))
        body = {"token": token, "query": query, "spends": to_json(concrete), "draws": draws or []}
        return "COMMITTED", body | {"nonce": secrets.token_hex(16)}

    return _append(ledger, committed).items[token]


_CHANGED = (
    "cannot spend on this query: its data, code or upstream releases changed since. Undo the "
    "change, and it is free; where a released file was edited, delete it and ask for it by name "
    "(dpladder run FILE): it is restored, free. Or pay again, with respend: true; `dpladder plan` "
    "then says what that costs, and what has no room for it."
)
_NOT_AGAIN: dict[Status, str] = {
    "COMMITTED": _CHANGED,
    "DONE": _CHANGED,
    "REFUNDED": "cannot spend: its reservation was taken back, by a later plan. Start the workflow "
    "again: it reserves first.",
}


def finish(ledger: Ledger, token: str, output: str) -> Held:
    """DONE: the stored output is the release. The first to finish wins; a later one is given the
    first's output."""

    def done(state: State) -> Step:
        held = _held(ledger, state, token)
        if held.status == "DONE":
            return None
        if held.status != "COMMITTED":
            raise Refused(
                f"{name(held.job)} is {held.status}, not COMMITTED: it has nothing to release."
            )
        return "DONE", {"token": token, "output": output}

    return _append(ledger, done).items[token]


def refund(ledger: Ledger, tokens: Iterable[str]) -> None:
    """Give unused reservations back, all or none, by revoking the tokens that COMMIT would need."""
    revoked = list(tokens)

    def refunded(state: State) -> Step:
        held = [_held(ledger, state, token) for token in revoked]
        if used := [h for h in held if h.status in ("COMMITTED", "DONE")]:
            raise Refused(
                f"{name(used[0].job)} is {used[0].status}: it may have read private data and stays "
                "charged. Keep what it gave; another attempt is a spend of its own."
            )
        live = [h.token for h in held if h.status == "RESERVED"]
        return ("REFUNDED", {"tokens": live}) if live else None

    _append(ledger, refunded)


def load(ledger: Ledger) -> State:
    """The state of a ledger, empty where there is none; refused if anything in it is not as it was
    written."""
    kept = _kept_queries(ledger)
    if ledger.folder.is_dir():
        journal.advance(_journal(ledger), ledger.state.chain, partial(_fold, ledger, ledger.state))
    _refuse_strangers(ledger, ledger.state, kept)
    return ledger.state


def verify(ledger: Ledger, anchors: Iterable[Anchor] = ()) -> list[str]:
    """Every problem by name; none if the ledger is whole and holds all that the anchors saw in
    it."""
    kept = _kept_queries(ledger)
    state, chain = State(), Chain()
    if ledger.folder.is_dir():
        journal.read(_journal(ledger), chain, partial(_fold, ledger, state))
    problems = chain.problems
    own = [anchor for anchor in anchors if anchor.lineage == ledger.lineage]
    if chain.torn and not any(cut_short(chain, anchor) for anchor in own):
        problems.append(f"entry {len(chain.hashes)} is half-written; the next run repairs it")
    if _strangers(state, kept):
        problems.append("releases are kept that it does not know: rolled back or truncated")
    return problems + [problem for anchor in own if (problem := lost(chain, anchor))]


def lost(chain: Chain, anchor: Anchor) -> str | None:
    """What is wrong with a ledger that does not hold what an anchor saw in it."""
    if anchor.seq > len(chain.hashes):
        return (
            f"results saw entry {anchor.seq}, the ledger ends at {len(chain.hashes)}: rolled back "
            "or truncated"
        )
    if cut_short(chain, anchor):
        return f"entry {anchor.seq} was whole when results saw it, and its file was cut short since"
    if anchor.seq and chain.hashes[anchor.seq - 1] != anchor.sha256:
        return f"entry {anchor.seq} is not the one that results saw: rolled back and written anew"
    return None


def cut_short(chain: Chain, anchor: Anchor) -> bool:
    """Whether the last entry is half-written, and was whole when the anchor saw it: no run may go
    on without what it said."""
    return chain.torn and anchor.seq == len(chain.hashes) and chain.head != anchor.sha256


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


def left(terms: Terms, charged: tuple[Spend, ...]) -> float:
    """Epsilon of the largest Gaussian mechanism that the limit still has room for, rounded down:
    who asks for just that must get it."""
    room = gdp.remaining(caps(terms).mu, [most(charged).mu])
    return math.floor(gdp.epsilon(room, terms.delta) * 1e4) / 1e4 if room else 0.0


def name(job: Job) -> str:
    """A job as messages call it."""
    return f"{job.experiment}/{job.rule}" + "".join(
        f" {key}={value}" for key, value in job.wildcards
    )


Step = tuple[str, Body] | None  # the entry to append, if any


def _append(ledger: Ledger, decide: Callable[[State], Step]) -> State:
    state = ledger.state
    journal.append(
        _journal(ledger), state.chain, partial(_fold, ledger, state), partial(decide, state)
    )
    return state


def _journal(ledger: Ledger) -> Journal:
    return Journal(ledger.folder, subkey(ledger.home, "ledger"))


def _fold(ledger: Ledger, state: State, kind: str, body: Body, by: str) -> None:
    """What one entry changes, the only place that gives entries their meaning: the state is all of
    them in order, and a reader of a copy folds it in the same way. An entry is never judged here by
    rules of today but for what would make it no entry of this ledger."""
    state.entries += 1
    match kind:
        case "OPENED":
            terms = Terms(**body)
            if state.terms is not None or terms.lineage != ledger.lineage:
                raise Refused(
                    f"opens lineage {terms.lineage} inside the ledger of {ledger.lineage}"
                )
            state.terms = terms
        case "CONFIRMED":
            state.confirmed = True
        case "PLANNED":
            state.experiments += body["experiments"]
            for one in body.get("names", ()):
                state.tokens.setdefault(from_json(one["job"]), []).extend(one["tokens"])
            for name, names in body.get("former", {}).items():
                state.former.setdefault(name, []).extend(names)
        case "SETTLED":
            for one in body["choices"]:
                state.choices[one["experiment"], one["inputs"]] = one["chosen"]
        case "RESERVED":
            for token in body["replaces"]:
                _move(state, token, "REFUNDED")
            for token in body.get("continued", ()):
                state.items[token] = replace(state.items[token], continued=state.entries)
            state.units = body.get("units", state.units)
            for item in body["items"]:
                declared = from_json(item["spends"])
                job, entry = from_json(item["job"]), state.entries
                known = {"versions": item.get("versions", {}), "code": item.get("code", "")}
                held = Held(
                    item["token"],
                    job,
                    item["static"],
                    declared,
                    declared,
                    reserved=entry,
                    by=by,
                    **known,
                )
                state.items[held.token] = held
                state.tokens.setdefault(held.job, []).append(held.token)
        case "COMMITTED":
            if body["nonce"] in state.nonces:
                raise Refused("uses a nonce that was used before")
            state.nonces.add(body["nonce"])
            booked = from_json(body["spends"])
            spends = unsound.charged(booked, body["draws"])
            bug = unsound.found(booked, body["draws"])
            state.version = next(
                (s.partition.version for s in spends if s.partition.parts), state.version
            )
            facts = {"spends": spends, "unsound": "" if bug is None else bug.why}
            _move(state, status="COMMITTED", **body | facts)
        case "DONE":
            _move(state, status="DONE", released=state.entries, **body)
        case "REFUNDED":
            for token in body["tokens"]:
                _move(state, token, "REFUNDED")
        case _:
            raise Refused(
                f"has the type {kind}, which this version does not know: upgrade dpladder"
            )


BEFORE: dict[Status, Status] = {
    "COMMITTED": "RESERVED",
    "DONE": "COMMITTED",
    "REFUNDED": "RESERVED",
}


def _move(state: State, token: str, status: Status, **facts: Any) -> None:
    held = state.items[token]
    if held.status != BEFORE[status]:
        raise Refused(f"makes {name(held.job)} {status} when it is {held.status}")
    state.items[token] = dataclasses.replace(held, status=status, **facts)


def _to_json(item: Item) -> Body:
    body = {"job": to_json(item.job), "static": item.static, "spends": to_json(item.spends)}
    return body | {"versions": dict(item.versions), "code": item.code}


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
                f"a spend of {name(spend.job)} is declared under {name(job)}. Declare it under its "
                "own job."
            )
        if (spend.lineage, spend.relation) != (terms.lineage, terms.relation):
            raise Refused(
                f"{name(job)} spends on lineage {spend.lineage} under {spend.relation}; this is "
                f"the ledger of {terms.lineage} under {terms.relation}, for life. Spend on each "
                "lineage in its own ledger and relation."
            )


def _check_within(held: Held, concrete: Iterable[Spend]) -> None:
    """What a job really spends on each part may cost no more than it reserved, component by
    component."""
    declared, asked = _by_parts(held.spends), _by_parts(concrete)
    if any(not entry.within(declared.get(parts, FREE)) for parts, entry in asked.items()):
        raise Refused(
            f"{name(held.job)} would spend more than it reserved, or something else. Derive its "
            "noise from the reserved mu (gdp.sigma rounds to the safe side), or plan the job again."
        )


def _by_parts(spends: Iterable[Spend]) -> dict[Partition, Entry]:
    """What is spent on each partition, whatever the version of the data."""
    found: dict[Partition, list[Entry]] = {}
    for spend in spends:
        found.setdefault(replace(spend.partition, version=""), []).append(entry_of(spend))
    return {partition: booking.total(entries) for partition, entries in found.items()}


def _check_lifetime(terms: Terms, kept: tuple[Spend, ...], asked: tuple[Spend, ...]) -> None:
    """The filter: every part stays within every cap."""
    if over := _over_lifetime(terms, kept, asked):
        raise Refused(f"{over}. Nothing was charged: {_WITHIN}.")


_WITHIN = (
    "undo what asks for it, and what was released is restored, free; or ask for no more than "
    "remains. What is reserved and unused (`dpladder ledger show`) comes back when a run of its "
    "experiment no longer plans it, or by the refund() of whoever reserved it"
)


def _over_lifetime(terms: Terms, kept: tuple[Spend, ...], asked: tuple[Spend, ...]) -> str:
    """What there is no room for; empty where there is."""
    if terms.mode == "research":
        return ""
    limit, need = caps(terms), most(kept + asked)
    if need.delta0 > limit.delta0:
        return (
            f"lineage {terms.lineage} keeps {terms.share:g} of its delta for trainings on samples "
            "and for searches booked like them, and this would use more. That share is fixed when "
            "a lineage is opened (privacy.share, a tenth where a config samples or searches so). "
            "Train on full batches"
        )
    if (need.loss > limit.loss or need.weight > limit.weight) and limit.mu < math.inf:
        return (
            f"lineage {terms.lineage} was opened with a lifetime limit that leaves private "
            f"selections a loss of {terms.loss:g} and a weight of {terms.weight:g}; this needs "
            f"{up(need.loss)} and {up(math.exp(need.weight) + 1e-6, 2)}. Search by the ladder; or, "
            "for data that nothing was spent on yet, declare privacy.lifetime.loss and "
            "privacy.lifetime.weight so (dpladder.Ledger: loss=, weight=)"
        )
    if need.mu <= limit.mu:
        return ""
    before, total = compose(kept, terms.delta), compose(kept + asked, terms.delta)
    room = left(terms, kept)
    remains = f", which leaves epsilon = {room:.4f}" if room else ""
    return (
        f"lineage {terms.lineage} has a lifetime limit of epsilon = {terms.lifetime_epsilon:g} at "
        f"delta = {terms.delta:g}. Spent or reserved so far: {up(before.epsilon)}{remains}. Asked "
        f"for: {up(compose(asked, terms.delta).epsilon)}, which would make {up(total.epsilon)}"
    )


def ever(terms: Terms, spends: Sequence[Spend]) -> Composition:
    """What spends cost over a lineage's life."""
    return compose(spends, terms.delta)


def _kept_queries(ledger: Ledger) -> set[str]:
    """The queries whose releases home keeps. To be listed before the journal is read, which knows
    each before it is kept."""
    folder = ledger.home.releases / ledger.lineage
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()


def _strangers(state: State, kept: set[str]) -> set[str]:
    return kept - {str(held.query) for held in state.items.values()}


def _refuse_strangers(ledger: Ledger, state: State, kept: set[str]) -> None:
    if _strangers(state, kept):
        raise Refused(
            f"{ledger.home.releases / ledger.lineage} keeps releases that the ledger in "
            f"{ledger.folder} does not know: it is gone, cut short, or an older copy, and what it "
            "lost would be charged and answered anew. Nothing was spent. Restore the ledger as it "
            "was last: what was spent stays spent."
        )
