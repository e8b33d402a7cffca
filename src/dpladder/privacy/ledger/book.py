"""The ledger: everything ever spent on a lineage, as a journal of what happened to its charges
(state.py). What is done to them stands here, each step one entry.

    open_ledger → reserve → commit → finish        or, from reserve, → refund

Each step decides in full knowledge of every entry before it (`_append`), so two processes never
both get the last of a budget. What is reserved counts as spent until it is given back.
"""

from __future__ import annotations

import dataclasses
import json
import secrets
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType

from dpladder.errors import BadInput, Refused
from dpladder.privacy.accounting.composition import Composition
from dpladder.privacy.accounting.draws import Draw, check_charge_matches_noise
from dpladder.privacy.accounting.draws import to_json as to_json_draw
from dpladder.privacy.accounting.events import Counted, Job, Spend, to_json
from dpladder.privacy.accounting.rounding import round_up, round_up_short
from dpladder.privacy.ledger import journal
from dpladder.privacy.ledger.home import Home, make_folder, subkey
from dpladder.privacy.ledger.journal import Body, Chain, Journal
from dpladder.privacy.ledger.limits import (
    check_lifetime,
    check_spends,
    check_within,
    lifetime_cost,
)
from dpladder.privacy.ledger.state import (
    Anchor,
    Draws,
    Item,
    LedgerCharge,
    PlanNote,
    State,
    Status,
    Terms,
    Units,
    fold,
)
from dpladder.privacy.ledger.team import limits, user

# the experiment that mechanisms outside the workflow are booked under (dpladder_ledger/); no
# config's may have a space
OWN_CODE = "own code"


@dataclass(frozen=True)
class Ledger:
    """A lineage's ledger.

    Attributes:
        home: where it lies.
        lineage: whose it is.
        terms: that it was opened under. Until the first COMMIT somebody else may correct them, and
            then nothing more is reserved under these.
        state: what was read of it so far; entries are only ever added.
    """

    home: Home
    lineage: str
    terms: Terms | None = field(default=None, repr=False, compare=False)
    state: State = field(default_factory=State, repr=False, compare=False)

    @property
    def folder(self) -> Path:
        """Where its entries lie."""
        return self.home.ledgers / self.lineage


def open_ledger(home: Home, terms: Terms) -> Ledger:
    """The ledger of a lineage, opened under `terms` when new.

    Terms hold for life, from the first COMMIT on. Before it, other terms correct them, and what was
    reserved under the old ones is given back, so that no other run can commit it.

    Raises:
        Refused: the terms are other ones than those of a COMMIT, or home keeps releases that the
            ledger does not know.
    """
    ledger = Ledger(home, terms.lineage, terms)
    stored = _stored_queries(ledger)

    def decide(state: State) -> Step:
        _refuse_strangers(ledger, state, stored)
        if state.terms is None:
            return "OPENED", dataclasses.asdict(terms)
        if state.binding is None and state.terms != terms:
            return "CORRECTED", dataclasses.asdict(terms)
        check_terms(state.terms, terms)
        return None

    try:
        make_folder(ledger.folder)
    except OSError as error:
        raise journal.unwritable_error(ledger.folder, error) from None
    _append(ledger, decide)
    return ledger


def check_terms(fixed: Terms, terms: Terms) -> None:
    """Refuse terms that are not those which hold for the lineage's life.

    Raises:
        Refused: one of them differs. Each that does is named.
    """
    old, new = dataclasses.asdict(fixed), dataclasses.asdict(terms)
    if differing := [f"{key} is {old[key]}, not {new[key]}" for key in old if old[key] != new[key]]:
        raise Refused(
            f"lineage {fixed.lineage} was opened under other terms, which hold for its life: "
            f"{'; '.join(differing)}. Go back to them: a changed version of the same data is the "
            "same lineage and gets no new budget. Other people's data need another lineage."
        )


