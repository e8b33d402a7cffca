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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from dpladder.errors import Refused
from dpladder.formats import FORMATS
from dpladder.privacy.accounting.composition import compose, entry_of
from dpladder.privacy.accounting.events import Job, Spend, from_json, to_json
from dpladder.privacy.accounting.rounding import round_up, round_up_short
from dpladder.privacy.ledger.book import OWN_CODE
from dpladder.privacy.ledger.limits import caps, lifetime_cost
from dpladder.privacy.ledger.state import Anchor, LedgerCharge, State, Terms
from dpladder.privacy.statement.documents import (
    FINALS,
    Cost,
    Costs,
    Origin,
    Outside,
    PlanDocument,
    PlannedModel,
    PricedSpend,
    Stated,
    StatedModel,
    StatedSpend,
    Statement,
)
from dpladder.privacy.statement.records import Document, job_of, spends_of

Lines = Sequence[StatedSpend]
Promise = PlannedModel | StatedModel  # a statement repeats what its plan promised
MODIFIED = " with uncommitted changes"  # beside a commit
Value = TypeVar("Value")
AFTER_SEARCH = ("train_final", "evaluate", "evaluate_also")  # all else is a search for these


def build(
    plan: PlanDocument,
    records: Mapping[str, Document],
    digests: Mapping[str, str],
    states: Mapping[str, State],
    anchors: Iterable[Anchor],
    origin: Origin,
    files: Mapping[str, str],
    made_by: Callable[[Job], str] = lambda job: "",
) -> Statement:
    """The statement of a finished DAG.

    Args:
        plan: of the config that was run.
        records: the privacy record of every job, by its path.
        digests: of each record's bytes, by its path.
        states: what each lineage's ledger holds.
        anchors: where each ledger stood; the lineages are stated in this order.
        origin: when it is composed, and by what.
        files: digests of all else that was published, by path.
        made_by: what a job's release rests on beside dpladder; else empty.

    Raises:
        Refused: a record, the ledger and the plan do not tell one story, or a model costs more than
            its total.
    """
    recorded = [record for record in records.values() if "spends" in record]
    planned = {spend.question: spend.job for spend in plan.spends}
    datasets = {
        anchor.lineage: _stated(
            plan.artifacts, planned, anchor, states[anchor.lineage], recorded, made_by
        )
        for anchor in anchors
    }
    return Statement(
        mode=plan.mode,
        relation=common_value(dataset.relation for dataset in datasets.values()),
        delta=common_value(dataset.delta for dataset in datasets.values()),
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
    recorded: Sequence[Document],
    digests: Mapping[str, str],
    anchor: Anchor,
    origin: Origin,
) -> Statement:
    """The statement of the mechanisms of the user's own on one lineage (dpladder_ledger/): no plan
    stands behind them, and no model. Without a plan every later spend may follow from an earlier
    release. So without a limit there is rarely a guarantee (`LineageFacts.bound`).

    Args:
        state: what the lineage's ledger holds; it is opened.
        recorded: the privacy record of every release that is stated.
        digests: of each record's bytes, by its path.
        anchor: where the ledger stood.
        origin: when it is composed, and by what.

    Raises:
        Refused: a record and the ledger disagree.
    """
    terms = state.terms
    assert terms is not None, "a lineage is opened before it is stated"
    job_by_question = {
        h.question: h.job for h in state.charges.values() if h.job.experiment == OWN_CODE
    }
    return Statement(
        mode=terms.mode,
        relation=terms.relation,
        delta=terms.delta,
        target_epsilon=terms.lifetime_epsilon or 0.0,
        datasets={anchor.lineage: _stated((), job_by_question, anchor, state, recorded)},
        records=dict(sorted(digests.items())),
        origin=origin,
        config="",
        deployment=None,
        files={},
        format=FORMATS["statement"],
    )


def common_value(values: Iterable[Value]) -> Value | None:
    """What all of them are, if they are the same; else None, and the statement says it by
    lineage."""
    distinct = set(values)
    return distinct.pop() if len(distinct) == 1 else None


def seal(statement: Mapping[str, Any], key: bytes) -> Document:
    """The statement's document with its digest, which shows any slip, and a MAC, which shows any
    forgery to who has the key.

    Args:
        statement: as plain JSON values; an older id and seal in it do not count.
        key: home's, for this purpose.
    """
    text = _canonical(statement)
    return {
        **statement,
        "id": hashlib.sha256(text).hexdigest(),
        "seal": hmac.digest(key, text, "sha256").hex(),
    }


def _canonical(statement: Mapping[str, Any]) -> bytes:
    """The bytes that are digested and sealed: all but the id and the seal, with keys in order. So
    reading and writing a statement again changes nothing."""
    content = {key: value for key, value in statement.items() if key not in ("id", "seal")}
    return json.dumps(content, sort_keys=True, allow_nan=False).encode()


