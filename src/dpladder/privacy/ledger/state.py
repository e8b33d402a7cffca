"""What a ledger's entries add up to: the terms of a lineage, its charges and how each went.

A charge is one job's declared spends. It goes RESERVED → COMMITTED (before the job's first private
read) → DONE, or from RESERVED to REFUNDED. Whatever is not refunded is charged. That is why no
damaged last entry can lose a charge. A torn RESERVED gave nobody a token to spend with. A torn
COMMITTED or DONE leaves the charge. A torn REFUNDED gave nothing back.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from dpladder.errors import BadInput, Refused
from dpladder.privacy.accounting.events import Job, Relation, Spend, from_json
from dpladder.privacy.ledger.journal import Body, Chain

Mode = Literal["release", "research"]
Status = Literal["RESERVED", "COMMITTED", "DONE", "REFUNDED"]
Draws = Sequence[Mapping[str, Any]]  # as the journal holds them
Units = Mapping[str, object]  # the keys of the config that say by what units are known
PlanNote = Mapping[str, Mapping[str, Any]]
"""What a run's plan was resolved to, by experiment: `keys`, all of the config that its results
follow from; `questions`, all that it asks; `chosen`, what the config left open, and `inputs`,
digests of what that followed from."""
LINEAGE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class Terms:
    """What a lineage's first entry fixes, for life once something was committed.

    Attributes:
        lineage: the data's name for life.
        relation: what neighbours are.
        unit, cap: whose privacy is protected, and how many rows of one count at most.
        delta: of every guarantee about the lineage.
        split_rule: what decides which part a unit lies in.
        lifetime_epsilon: the most that may ever be spent; None: no limit is declared.
        mode: in research no limit holds, and nothing is guaranteed.
        share: of delta, what booked events may use up.
        loss, weight: of the limit, what private selections may use up: their losses together, and
            the product of their weights (accounting/booking.py).
    """

    lineage: str
    relation: Relation
    unit: str
    cap: int
    delta: float
    split_rule: str
    lifetime_epsilon: float | None = None
    mode: Mode = "release"
    share: float = 0.0
    loss: float = 0.0
    weight: float = 1.0

    def __post_init__(self) -> None:
        limit = self.lifetime_epsilon
        for name in ("delta", "lifetime_epsilon", "share", "loss", "weight"):
            if isinstance(value := getattr(self, name), str):
                raise BadInput(f"{name} is {value!r}. It must be a number, without quotes.")
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


@dataclass(frozen=True)
class Item:
    """What a question is to cost.

    Attributes:
        job: a label, for people.
        question: a digest of everything about it that is known before data is read, and of no
            name: mechanisms, config keys, wildcards.
        spends: what is set aside for it.
        code: a digest of the code that runs it.
    """

    job: Job
    question: str
    spends: tuple[Spend, ...]
    code: str = ""


@dataclass(frozen=True, kw_only=True)
class LedgerCharge(Item):
    """An item in the ledger. Its job is the label of who asked first. Its spends are what it is
    charged: the declared ones; from COMMITTED on the concrete ones, which cost no more.

    Attributes:
        token: what COMMIT needs; given back, it is good for nothing.
        declared: what was set aside.
        query: what it was committed for.
        draws: the noise that was declared; none of own code, which draws outside the meter.
        nonce: that makes its noise its own. Secret.
        output: digest of what was released.
        reserved, released: numbers of the entries that say so. What was reserved before any release
            cannot have been chosen by one. Own code counts as released once committed: nobody can
            know what it showed after that.
        continued: the entry of the last run that resumed it, after something else was released.
        by: who asked.
    """

    token: str
    declared: tuple[Spend, ...]
    status: Status = "RESERVED"
    query: str | None = None
    draws: Draws = ()
    nonce: str | None = field(default=None, repr=False)
    output: str | None = None
    reserved: int = 0
    released: int | None = None
    continued: int | None = None
    by: str = ""

    @property
    def used(self) -> bool:
        """Whether private records may have been read for it."""
        return self.status in ("COMMITTED", "DONE")


@dataclass(frozen=True)
class Anchor:
    """Where a ledger stood. A statement carries it, so that a ledger put back in time is found out.

    Attributes:
        lineage: whose ledger.
        seq: the number of its last entry.
        sha256: of that entry's bytes, in hex.
    """

    lineage: str
    seq: int
    sha256: str


@dataclass
class State:
    """What the entries read so far add up to.

    Attributes:
        chain: of entries that were read.
        entries: how many said something, repairs left out.
        charges: all of them, by token.
        tokens: by question, oldest first.
        nonces: that were ever used, so that none is used twice.
        plans: what runs planned, each once, by the number of the entry that says it.
        first_units: of each version of the data the units that were there when it was first asked,
            by a digest.
        units: of each version what the config said of how its units are known, when it was reserved
            last.
    """

    chain: Chain = field(default_factory=Chain)
    entries: int = 0
    terms: Terms | None = None
    charges: dict[str, LedgerCharge] = field(default_factory=dict)
    tokens: dict[str, list[str]] = field(default_factory=dict)
    nonces: set[str] = field(default_factory=set)
    plans: dict[int, PlanNote] = field(default_factory=dict)
    first_units: dict[str, str] = field(default_factory=dict)
    units: dict[str, Units] = field(default_factory=dict)

    @property
    def binding(self) -> Terms | None:
        """The terms, once private records may have been read under them: from then on they hold for
        life."""
        return self.terms if any(charge.used for charge in self.charges.values()) else None

    @property
    def choices(self) -> dict[str, list[Mapping[str, Any]]]:
        """What plans chose, by a digest of what that followed from, oldest first."""
        chosen: dict[str, list[Mapping[str, Any]]] = {}
        for note in (note for plan in self.plans.values() for note in plan.values()):
            for inputs in note["inputs"]:
                known = chosen.setdefault(inputs, [])
                if note["chosen"] not in known:
                    known.append(note["chosen"])
        return chosen

    def entry_of(self, plan: PlanNote) -> int:
        """The number of the entry that says a plan; 0 where none does."""
        return next((entry for entry, known in self.plans.items() if known == plan), 0)

    def without_repeats(self, plan: PlanNote) -> dict[str, Any]:
        """A plan as a new entry says it: of an experiment that stands in an earlier one as it is,
        that entry's number."""
        return {
            name: next((at for at, known in self.plans.items() if known.get(name) == note), note)
            for name, note in plan.items()
        }

    def as_under(self, terms: Terms) -> State:
        """The state as a run under these terms finds it: where it corrects them, without what was
        reserved under others."""
        stands = self.binding is not None or terms == self.terms
        return self if stands else replace(self, charges={}, tokens={})

    def charged_spends(self, *without: str) -> tuple[Spend, ...]:
        """Every spend that was not refunded, but those of the tokens in `without`."""
        counted = (
            h for h in self.charges.values() if h.status != "REFUNDED" and h.token not in without
        )
        return tuple(spend for charge in counted for spend in charge.spends)

    def charges_for(self, question: str) -> list[LedgerCharge]:
        """What was charged for a question, oldest first. Only the last can be unused: a reservation
        is replaced before another one follows (book.admit)."""
        charges = [self.charges[token] for token in self.tokens.get(question, ())]
        return [h for h in charges if h.status != "REFUNDED"]

    def answer(self, question: str) -> LedgerCharge | None:
        """The last of a question's charges for which private records may have been read."""
        return next(
            (charge for charge in reversed(self.charges_for(question)) if charge.used), None
        )

    def finished_charge(self, query: str) -> LedgerCharge | None:
        """The charge that released `query`."""
        return next(
            (h for h in self.charges.values() if h.query == query and h.status == "DONE"), None
        )