def reserve(
    ledger: Ledger,
    items: Iterable[Item],
    anew: Collection[str] = (),
    units: Units | None = None,
    plan: PlanNote = MappingProxyType({}),
) -> tuple[LedgerCharge, ...]:
    """Charge the items that are new, all or none, in one entry. It says too what was planned, so
    nothing is paid for whose plan was forgotten.

    Args:
        ledger: of the lineage.
        items: what each question is to cost; each question once.
        anew: questions that are to be asked once more, though they have an answer.
        units: by what units are known, where their parts hang on it.
        plan: what all experiments of the lineage were resolved to, as JSON has it; public alone.

    Returns:
        Each question's last charge: its unused reservation, or else its last use.

    Raises:
        Refused: the lineage's total, or the user's limit, has no room for what is new, or the
            lineage's terms were corrected since it was opened. Nothing was charged.
    """
    wanted = tuple(items)

    def decide(state: State) -> Step:
        if ledger.terms is not None:
            check_terms(terms_of(ledger, state), ledger.terms)
        new, replaced = admit(terms_of(ledger, state), state, wanted, anew, units)
        check_user(ledger, terms_of(ledger, state), state, new, replaced)
        check_units(ledger, state, new, units, replaced)
        body = [{"token": secrets.token_hex(16), **_to_json(item)} for item in new]
        continued = _tokens_taken_up_again(state, wanted, replaced)
        plan_note = {} if state.entry_of(plan) else state.without_repeats(plan)
        if not (new or replaced or continued or plan_note):
            return None
        units_note = {"units": dict(units)} if new and units is not None else {}
        return "RESERVED", {
            "items": body,
            "replaces": replaced,
            "continued": continued,
            "plan": plan_note,
            **units_note,
        }

    state = _append(ledger, decide)
    return tuple(state.charges_for(item.question)[-1] for item in wanted)


def check_units(
    ledger: Ledger,
    state: State,
    new: Iterable[Item],
    units: Units | None,
    without: Collection[str] = (),
) -> None:
    """Refuse units that are known by something else than those of what is charged already on the
    same version of the data.

    By another column a person's part would be another, and parts compose as if nobody were in two
    of them. What other versions were charged adds, so there nothing is refused.

    Args:
        ledger, state: of the lineage.
        new: what is about to be charged.
        units: the keys of the config that say by what units are known; None where no part follows.
        without: tokens that are about to be given back.

    Raises:
        Refused: they are known by another column. Nothing was charged.
    """
    stands = _versions(state.charged_spends(*without))
    wanted = _versions(spend for item in new for spend in item.spends)
    known = [state.units[version] for version in sorted(wanted & stands & state.units.keys())]
    before = next((one for one in known if one != units), None)
    if units is None or before is None:
        return
    key = min(one for one in {*units, *before} if units.get(one) != before.get(one))
    raise Refused(
        f"lineage {ledger.lineage} knows its units by {key}: {_text_or_empty(before.get(key))}, "
        f"and the config says {_text_or_empty(units.get(key))}. By another column the same people "
        "would lie in other parts, and bear what was spent on two of them. Nothing was charged: go "
        "back to it; where the column is only called otherwise now, call it as before; or make "
        "this a version of the data of its own, which adds to what was spent: dataset.version."
    )


def _versions(spends: Iterable[Spend]) -> set[str]:
    """The versions of the data whose parts are read."""
    return {spend.partition.version for spend in spends if spend.partition.parts}


def _text_or_empty(value: object) -> str:
    return "empty" if value is None else str(value)


def check_user(
    ledger: Ledger, terms: Terms, state: State, new: Sequence[Item], replaced: Sequence[str] = ()
) -> None:
    """Refuse what a member of a group may not spend, though the lineage has room for it.

    It keeps honest people apart, and is no part of the guarantee (team.py).

    Args:
        ledger, terms, state: of the lineage.
        new: what is about to be charged.
        replaced: tokens that are about to be given back.

    Raises:
        Refused: the member's own limit has no room for it. Nothing was charged.
    """
    me, limit = user(), limits(ledger.home).of(user())
    if not new or limit is None or terms.mode == "research":
        return
    mine = spends_of(state, me, replaced)
    total = lifetime_cost(terms, [*mine, *(spend for item in new for spend in item.spends)]).epsilon
    if total > limit:
        raise Refused(
            f"{me} may spend epsilon = {round_up_short(limit)} of lineage {terms.lineage}, by "
            f"{ledger.home.limits}, spent or reserved "
            f"{round_up(lifetime_cost(terms, mine).epsilon)}, and asks for what would make "
            f"{round_up(total)}. Nothing was charged: ask for less, or ask the owner of this home."
        )