def _stated(
    artifacts: Sequence[PlannedModel],
    names: Mapping[str, Job],
    anchor: Anchor,
    state: State,
    records: Sequence[Document],
    made_by: Callable[[Job], str] = lambda job: "",
) -> Stated:
    """What the statement says of one lineage.

    Three sets of the ledger's charges matter. `current` are those whose results lie here as their
    records say. `lines` are all that was charged for questions that are asked or recorded here
    (`names`, with their labels), other answers to them included. `beside` is what else was spent on
    the same people. The lifetime counts them all."""
    terms, lineage = state.terms, anchor.lineage
    assert terms is not None, "a lineage with finished jobs has an opened ledger"
    current = _current(records, state, lineage)
    names = {**names, **{charge.question: job for job, charge in current.items()}}
    made_texts = {charge.token: made_by(job) for job, charge in current.items()}
    lines: list[StatedSpend] = []
    beside: list[StatedSpend] = []
    charged = [charge for charge in state.charges.values() if charge.status != "REFUNDED"]
    for charge in charged:
        ours = charge.question in names
        job = names.get(charge.question, charge.job)
        superseded = ours and current.get(job) is not charge
        (lines if ours else beside).extend(
            _line(spend, job, charge, superseded, terms.delta, made_texts.get(charge.token, ""))
            for spend in charge.spends
        )
    outside = [charge for charge in charged if charge.question not in names]
    promises = {model.path: model for model in artifacts if model.lineage == lineage}
    everything = [*lines, *beside]
    return Stated(
        **vars(figures_of(lines, terms.delta)),
        relation=terms.relation,
        delta=terms.delta,
        unit=terms.unit,
        cap=terms.cap,
        lifetime_epsilon=terms.lifetime_epsilon,
        lifetime_mu=limit_mu(terms),
        lifetime_spent=lifetime_cost(terms, state.charged_spends()).epsilon,
        planned=not earlier_releases(everything),
        artifacts=models_of(promises, lines, beside, terms.delta, limited=terms.mode != "research"),
        outside_this_dag=Outside(
            **vars(figure_of(beside, terms.delta)), jobs=len(outside), spends=tuple(beside)
        ),
        spends=tuple(lines),
        ledger=anchor,
        chosen=cost_of_choice(everything, terms.delta),
    )


def _current(records: Iterable[Document], state: State, lineage: str) -> dict[Job, LedgerCharge]:
    """The release that each record here is of. Refused where the ledger does not bear it out: every
    record must be of a charge that is done, at the price that the record tells."""
    current: dict[Job, LedgerCharge] = {}
    for record in records:
        job, spends = job_of(record), spends_of(record)
        if spends[0].lineage != lineage:
            continue
        done = [
            charge for charge in state.charges_for(record["question"]) if charge.status == "DONE"
        ]
        # of several answers, on versions of the data, the last that the record may be of
        done.sort(key=lambda charge: _is_of(charge, spends))
        if not done:
            raise Refused(
                f"{job} has a privacy record, and the ledger of lineage {lineage} does "
                "not hold it as done. What the ledger lacks was spent all the same, and would be "
                "charged and answered anew: set DPLADDER_HOME to the home that these results were "
                "made under, as it was last."
            )
        if not _is_of(done[-1], spends):
            raise Refused(
                f"the privacy record of {job} disagrees with the ledger of lineage "
                f"{lineage}. Delete its outputs and run again: what was released is restored, free."
            )
        current[job] = done[-1]
    return current


def _is_of(charge: LedgerCharge, spends: tuple[Spend, ...]) -> bool:
    """Whether a record's spends are this charge's. Records hold no query digests, so these do not
    count."""
    return tuple(replace(spend, query=None) for spend in charge.spends) == spends


def limit_mu(terms: Terms) -> float | None:
    """The mu of a Gaussian release that costs the whole lifetime limit; None where there is no
    limit, or no single Gaussian says it."""
    most = caps(terms)
    return (
        most.mu
        if terms.lifetime_epsilon is not None and most.is_gaussian and not most.delta0
        else None
    )


def _line(
    spend: Spend, job: Job, charge: LedgerCharge, superseded: bool, delta: float, made_text: str
) -> StatedSpend:
    """One spend of a charge as the statement lists it. Its query digest is left out, as in
    records."""
    return StatedSpend(
        **vars(priced_spend(spend, job, charge.question, delta)),
        superseded=superseded,
        reserved=charge.reserved,
        released=charge.released,
        spend=to_json(replace(spend, query=None)),
        continued=charge.continued,
        made=made_text,
    )


def priced_spend(spend: Spend, job: Job, question: str, delta: float) -> PricedSpend:
    """What plan and statement say of a spend, with its own figures.

    Args:
        spend: of a job.
        job: as the reader's config names it.
        question: what the ledger knows the job by.
        delta: the lineage's.
    """
    return PricedSpend(
        rule=job.rule,
        experiment=job.experiment,
        wildcards=dict(job.wildcards),
        question=question,
        label=spend.label,
        partition=",".join(spend.partition.parts) or "all",
        count=spend.count,
        mu=mu_of_spend(spend),
        epsilon=compose([spend], delta).epsilon,
    )


def figure_of(lines: Iterable[StatedSpend], delta: float) -> Cost:
    """What stated spends compose to at delta: the worst unit's."""
    whole = compose(_spends(lines), delta)
    return Cost(whole.epsilon, whole.mu)


