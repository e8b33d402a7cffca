"""The statement: what a finished DAG guarantees, composed from every rule's record and held against
the ledger.

It carries its own evidence: each spend, a digest of each record, and where each ledger stood.
`check` recomputes all of it from the files alone, so a privacy officer needs neither the data nor
the machine.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from dpladder.errors import Refused
from dpladder.formats import FORMATS
from dpladder.privacy.accounting.composition import compose, entry_of
from dpladder.privacy.accounting.events import (
    Job,
    Spend,
    counts_for,
    from_json,
    to_json,
)
from dpladder.privacy.accounting.shown import up, up_short
from dpladder.privacy.ledger.book import NOTHING, OWN
from dpladder.privacy.ledger.room import caps, ever
from dpladder.privacy.ledger.state import Anchor, Held, State, Terms, called
from dpladder.privacy.statement.documents import (
    FINALS,
    Cost,
    Costs,
    Origin,
    Outside,
    PlanDocument,
    Promise,
    Stated,
    StatedModel,
    StatedSpend,
    Statement,
)
from dpladder.privacy.statement.records import Document, job_of, spends_of

Lines = Sequence[StatedSpend]
MODIFIED = " with uncommitted changes"  # beside a commit
Value = TypeVar("Value")
NO_STATICS: Mapping[Job, str | None] = {}
FINAL = ("train_final", "evaluate", "evaluate_also", "evaluate_of")  # what all else is a search for


def build(
    plan: PlanDocument,
    records: Mapping[str, Document],
    digests: Mapping[str, str],
    states: Mapping[str, State],
    anchors: Iterable[Anchor],
    origin: Origin,
    files: Mapping[str, str],
    made_by: Callable[[Job, Held], str] = lambda job, held: "",
) -> Statement:
    """The statement of a finished DAG. Refused when a record, the ledger and the plan do not tell
    one story. `made_by`: how a release was made, where that is to be told. `digests`, `files`: of
    records and of all else that was published, by path."""
    paid = [record for record in records.values() if "spends" in record]
    recorded = {job_of(record): spends_of(record) for record in paid}
    statics = {job_of(record): record.get("static") for record in paid}
    experiments = _experiments(plan)
    datasets = {
        anchor.lineage: _stated(
            plan.artifacts, experiments, anchor, states[anchor.lineage], recorded, statics, made_by
        )
        for anchor in anchors
    }
    return Statement(
        mode=plan.mode,
        relation=shared(dataset.relation for dataset in datasets.values()),
        delta=shared(dataset.delta for dataset in datasets.values()),
        target_epsilon=plan.target_epsilon,
        datasets=datasets,
        records=dict(sorted(digests.items())),
        origin=origin,
        config=plan.config,
        deployment=plan.deployment,
        files=dict(sorted(files.items())),
        format=FORMATS["statement"],
    )


def build_own(
    state: State,
    recorded: Mapping[Job, tuple[Spend, ...]],
    digests: Mapping[str, str],
    anchor: Anchor,
    origin: Origin,
) -> Statement:
    """The statement of the mechanisms of the user's own on one lineage (embed/): no plan stands
    behind them, and no model."""
    terms = state.terms
    assert terms is not None, "a lineage is opened before it is stated"
    return Statement(
        mode=terms.mode,
        relation=terms.relation,
        delta=terms.delta,
        target_epsilon=terms.lifetime_epsilon or 0.0,
        datasets={anchor.lineage: _stated((), {OWN}, anchor, state, recorded)},
        records=dict(sorted(digests.items())),
        origin=origin,
        config="",
        deployment=None,
        files={},
        format=FORMATS["statement"],
    )


def shared(values: Iterable[Value]) -> Value | None:
    """What all of them are, if they are the same."""
    found = set(values)
    return found.pop() if len(found) == 1 else None


def broken(dataset: Stated) -> bool:
    """Whether more was spent than the limit allowed, which only releases that a bug had priced too
    low can do."""
    low = any(line.unsound for line in (*dataset.spends, *dataset.outside_this_dag.spends))
    return (
        low
        and dataset.lifetime_epsilon is not None
        and dataset.lifetime_spent > dataset.lifetime_epsilon
    )


def guarantee_of(dataset: Stated) -> Cost | None:
    """The figure that holds: the limit that was declared, or what was planned as a whole; else none
    does (docs/design.md, line 17)."""
    if broken(dataset):
        return None
    if dataset.lifetime_epsilon is not None:
        return Cost(dataset.lifetime_epsilon, dataset.lifetime_mu)
    if dataset.outside_this_dag.jobs or not dataset.planned:
        return None
    return Cost(dataset.epsilon, dataset.mu if dataset.accountant == "exact" else None)


def _experiments(plan: PlanDocument) -> set[str]:
    """The DAG's experiments, also by the names that they had before."""
    return {
        name
        for artifact in plan.artifacts
        for name in (artifact.experiment, *artifact.former, *artifact.shared_with)
    }


