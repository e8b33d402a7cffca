"""The plan as others read it: JSON for scripts, a table for people. Every epsilon is shown rounded
up."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dpladder.config import Project
from dpladder.formats import FORMATS
from dpladder.plan import follows
from dpladder.plan.dag import Dag
from dpladder.plan.notes import experiments_by_text, names_text, notes
from dpladder.plan.plan import Plan
from dpladder.plan.reuse import asked_anew
from dpladder.privacy.accounting.composition import compose
from dpladder.privacy.accounting.events import Spend, to_json
from dpladder.privacy.accounting.rounding import round_up, round_up_short
from dpladder.privacy.ledger.limits import lifetime_cost
from dpladder.privacy.ledger.state import State
from dpladder.privacy.statement.build import priced_spend
from dpladder.privacy.statement.documents import (
    PlanDocument,
    PlannedLifetime,
    PlannedLineage,
    PlannedModel,
    PlannedSpend,
)


def plan_document(plan: Plan, states: Mapping[str, State], dag: Dag) -> PlanDocument:
    """What `dpladder plan --json` puts out.

    Args:
        plan: what each job costs.
        states: what the ledgers hold, by lineage.
        dag: all jobs, for what their configs say beside their prices.

    Returns:
        Plain values alone, so that JSON has all of it. `feasible` is False where `problems` names a
        total or a lifetime that would be exceeded.
    """
    project = dag.project
    deployment = project.main.deployment
    lineages = {
        lineage: _lineage(plan, lineage, _units(project, lineage)) for lineage in plan.terms
    }
    lifetimes = {
        lineage: _lifetime(plan, lineage, states.get(lineage, State())) for lineage in plan.terms
    }
    problems = totals_exceeded(plan) + [
        f"lineage {lineage} would reach epsilon = {round_up(ever.epsilon_after)}, above its "
        f"lifetime limit of {round_up_short(limit)}"
        for lineage, ever in lifetimes.items()
        for limit in [
            None if plan.terms[lineage].mode == "research" else plan.terms[lineage].lifetime_epsilon
        ]
        if limit is not None and ever.epsilon_after > max(limit, ever.epsilon_spent)
    ]
    main = plan.artifacts[0]
    terms, figures = plan.terms[main.lineage], lineages[main.lineage]
    return PlanDocument(
        mode=terms.mode,
        relation=terms.relation,
        delta=terms.delta,
        epsilon=figures.epsilon,
        mu=figures.mu,
        target_epsilon=max(a.target_epsilon for a in plan.artifacts if a.lineage == main.lineage),
        lifetime_epsilon=terms.lifetime_epsilon,
        config=plan.config,
        deployment=None if deployment is None else deployment.model_dump(mode="json"),
        choices=dict(project.choices),
        notes=notes(project),
        artifacts=plan.artifacts,
        datasets=lineages,
        spends=tuple(
            PlannedSpend(
                **vars(priced_spend(spend, item.job, item.question, terms.delta)),
                dataset=spend.lineage,
                relation=spend.relation,
                event=to_json(spend.event),
                in_parallel=_composes_in_parallel(spend),
            )
            for lineage, terms in plan.terms.items()
            for item in plan.items_of(lineage)
            for spend in item.spends
        ),
        feasible=not problems,
        problems=tuple(problems),
        lifetimes=lifetimes,
        kept=tuple(_respend_lines(plan, states, dag)),
        mechanisms=_mechanisms(plan, dag),
        format=FORMATS["plan"],
    )


def _mechanisms(plan: Plan, dag: Dag) -> dict[str, dict[str, tuple[str, ...]]]:
    """By experiment and rule, the mechanisms that each job stands on."""
    mechanisms: dict[str, dict[str, tuple[str, ...]]] = defaultdict(dict)
    for job in plan.items:
        node = dag.find(job.rule, {"experiment": job.experiment, **dict(job.wildcards)})
        assert node is not None, "plans are made of jobs"
        mechanisms[job.experiment][job.rule] = node.mechanisms_behind
    return dict(mechanisms)


def _respend_lines(plan: Plan, states: Mapping[str, State], dag: Dag) -> Iterator[str]:
    """What respend may cost, for a job whose data proves to be the same is restored, and every
    other one is paid again. Also that a respend without a price stands open."""
    configs, anew = dag.project.experiments.values(), asked_anew(dag)
    if dag.project.main.mode == "release" and any(one.respend is True for one in configs):
        yield (
            "respend: true stands open, so later edits are paid again unasked. Take it out once "
            "this is done, or give a price: respend: {up_to: epsilon}"
        )
    for lineage, terms in plan.terms.items():
        state = states.get(lineage, State())
        again = tuple(
            spend
            for item in plan.items_of(lineage)
            if item.question in anew
            and any(charge.status == "DONE" for charge in state.charges_for(item.question))
            for spend in item.spends
        )
        if again:
            planned = _spends_after_plan(plan, lineage, state)
            limit = terms.lifetime_epsilon
            yield (
                f"respend: what has changed is paid again. If all of it has, lineage {lineage} "
                f"ends at epsilon = {round_up(lifetime_cost(terms, planned + again).epsilon)}"
                + ("" if limit is None else f" of its lifetime's {round_up_short(limit)}")
            )


def totals_exceeded(plan: Plan) -> list[str]:
    """The artifacts that would cost more than they promise.

    Returns:
        A line for each of them, which says what to change.
    """
    return [
        f"{a.experiment} would cost epsilon = {round_up(a.epsilon)}, above its total of "
        f"{round_up_short(a.target_epsilon)}: raise the total to that, or lower what the config "
        "prices itself (final.budget, evaluate.epsilon)"
        for a in plan.artifacts
        if a.epsilon > a.target_epsilon
    ]


def plan_without_ledger(document: PlanDocument) -> PlanDocument:
    """The plan without what the ledgers held when it was made, which changes while it is carried
    out.

    It is what Snakemake compares of the job that writes the plan, which must not run again for
    nothing.
    """
    return replace(document, feasible=True, problems=(), lifetimes={}, kept=())


def plan_table(document: PlanDocument) -> str:
    """The plan on a terminal: what each group of like jobs costs, the totals, and whether it may
    run.

    Args:
        document: a plan.

    Returns:
        Text of several lines, no line break at the end. A job's share is of its lineage's mu^2;
        what composes in parallel, or has no mu, has none.
    """
    spends = document.spends
    totals: dict[str, float] = defaultdict(float)
    for spend in spends:
        totals[spend.dataset] += 0.0 if spend.in_parallel else (spend.mu or 0.0) ** 2
    groups = Counter(
        (
            s.experiment,
            (s.rule, s.label, s.partition, s.mu, s.epsilon, s.dataset, s.in_parallel),
        )
        for s in spends
    )
    of_experiments: dict[str, list[Any]] = defaultdict(list)
    for (experiment, bought), count in groups.items():
        of_experiments[experiment].append((bought, count))
    rows = [("experiment", "rule", "buys", "reads", "jobs", "epsilon each", "share of mu^2")]
    for names, bought_by_each in experiments_by_text(of_experiments.items()):
        for (rule, label, part, mu_each, epsilon, lineage, beside), count in bought_by_each:
            jobs = count * len(names)
            whole = (
                "has no mu"
                if mu_each is None
                else f"{jobs * mu_each**2 / (totals[lineage] or 1.0):.1%}"
            )
            share = "in parallel" if beside else whole
            row = (names_text(names), rule, label, part, str(jobs), round_up(epsilon), share)
            rows.append(row)
    lines = [*_align_columns(rows, words=4), ""]
    said = [
        *document.choices.items(),
        *((a.experiment, _artifact_text(a)) for a in document.artifacts),
    ]
    lines += [f"{names_text(names)}: {text}" for names, text in experiments_by_text(said)]
    for lineage, figures in document.datasets.items():
        limit, ever = figures.lifetime_epsilon, document.lifetimes.get(lineage)
        if figures.units:
            lines.append(f"lineage {lineage}: {_part_sizes_text(figures.units)}")
        lines.append(
            f"lineage {lineage}: all of this workflow's releases together epsilon = "
            f"{round_up(figures.epsilon)}; "
            + (
                f"ever spent once it is done epsilon = {round_up(ever.epsilon_after)}; "
                if ever
                else ""
            )
            + (
                f"lifetime limit {round_up_short(limit)}"
                if limit is not None
                else "no lifetime limit declared, so no lifetime guarantee"
            )
            + f" (delta = {round_up_short(figures.delta)}, {figures.relation})"
        )
    lines += document.kept
    lines += [f"note: {note}" for note in document.notes]
    lines += [f"REFUSED: {problem}" for problem in document.problems]
    return "\n".join(lines)


def _align_columns(rows: Sequence[Sequence[str]], words: int) -> Iterator[str]:
    """Each column as wide as its longest cell: the first ones are words, from the left, and the
    others figures."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = zip(row, widths, strict=True)
        yield "  ".join(
            f"{cell:{'<' if place < words else '>'}{width}}"
            for place, (cell, width) in enumerate(cells)
        )