def fold(lineage: str, state: State, kind: str, body: Body, by: str) -> None:
    """Take one entry in: the only place that gives entries their meaning.

    The state is all of them in order, and a reader of a copy folds it in the same way. An entry is
    never judged here by rules of today but for what would make it no entry of this ledger. What was
    spent stays spent, whatever a later version would have allowed.

    Args:
        lineage: whose ledger it is.
        state: which is changed.
        kind, body: of the entry.
        by: who wrote it.

    Raises:
        Refused: it cannot follow the entries before it, or this version does not know its kind.
    """
    state.entries += 1
    match kind:
        case "OPENED":
            terms = Terms(**body)
            if state.terms is not None or terms.lineage != lineage:
                raise Refused(f"opens lineage {terms.lineage} inside the ledger of {lineage}")
            state.terms = terms
        case "CORRECTED":
            terms = Terms(**body)
            if state.binding is not None or terms.lineage != lineage:
                raise Refused(f"corrects terms of lineage {lineage} that hold for its life")
            for token in [h.token for h in state.charges.values() if h.status == "RESERVED"]:
                _set_status(state, token, "REFUNDED")
            state.terms = terms
        case "RESERVED":
            if body["plan"]:
                state.plans[state.entries] = {
                    name: state.plans[note][name] if isinstance(note, int) else note
                    for name, note in body["plan"].items()
                }
            for token in body["replaces"]:
                _set_status(state, token, "REFUNDED")
            for token in body["continued"]:
                state.charges[token] = replace(state.charges[token], continued=state.entries)
            for item in body["items"]:
                declared = from_json(item["spends"])
                charge = LedgerCharge(
                    from_json(item["job"]),
                    item["question"],
                    declared,
                    item["code"],
                    token=item["token"],
                    declared=declared,
                    reserved=state.entries,
                    by=by,
                )
                for spend in declared if "units" in body else ():
                    state.units[spend.partition.version] = body["units"]
                state.charges[charge.token] = charge
                state.tokens.setdefault(charge.question, []).append(charge.token)
        case "COMMITTED":
            if body["nonce"] in state.nonces:
                raise Refused("uses a nonce that was used before")
            state.nonces.add(body["nonce"])
            spends = from_json(body["spends"])
            for spend in spends if body["units"] else ():
                state.first_units.setdefault(spend.partition.version, body["units"])
            facts = {"spends": spends, "released": None if body["draws"] else state.entries}
            fields = {name: value for name, value in body.items() if name != "units"}
            _set_status(state, status="COMMITTED", **fields | facts)
        case "DONE":
            released = state.charges[body["token"]].released or state.entries
            _set_status(state, status="DONE", released=released, **body)
        case "REFUNDED":
            for token in body["tokens"]:
                _set_status(state, token, "REFUNDED")
        case _:
            raise Refused(
                f"has the type {kind}, which this version does not know: upgrade dpladder"
            )


BEFORE: dict[Status, Status] = {
    "COMMITTED": "RESERVED",
    "DONE": "COMMITTED",
    "REFUNDED": "RESERVED",
}


def _set_status(state: State, token: str, status: Status, **facts: Any) -> None:
    """Move a charge one step on; refused where that step cannot follow."""
    charge = state.charges[token]
    if charge.status != BEFORE[status]:
        raise Refused(f"makes {charge.job} {status} when it is {charge.status}")
    state.charges[token] = dataclasses.replace(charge, status=status, **facts)
