"""The plan as others read it: JSON for scripts, a table for people. Every epsilon is shown rounded up."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

from dpladder.privacy.compose import Composition, compose
from dpladder.privacy.ledger import State, ever
from dpladder.privacy.plan import Plan, artifact_cost
from dpladder.privacy.spend import Spend, changed, mu, to_json
from dpladder.privacy.statement import up
from dpladder.stages import target_name


def plan_document(plan: Plan, states: Mapping[str, State]) -> dict[str, Any]:
    """The format of `dpladder plan --json`."""
    lineages = {lineage: _lineage(plan, lineage) for lineage in plan.terms}
    lifetimes = {lineage: _lifetime(plan, lineage, states.get(lineage, State())) for lineage in plan.terms}
    artifacts = [
        {
            "path": f"results/{a.experiment}/final/{target_name(a.target)}/weights.safetensors",
            "experiment": a.experiment,
            "lineage": a.lineage,
            "target_epsilon": a.target,
            "epsilon": cost.epsilon,
            "mu": cost.mu,
            "jobs": [
                {"rule": j.rule, "experiment": j.experiment, "wildcards": dict(j.wildcards)} for j in a.jobs
            ],
        }
        for a in plan.artifacts
        for cost in [artifact_cost(plan, a)]
    ]
    problems = over_target(plan) + [
        f"lineage {lineage} would reach epsilon = {up(ever['epsilon_after'])}, above its lifetime limit of {limit:g}"
        for lineage, ever in lifetimes.items()
        for limit in [lineages[lineage]["lifetime_epsilon"]]
        if limit is not None and ever["epsilon_after"] > limit
    ]
    main = plan.artifacts[0]
    terms, figures = plan.terms[main.lineage], lineages[main.lineage]
    return {
        "feasible": not problems,
        "problems": problems,
        "mode": terms.mode,
        "relation": terms.relation,
        "delta": terms.delta,
        "epsilon": figures["epsilon"],
        "mu": figures["mu"],
        "target_epsilon": max(a.target for a in plan.artifacts if a.lineage == main.lineage),
        "lifetime_epsilon": terms.lifetime_epsilon,
        "artifacts": artifacts,
        "datasets": lineages,
        "spends": [
            _spend(s, plan.terms[lineage].delta) for lineage in plan.terms for s in plan.of_lineage(lineage)
        ],
        "lifetimes": lifetimes,
    }


def over_target(plan: Plan) -> list[str]:
    """The artifacts that would cost more than they promise."""
    costs = [(artifact, artifact_cost(plan, artifact).epsilon) for artifact in plan.artifacts]
    return [
        f"{a.experiment} would cost epsilon = {up(epsilon)}, above its total of {a.target:g}"
        for a, epsilon in costs
        if epsilon > a.target
    ]


def declared(document: Mapping[str, Any]) -> dict[str, Any]:
    """The plan without what the ledgers held when it was made, which changes while it is carried out."""
    return {key: value for key, value in document.items() if key not in ("feasible", "problems", "lifetimes")}


def plan_table(document: Mapping[str, Any]) -> str:
    """The same on a terminal: what each group of like jobs costs, the totals, and whether it may run."""
    spends = document["spends"]
    total = math.fsum((s["mu"] or 0.0) ** 2 for s in spends if s["partition"] != "test") or 1.0
    groups = Counter(
        (s["experiment"], s["rule"], s["label"], s["partition"], s["mu"], s["epsilon"]) for s in spends
    )
    lines = [
        f"{'experiment':<14}{'rule':<15}{'buys':<12}{'reads':<12}{'jobs':>4}{'epsilon each':>14}{'share of mu^2':>15}"
    ]
    for (experiment, rule, label, part, mu_each, epsilon), count in groups.items():
        whole = "has no mu" if mu_each is None else f"{count * mu_each**2 / total:.1%}"
        share = "in parallel" if part == "test" else whole
        lines.append(f"{experiment:<14}{rule:<15}{label:<12}{part:<12}{count:>4}{up(epsilon):>14}{share:>15}")
    lines.append("")
    lines += [
        f"{a['experiment']}: final model at epsilon = {up(a['epsilon'])} of {a['target_epsilon']:g}, search included"
        for a in document["artifacts"]
    ]
    for lineage, figures in document["datasets"].items():
        limit, ever = figures["lifetime_epsilon"], document.get("lifetimes", {}).get(lineage)
        lines.append(
            f"lineage {lineage}: all of this DAG's releases together epsilon = {up(figures['epsilon'])}; "
            + (f"ever spent once it is done epsilon = {up(ever['epsilon_after'])}; " if ever else "")
            + (
                f"lifetime limit {limit:g}"
                if limit is not None
                else "no lifetime limit declared, so no lifetime guarantee"
            )
            + f" (delta = {document['delta']:g}, {document['relation']})"
        )
    lines += [f"REFUSED: {problem}" for problem in document.get("problems", [])]
    return "\n".join(lines)


def _lineage(plan: Plan, lineage: str) -> dict[str, Any]:
    terms = plan.terms[lineage]
    dag = compose(plan.of_lineage(lineage), terms.delta, adaptive=changed(plan.superseded))
    return {"epsilon": dag.epsilon, "mu": dag.mu, "lifetime_epsilon": terms.lifetime_epsilon}


def _lifetime(plan: Plan, lineage: str, state: State) -> dict[str, float]:
    spent = ever(plan.terms[lineage], state.charged())
    return {"epsilon_spent": spent.epsilon, "epsilon_after": _after(plan, lineage, state).epsilon}


def _after(plan: Plan, lineage: str, state: State) -> Composition:
    """Everything ever charged on the lineage once the plan is done."""
    known = {(h.job, h.static) for h in state.items.values() if h.status in ("COMMITTED", "DONE")}
    new = tuple(
        s
        for item in plan.items.values()
        if (item.job, item.static) not in known
        for s in item.spends
        if s.lineage == lineage
    )
    kept = tuple(s for h in state.items.values() if h.status in ("COMMITTED", "DONE") for s in h.spends)
    return ever(plan.terms[lineage], (*kept, *new))


def _spend(spend: Spend, delta: float) -> dict[str, Any]:
    return {
        "rule": spend.job.rule,
        "experiment": spend.job.experiment,
        "wildcards": dict(spend.job.wildcards),
        "label": spend.label,
        "dataset": spend.lineage,
        "partition": ",".join(spend.partition.parts) or "all",
        "relation": spend.relation,
        "event": to_json(spend.event),
        "count": spend.count,
        "mu": mu(spend.event, spend.count),
        "epsilon": compose([spend], delta).epsilon,
    }