def spends_of(state: State, name: str, without: Sequence[str] = ()) -> tuple[Spend, ...]:
    """What a user asked for, and what was not refunded."""
    other_tokens = [charge.token for charge in state.charges.values() if charge.by != name]
    return state.charged_spends(*other_tokens, *without)


def _tokens_taken_up_again(
    state: State, items: Iterable[Item], replaced: Sequence[str]
) -> list[str]:
    """What this run takes up again after something was released: reservations, and what was
    committed and cut off. Who goes on has seen that, as far as the figure of a single model is
    concerned."""
    last = max((charge.released or 0 for charge in state.charges.values()), default=0)
    return [
        charge.token
        for item in items
        for charge in state.charges_for(item.question)
        if charge.status in ("RESERVED", "COMMITTED") and charge.token not in replaced
        if (charge.continued or charge.reserved) < last
    ]


def admit(
    terms: Terms,
    state: State,
    items: Sequence[Item],
    anew: Collection[str] = (),
    units: Units | None = None,
) -> tuple[list[Item], list[str]]:
    """What a reservation would charge. Writes nothing.

    A question has one unused reservation at most. It stands at the same price and code,
    while `units` are known as they were. Of questions that are asked `anew`, even what is used is
    reserved once more. A job that proves unchanged when it runs is restored and gives that back.

    Args:
        terms, state: of the lineage.
        items: what each question is to cost; each question once.
        anew: questions that are to be asked once more.
        units: by what units are known, where their parts follow from it.

    Returns:
        The items that would be new charges, and the tokens of unused reservations that they
        replace.

    Raises:
        Refused: the limit has no room for what is new, or a spend is of another lineage or
            relation.
        BadInput: a question comes twice.
    """
    if len({item.question for item in items}) < len(items):
        raise BadInput(
            "a question is declared twice in one reservation. Declare each once, with all its "
            "spends."
        )
    new: list[Item] = []
    replaced: list[str] = []
    for item in items:
        check_spends(terms, item.job, item.spends)
        charges = state.charges_for(item.question)
        stands = [
            h
            for h in charges
            if h.used
            or (
                all(state.units.get(version, units) == units for version in _versions(item.spends))
                and (h.declared, h.code) == (item.spends, item.code)
            )
        ]
        replaced += [h.token for h in charges if h not in stands]
        if item.question in anew:
            stands = [h for h in stands if h.status == "RESERVED"]
        if not stands:
            new.append(item)
    if new:
        wanted = tuple(spend for item in new for spend in item.spends)
        check_lifetime(terms, state.charged_spends(*replaced), wanted)
    return new, replaced


def commit(
    ledger: Ledger,
    token: str,
    query: str,
    spends: Iterable[Spend],
    draws: Sequence[Draw],
    asked_by: Job | None = None,
    units: str = "",
) -> LedgerCharge:
    """Bind a reservation to its query, before the job's first private read. Its nonce is good for
    this query alone.

    An attempt that died before DONE published nothing: the same query gets the same nonce again,
    free. The first COMMIT on a version of the data says who belongs to it.

    Args:
        ledger: of the lineage.
        token: of the reservation.
        query: a digest of all that the answer follows from.
        spends: what is charged; at most what was reserved.
        draws: all noise that the job will add.
        asked_by: the job by its name of today, for messages. The ledger's label may be an older
            one's, or by now another experiment's.
        units: a digest of those that there are, of data with parts.

    Raises:
        Refused: the draws do not cost exactly what is charged, the reservation is used, or the
            query was answered before.
    """
    concrete = tuple(dataclasses.replace(spend, query=query) for spend in spends)
    replaced = any(spend.relation == "replace_one" for spend in concrete)
    charged = [Counted(spend.event, spend.count) for spend in concrete]
    check_charge_matches_noise(charged, draws, "replace_one" if replaced else "add_remove")
    declared_draws = json.loads(json.dumps([to_json_draw(draw) for draw in draws]))
    return _commit(ledger, token, query, concrete, declared_draws, asked_by, units)


def commit_elsewhere(
    ledger: Ledger, token: str, query: str, spends: Iterable[Spend]
) -> LedgerCharge:
    """COMMIT for a mechanism whose noise is not the meter's (dpladder_ledger/): that it earns its
    charge is its author's word.

    A query is for one attempt alone, for what an attempt that died has shown to whom nobody knows.
    From here on it counts as released.

    Args:
        ledger: of the lineage.
        token: of the reservation.
        query: a fresh random name for the attempt.
        spends: at most what was reserved.
    """
    return _commit(
        ledger, token, query, tuple(replace(spend, query=query) for spend in spends), None
    )