def seal(statement: Mapping[str, Any], key: bytes) -> Document:
    """The statement's document with its digest, which shows any slip, and a MAC, which shows any
    forgery to who has the key."""
    text = _canonical(statement)
    return {
        **statement,
        "id": hashlib.sha256(text).hexdigest(),
        "seal": hmac.digest(key, text, "sha256").hex(),
    }


def _canonical(statement: Mapping[str, Any]) -> bytes:
    content = {key: value for key, value in statement.items() if key not in ("id", "seal")}
    return json.dumps(content, sort_keys=True, allow_nan=False).encode()


def _stated(
    artifacts: Sequence[Promise],
    experiments: set[str],
    anchor: Anchor,
    state: State,
    recorded: Mapping[Job, tuple[Spend, ...]],
    statics: Mapping[Job, str | None] = NO_STATICS,
    made_by: Callable[[Job, Held], str] = lambda job, held: "",
) -> Stated:
    """What the statement says of one lineage.

    Three sets of the ledger's items matter: `current`, whose results lie here as their records say;
    `lines`, all that this project's experiments were ever charged for, which also holds what was
    superseded; and `beside`, what other projects spent on the same people. The lifetime counts all
    three."""
    terms, lineage = state.terms, anchor.lineage
    assert terms is not None, "a lineage with finished jobs has an opened ledger"
    charged = [held for held in state.items.values() if held.status != "REFUNDED"]
    named = [(job, held) for job, held in state.by_name() if job.experiment in experiments]
    current = {
        job: held
        for job, held in sorted(named, key=lambda one: _is_of(one[1], recorded.get(one[0])))
        if held.status == "DONE" and job in recorded and _records(held, statics.get(job))
    }
    _agree(recorded, current, lineage)
    promises = [artifact for artifact in artifacts if artifact.lineage == lineage]
    asked = {one.job for promise in promises for one in promise.jobs}
    # Of several names the one that states it counts, then the one that the plan has, and has for
    # the same question.
    names = {
        held.token: job
        for job, held in sorted(
            named, key=lambda one: (one[0] in asked, statics.get(one[0]) == one[1].static)
        )
    }
    names |= {held.token: job for job, held in current.items()}
    told = {held.token: made_by(job, held) for job, held in current.items()}
    lines = [
        replace(
            _line(spend, names[held.token], held, current, terms.delta),
            made=told.get(held.token, ""),
        )
        for held in charged
        if held.token in names
        for spend in held.spends
    ]
    outside = [held for held in charged if held.token not in names]
    beside = [
        _line(spend, held.job, held, {held.job: held}, terms.delta)
        for held in outside
        for spend in held.spends
    ]
    return Stated(
        **vars(figures_of(lines, terms.delta)),
        relation=terms.relation,
        delta=terms.delta,
        unit=terms.unit,
        cap=terms.cap,
        confirmed=state.confirmed,
        lifetime_epsilon=terms.lifetime_epsilon,
        lifetime_mu=limit_mu(terms),
        lifetime_spent=ever(terms, state.charged()).epsilon,
        planned=not released_before(lines, [*lines, *beside]),
        artifacts=models_of(promises, lines, beside, terms.delta, limited=terms.mode != "research"),
        outside_this_dag=Outside(
            **vars(figure_of(beside, terms.delta)), jobs=len(outside), spends=tuple(beside)
        ),
        spends=tuple(lines),
        ledger=anchor,
        chosen=chosen_among(lines, beside, terms.delta),
    )