def figures_of(lines: Iterable[StatedSpend], delta: float) -> Costs:
    """The DAG's composed figures from its spends: of the worst unit, and of each part's units. The
    accountant is `exact` where all was Gaussian, so that mu says everything.

    Args:
        lines: the spends of one lineage, superseded ones included: they were charged, too.
        delta: the lineage's.
    """
    whole = compose(_spends(lines), delta)
    return Costs(
        epsilon=whole.epsilon,
        mu=whole.mu,
        accountant="exact" if whole.exact else "booked",
        partitions={
            part: Cost(figure.epsilon, figure.mu) for (_, part), figure in whole.parts.items()
        },
    )


def earlier_releases(lines: Sequence[StatedSpend]) -> list[StatedSpend]:
    """What was released before the last of all jobs was reserved, and so may have been a reason for
    it. Where there is none, all of it was chosen before anything was seen."""
    last = max((line.reserved for line in lines), default=0)
    return [line for line in lines if line.released is not None and line.released < last]


def models_of(
    promises: Mapping[str, Promise], lines: Lines, beside: Lines, delta: float, limited: bool
) -> dict[str, StatedModel]:
    """The final models of one lineage by their paths.

    Args:
        promises: the models that were promised, by the paths of their weights.
        lines: what was spent on what this DAG asks.
        beside: what else was spent on the lineage.
        delta: the lineage's.
        limited: whether a total holds, which it does not in research.

    Raises:
        Refused: a model costs more than its total.
    """
    return {
        path: _model_of(path, promise, lines, beside, delta, limited)
        for path, promise in promises.items()
    }


def _model_of(
    path: str, promise: Promise, lines: Lines, beside: Lines, delta: float, limited: bool
) -> StatedModel:
    """One final model: its price, and beside it what was released earlier from the same people, as
    the contract wants both (all-that-steered).

    Under a budget the price may not exceed its total. A plan that held makes that impossible, so
    this is a second look and not the gate.
    """
    borne = lines_of_model(promise, lines)
    spends = _spends(borne)
    cost = compose(spends, delta)
    if limited and cost.epsilon > promise.target_epsilon:
        raise Refused(
            f"{path} composes to epsilon = {round_up(cost.epsilon, 6)}, above its total of "
            f"{round_up_short(promise.target_epsilon)}. The statement is not written; `dpladder "
            "ledger show` lists what was spent."
        )
    return StatedModel(
        epsilon=cost.epsilon,
        mu=cost.mu,
        experiment=promise.experiment,
        target_epsilon=promise.target_epsilon,
        with_earlier=_cost_with_earlier(borne, [*lines, *beside], delta),
        search_share=_search_share(borne),
        jobs=promise.jobs,
    )


def cost_of_choice(everything: Lines, delta: float) -> Cost | None:
    """What the choice of one final model among several costs, whichever it is: all that was ever
    released about the lineage. Whoever goes back to an earlier model has seen the later ones
    too."""
    released = [line for line in everything if line.released is not None]
    models = {(line.question, line.reserved) for line in released if line.rule in FINALS}
    return figure_of(released, delta) if len(models) > 1 else None


def _releases_seen_before(
    borne: Iterable[StatedSpend], among: Iterable[StatedSpend]
) -> list[StatedSpend]:
    """Everything released before the last of these jobs was reserved, or resumed."""
    last = max((line.continued or line.reserved for line in borne), default=0)
    return [line for line in among if line.released is not None and line.released < last]


def _cost_with_earlier(borne: Lines, lines: Lines, delta: float) -> Cost | None:
    """What an artifact costs together with everything released before its jobs were reserved or
    resumed, which may have steered it. None where there was nothing."""
    earlier = [line for line in _releases_seen_before(borne, lines) if line not in borne]
    return figure_of([*borne, *earlier], delta) if earlier else None


def _spends(lines: Iterable[StatedSpend]) -> list[Spend]:
    """The lines' spends, read back from the JSON that the statement itself carries. So `check`
    composes from the very same text."""
    return [from_json(line.spend) for line in lines]


def mu_of_spend(spend: Spend) -> float | None:
    """The mu that a spend is booked at; None where more than a Gaussian is behind it."""
    entry = entry_of(spend)
    return entry.mu if entry.is_gaussian else None


def lines_of_model(promise: Promise, lines: Iterable[StatedSpend]) -> list[StatedSpend]:
    """The lines of a statement that are a final model's price: its own and its ancestors'."""
    jobs = {promise_job.job for promise_job in promise.jobs}
    return [line for line in lines if line.job in jobs and not line.superseded]


def _search_share(borne: Iterable[StatedSpend]) -> float | None:
    """The search's share of mu squared among what reads the training part; none of a private
    search, whose training and search are one."""
    training = [line for line in borne if line.partition != "test"]
    if any(line.rule == "private_search" for line in training):
        return None
    total = math.fsum((line.mu or 0.0) ** 2 for line in training)
    search = math.fsum((line.mu or 0.0) ** 2 for line in training if line.rule not in AFTER_SEARCH)
    return search / total if total else 0.0