def _commit(
    ledger: Ledger,
    token: str,
    query: str,
    concrete: tuple[Spend, ...],
    draws: Draws | None,
    asked_by: Job | None = None,
    units: str = "",
) -> LedgerCharge:
    def decide(state: State) -> Step:
        terms, charge = terms_of(ledger, state), _charge_of_token(ledger, state, token)
        job = asked_by or charge.job
        again = draws is not None and (charge.query, charge.spends, charge.draws) == (
            query,
            concrete,
            draws,
        )
        if again and charge.status == "COMMITTED":
            return None
        if charge.status != "RESERVED":
            raise Refused(f"{job} is {charge.status} in the ledger and {_NOT_AGAIN[charge.status]}")
        if state.finished_charge(query):
            raise Refused(
                f"{job} asks what was released before. Restore the stored bytes: they are free."
            )
        check_spends(terms, job, concrete)
        check_within(charge, concrete, job)
        check_lifetime(terms, state.charged_spends(token), concrete)
        body = {"token": token, "query": query, "spends": to_json(concrete), "draws": draws or []}
        return "COMMITTED", body | {"nonce": secrets.token_hex(16), "units": units}

    return _append(ledger, decide).charges[token]


_CHANGED = (
    "cannot spend on this query: its code or upstream releases changed since. Undo the change, and "
    "it is free; where a released file was edited, delete it and ask for it by name (dpladder run "
    "FILE): it is restored, free. Or pay again, with respend: true; `dpladder plan` then says what "
    "that costs, and what has no room for it."
)

_NOT_AGAIN: dict[Status, str] = {
    "COMMITTED": _CHANGED,
    "DONE": _CHANGED,
    "REFUNDED": "cannot spend: its reservation was taken back, by a later plan. Start the workflow "
    "again: it reserves first.",
}


def finish(ledger: Ledger, token: str, output: str) -> LedgerCharge:
    """DONE: the stored output is the release. The first to finish wins; a later one is given the
    first's output.

    Args:
        ledger: of the lineage.
        token: of a charge that is COMMITTED.
        output: digest of the released bytes.

    Raises:
        Refused: the charge is not COMMITTED.
    """

    def decide(state: State) -> Step:
        charge = _charge_of_token(ledger, state, token)
        if charge.status == "DONE":
            return None
        if charge.status != "COMMITTED":
            raise Refused(
                f"{charge.job} is {charge.status}, not COMMITTED: it has nothing to release."
            )
        return "DONE", {"token": token, "output": output}

    return _append(ledger, decide).charges[token]


def refund(ledger: Ledger, tokens: Iterable[str]) -> None:
    """Give unused reservations back, all or none, by revoking the tokens that COMMIT would need.

    Raises:
        Refused: one of them was used: it may have read private data.
    """
    revoked = list(tokens)

    def decide(state: State) -> Step:
        charges = [_charge_of_token(ledger, state, token) for token in revoked]
        if used := [h for h in charges if h.used]:
            raise Refused(
                f"{used[0].job} is {used[0].status}: it may have read private data and "
                "stays charged. Keep what it gave; another attempt is a spend of its own."
            )
        live = [h.token for h in charges if h.status == "RESERVED"]
        return ("REFUNDED", {"tokens": live}) if live else None

    _append(ledger, decide)


def load(ledger: Ledger) -> State:
    """The state of a ledger, empty where there is none. What was read of it before is not read
    again.

    Raises:
        Refused: something in it is not as it was written, or home keeps releases that it does not
            know.
    """
    stored = _stored_queries(ledger)
    if ledger.folder.is_dir():
        journal.advance(
            _journal(ledger), ledger.state.chain, partial(fold, ledger.lineage, ledger.state)
        )
    _refuse_strangers(ledger, ledger.state, stored)
    return ledger.state