def _is_of(held: Held, spends: tuple[Spend, ...] | None) -> bool:
    """Whether a record is of this release, of several answers to one question on versions of the
    data."""
    return tuple(replace(spend, query=None) for spend in held.spends) == spends


def _records(held: Held, static: str | None) -> bool:
    """Whether a record is of this release of its job. One that does not name its question is of the
    last."""
    return static is None or static == held.static


def limit_mu(terms: Terms) -> float | None:
    most = caps(terms)
    return (
        most.mu if terms.lifetime_epsilon is not None and most.plain and not most.delta0 else None
    )


def _agree(
    recorded: Mapping[Job, tuple[Spend, ...]], current: Mapping[Job, Held], lineage: str
) -> None:
    """Refuse to state what the ledger does not bear out: every record here must be an item that is
    done, at the price that the record tells."""
    for job, spends in recorded.items():
        if spends and spends[0].lineage != lineage:
            continue
        held = current.get(job)
        if held is None:
            raise Refused(
                f"{called(job)} has a privacy record, and the ledger of lineage {lineage} does not "
                "hold it as done. What the ledger lacks was spent all the same, and would be "
                "charged and answered anew: set DPLADDER_HOME to the home that these results were "
                "made under, as it was last."
            )
        if not (_is_of(held, spends) or held.unsound):
            raise Refused(
                f"the privacy record of {called(job)} disagrees with the ledger of lineage "
                f"{lineage}. Delete its outputs and run again: what was released is restored, free."
            )


def _line(
    spend: Spend, job: Job, held: Held, current: Mapping[Job, Held], delta: float
) -> StatedSpend:
    return StatedSpend(
        rule=job.rule,
        experiment=job.experiment,
        wildcards=dict(job.wildcards),
        label=spend.label,
        partition=",".join(spend.partition.parts) or "all",
        mu=mu_of_spend(spend),
        epsilon=compose([spend], delta).epsilon,
        count=spend.count,
        superseded=current.get(job) is not held,
        reserved=held.reserved,
        released=held.released,
        spend=to_json(replace(spend, query=None)),
        static=held.static,
        unsound=held.unsound,
        continued=held.continued,
        family=held.family,
    )


def figure_of(lines: Iterable[StatedSpend], delta: float) -> Cost:
    whole = compose(_spends(lines), delta)
    return Cost(whole.epsilon, whole.mu)


def figures_of(lines: Iterable[StatedSpend], delta: float) -> Costs:
    """The DAG's composed figures from its spends."""
    whole = compose(_spends(lines), delta)
    exact = whole.mu is not None and not whole.entry.delta0
    return Costs(
        epsilon=whole.epsilon,
        mu=whole.mu,
        accountant="exact" if exact else "booked",
        partitions={
            part: Cost(found.epsilon, found.mu) for (_, part), found in whole.parts.items()
        },
    )


def released_before(
    lines: Iterable[StatedSpend], among: Iterable[StatedSpend]
) -> list[StatedSpend]:
    """What was released before the last of these jobs was reserved, and so may have been a reason
    for it."""
    last = max((line.reserved for line in lines), default=0)
    return [line for line in among if line.released is not None and line.released < last]


def told_of(lines: Iterable[StatedSpend]) -> list[str]:
    """How releases were made that today's dpladder would make otherwise: each way once, with how
    many they are."""
    found = dict.fromkeys((line.job, line.made) for line in lines if line.made)
    ways = Counter((job.experiment, made) for job, made in found)
    return [
        f"{experiment}: {made} ({count} released)" for (experiment, made), count in ways.items()
    ]


def models_of(
    promises: Iterable[Promise], lines: Lines, beside: Lines, delta: float, limited: bool
) -> dict[str, StatedModel]:
    """The final models of one lineage by their paths. `limited`: whether a total holds, which it
    does not in research."""
    return {promise.path: _model_of(promise, lines, beside, delta, limited) for promise in promises}