def _composes_in_parallel(spend: Spend) -> bool:
    """Whether nobody bears it together with the training. A replaced unit may have been in both
    parts, and parts as given may change with the next version of the data."""
    hashed = not spend.partition.split_rule.startswith("given")
    return hashed and spend.partition.parts == ("test",) and spend.relation == "add_remove"


def _artifact_text(model: PlannedModel) -> str:
    """What a model costs of what it promises."""
    total = round_up_short(model.target_epsilon)
    return f"final model at epsilon = {round_up(model.epsilon)} of {total}, search included"


def _lineage(plan: Plan, lineage: str, units: dict[str, int]) -> PlannedLineage:
    """What all jobs of this plan cost a lineage together, though no single model stands on all of
    them."""
    terms = plan.terms[lineage]
    dag = compose([s for item in plan.items_of(lineage) for s in item.spends], terms.delta)
    limit = terms.lifetime_epsilon
    return PlannedLineage(dag.epsilon, dag.mu, terms.relation, terms.delta, limit, units)


def _units(project: Project, lineage: str) -> dict[str, int]:
    """How many units are kept for what, by declaration; nothing where the source says it."""
    config = next(iter(project.of_lineage(lineage).values()))
    split = config.dataset.split
    if split.rule == "given":
        return {}
    shares = {"test": split.held_out, "validation": split.validation}
    parts = [part for part, share in shares.items() if share > 0]
    return {part: follows.nominal_size(config, part) for part in ("train", *parts)}


def _part_sizes_text(units: Mapping[str, int]) -> str:
    """How many units train and how many are set aside: declared figures, never counted ones."""
    parts = [f"{count:,} are the {part} part" for part, count in units.items() if part != "train"]
    return (
        f"by declaration {units['train']:,} units train, {' and '.join(parts or ['all of them'])}"
    )


def _lifetime(plan: Plan, lineage: str, state: State) -> PlannedLifetime:
    """What the lineage has spent, and what it will have once the plan is done: not rounded yet."""
    spent = lifetime_cost(plan.terms[lineage], state.charged_spends())
    after = lifetime_cost(plan.terms[lineage], _spends_after_plan(plan, lineage, state))
    return PlannedLifetime(spent.epsilon, after.epsilon)


def _spends_after_plan(plan: Plan, lineage: str, state: State) -> tuple[Spend, ...]:
    """Everything ever charged on the lineage once the plan is done."""
    new = tuple(
        spend
        for item in plan.items_of(lineage)
        if state.answer(item.question) is None
        for spend in item.spends
    )
    # Unused reservations are left out: those of this plan are among the new ones.
    paid = tuple(s for h in state.charges.values() if h.used for s in h.spends)
    return (*paid, *new)