def verify(ledger: Ledger, anchors: Iterable[Anchor] = ()) -> list[str]:
    """Every problem in words; none if the ledger is whole and holds all that the anchors saw in it.

    Args:
        ledger: read anew, from its first entry on.
        anchors: where it stood when results were made; those of other lineages are left out.
    """
    stored = _stored_queries(ledger)
    state, chain = State(), Chain()
    if ledger.folder.is_dir():
        journal.read(_journal(ledger), chain, partial(fold, ledger.lineage, state))
    problems = chain.problems
    own_anchors = [anchor for anchor in anchors if anchor.lineage == ledger.lineage]
    if chain.torn and not any(was_truncated(chain, anchor) for anchor in own_anchors):
        problems.append(f"entry {len(chain.hashes)} is half-written; the next run repairs it")
    if _unknown_queries(state, stored):
        problems.append("releases are kept that it does not know: rolled back or truncated")
    return problems + [problem for anchor in own_anchors if (problem := lost(chain, anchor))]


def lost(chain: Chain, anchor: Anchor) -> str | None:
    """What is wrong with a ledger that does not hold what an anchor saw in it."""
    if anchor.seq > len(chain.hashes):
        return (
            f"results saw entry {anchor.seq}, the ledger ends at {len(chain.hashes)}: rolled back "
            "or truncated"
        )
    if was_truncated(chain, anchor):
        return f"entry {anchor.seq} was whole when results saw it, and its file was cut short since"
    if anchor.seq and chain.hashes[anchor.seq - 1] != anchor.sha256:
        return f"entry {anchor.seq} is not the one that results saw: rolled back and written anew"
    return None


def was_truncated(chain: Chain, anchor: Anchor) -> bool:
    """Whether the last entry is half-written, and was whole when the anchor saw it: no run may go
    on without what it said."""
    return chain.torn and anchor.seq == len(chain.hashes) and chain.head != anchor.sha256


def head(ledger: Ledger) -> Anchor:
    """Where the ledger stands now."""
    chain = load(ledger).chain
    return Anchor(ledger.lineage, len(chain.hashes), chain.head)


def lineages(home: Home) -> list[str]:
    """The lineages that a home has a ledger of."""
    return sorted(path.name for path in home.ledgers.glob("*") if path.is_dir())


def terms_of(ledger: Ledger, state: State) -> Terms:
    """The terms that the lineage was opened under; refused where it was not."""
    if state.terms is None:
        raise Refused(
            f"lineage {ledger.lineage} has no ledger in {ledger.home.path}. Is this the right home?"
        )
    return state.terms


def cost_so_far(ledger: Ledger, state: State) -> Composition:
    """What the lineage has cost so far, what is reserved included."""
    return lifetime_cost(terms_of(ledger, state), state.charged_spends())


Step = tuple[str, Body] | None  # the entry to append, if any


def _append(ledger: Ledger, decide: Callable[[State], Step]) -> State:
    """Append what is decided in full knowledge of every entry before it; the state after that."""
    state = ledger.state
    journal.append(
        _journal(ledger), state.chain, partial(fold, ledger.lineage, state), partial(decide, state)
    )
    return state


def _journal(ledger: Ledger) -> Journal:
    return Journal(ledger.folder, subkey(ledger.home, "ledger"))


def _to_json(item: Item) -> Body:
    body = {"job": to_json(item.job), "question": item.question, "spends": to_json(item.spends)}
    return body | {"code": item.code}


def _charge_of_token(ledger: Ledger, state: State, token: str) -> LedgerCharge:
    if token not in state.charges:
        raise Refused(f"no such reservation on lineage {ledger.lineage}. Plan the job again.")
    return state.charges[token]


def _stored_queries(ledger: Ledger) -> set[str]:
    """The queries whose releases home keeps. To be listed before the journal is read, which knows
    each before it is kept."""
    folder = ledger.home.releases / ledger.lineage
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()


def _unknown_queries(state: State, stored: set[str]) -> set[str]:
    """The queries whose releases home keeps, and the ledger does not know."""
    return stored - {str(charge.query) for charge in state.charges.values()}


def _refuse_strangers(ledger: Ledger, state: State, stored: set[str]) -> None:
    """Refuse a ledger that does not know a release which home keeps: it lost entries, and would
    charge and answer anew."""
    if _unknown_queries(state, stored):
        raise Refused(
            f"{ledger.home.releases / ledger.lineage} keeps releases that the ledger in "
            f"{ledger.folder} does not know: it is gone, cut short, or an older copy, and what it "
            "lost would be charged and answered anew. Nothing was spent. Restore the ledger as it "
            "was last: what was spent stays spent."
        )