def _model_of(
    promise: Promise, lines: Lines, beside: Lines, delta: float, limited: bool
) -> StatedModel:
    """One final model: what it bears itself, and beside it what was released earlier from the same
    people, as contract line 15 wants both. Under a budget it may not bear more than its total; a
    plan that held makes that impossible, so this is a second look and not the gate."""
    borne = borne_by(promise, lines)
    spends = _spends(borne)
    cost = compose(spends, delta)
    if (
        limited
        and cost.epsilon > promise.target_epsilon
        and not any(line.unsound for line in borne)
    ):
        raise Refused(
            f"{promise.path} composes to epsilon = {up(cost.epsilon, 6)}, above its total of "
            f"{up_short(promise.target_epsilon)}. The statement is not written; `dpladder ledger "
            "show` lists what was spent."
        )
    search = [spend for spend in spends if spend.job.rule not in FINAL]
    return StatedModel(
        epsilon=cost.epsilon,
        mu=cost.mu,
        experiment=promise.experiment,
        target_epsilon=promise.target_epsilon,
        with_earlier=_with_earlier(borne, [*lines, *beside], delta),
        search_share=_share(search, spends),
        jobs=promise.jobs,
        former=promise.former,
        shared_with=promise.shared_with,
        families=promise.families,
    )


def chosen_among(lines: Lines, beside: Lines, delta: float) -> Cost | None:
    """What the choice of one final model among several costs, whichever it is: all that the DAG
    ever released, and what else was out before its last plan. Whoever goes back to an earlier model
    has seen the later ones too."""
    released = [line for line in lines if line.released is not None]
    models = {(line.job, line.reserved) for line in released if line.rule in FINALS}
    if len(models) < 2:
        return None
    return figure_of([*released, *_seen_by(lines, beside)], delta)


def _seen_by(borne: Iterable[StatedSpend], among: Iterable[StatedSpend]) -> list[StatedSpend]:
    """What was out before the last of these jobs was planned, or taken up again."""
    last = max((line.continued or line.reserved for line in borne), default=0)
    return [line for line in among if line.released is not None and line.released < last]


def _with_earlier(borne: Lines, lines: Lines, delta: float) -> Cost | None:
    """What an artifact costs together with all that was released before it was planned, or taken up
    again, and may have steered it. None where there was nothing."""
    earlier = [line for line in _seen_by(borne, lines) if line not in borne]
    return figure_of([*borne, *earlier], delta) if earlier else None


def _spends(lines: Iterable[StatedSpend]) -> list[Spend]:
    return [from_json(line.spend) for line in lines]


def mu_of_spend(spend: Spend) -> float | None:
    entry = entry_of(spend)
    return entry.mu if entry.plain else None


def borne_by(promise: Promise | StatedModel, lines: Iterable[StatedSpend]) -> list[StatedSpend]:
    """The lines of a statement that count against a final model's total: its own and its
    ancestors', and other answers to the same questions that were released before it was planned, as
    whoever tunes by hand pays for. What read another version of the data, as far as that is known,
    is stated with what was released earlier."""
    lines, jobs = list(lines), {named.job for named in promise.jobs}
    own = [line for line in lines if line.job in jobs and not line.superseded]
    statics = {line.job: line.static for line in own}
    read = {_version_of(line) for line in own} | {""}
    planned = max((line.reserved for line in own), default=0)
    paid = {line.job: line.family for line in own}
    counts = counts_for(promise.families, paid)

    def tuned(line: StatedSpend) -> bool:
        other = line.superseded or line.job not in jobs
        edited = statics.get(line.job) != line.static
        return (
            other
            and edited
            and counts(line.family, line.job)
            and (line.released or line.reserved) < planned
            and _version_of(line) in read
        )

    return [*own, *filter(tuned, lines)]


def _version_of(line: StatedSpend) -> str:
    """Of the data that a line is about; empty where its parts do not hang on that."""
    partition: Mapping[str, Any] = line.spend.get("partition", NOTHING)
    return str(partition.get("version", ""))


def _share(some: Iterable[Spend], of: Sequence[Spend]) -> float | None:
    """Share of mu squared among the spends that read the training part; none of a private search,
    whose training and search are one."""
    if any(spend.job.rule == "private_search" for spend in of):
        return None

    def squares(spends: Iterable[Spend]) -> float:
        return math.fsum(
            (mu_of_spend(s) or 0.0) ** 2 for s in spends if s.partition.parts != ("test",)
        )

    total = squares(of)
    return squares(some) / total if total else 0.0
