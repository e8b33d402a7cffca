"""The statement as one page, in words: what a privacy officer reads and signs."""

from __future__ import annotations

from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.shown import up
from dpladder.privacy.ledger.book import State, Terms, ever
from dpladder.privacy.statement.documents import Stated, StatedModel, StatedSpend, Statement

MANY = 1_000_000

AFTER = (
    "\\* Planned after earlier releases of the lineage were out. The first figure counts those too; the second holds only if "
    "the model's config owes nothing to them."
)


def page(statement: Statement) -> str:
    """One page that a privacy officer can sign."""
    lines = ["# Privacy statement", ""]
    if statement.mode == "research":
        lines += [
            "**This is not a release.** Research mode: the data is declared public and the noise may be seeded.",
            "",
        ]
    for lineage, dataset in statement.datasets.items():
        lines += _page_of(statement, lineage, dataset)
    lines += ["## What this rests on", "", *(f"- {line}" for line in _assumptions(statement)), ""]
    lines += ["Signed: ______________________   Date: ______________", ""]
    return "\n".join(lines)


def first_line(statement: Statement, lineage: str) -> str:
    """The lineage's lifetime comes first (docs/design.md, line 17)."""
    dataset, delta = statement.datasets[lineage], statement.delta
    spent, limit = up(dataset.lifetime_spent), dataset.lifetime_epsilon
    if statement.mode == "research":
        return (
            f"Lineage {lineage}: research mode, NOT A RELEASE. Its data is declared public and its noise may be seeded, so "
            f"nothing is guaranteed; a release would have cost epsilon = {up(dataset.epsilon)} at delta = {delta:g}."
        )
    if limit is not None:
        return _limited(lineage, limit, delta, dataset.unit, spent)
    if dataset.outside_this_dag.jobs or not dataset.planned:
        return (
            f"Lineage {lineage}: no lifetime limit was declared, and some of what was spent was planned after earlier results "
            f"were out, so no figure is a guarantee. Everything so far composes to epsilon = {spent} at delta = {delta:g}."
        )
    return (
        f"Lineage {lineage}: all of this was planned before its first release, and together it is ({spent}, {delta:g})-"
        f"differentially private for each {dataset.unit}. No lifetime limit was declared, so nothing is promised about "
        "later runs."
    )


def closing_line(terms: Terms, state: State) -> str:
    """Where a lineage stands by its ledger alone, at the end of a run that may have stated nothing."""
    spent, delta = up(ever(terms, state.charged()).epsilon), terms.delta
    if terms.mode == "research":
        return (
            f"Lineage {terms.lineage}: research mode, NOT A RELEASE. Nothing is guaranteed; releases would have cost epsilon "
            f"= {spent} at delta = {delta:g} so far."
        )
    if terms.lifetime_epsilon is not None:
        return _limited(terms.lineage, terms.lifetime_epsilon, delta, terms.unit, spent)
    return (
        f"Lineage {terms.lineage}: no lifetime limit was declared, so no lifetime guarantee can be given. So far epsilon = "
        f"{spent} at delta = {delta:g} is spent; that figure is not a guarantee by itself."
    )


def _limited(lineage: str, limit: float, delta: float, unit: str, spent: str) -> str:
    return (
        f"Lineage {lineage}: all that was or will ever be released about it is ({limit:g}, {delta:g})-differentially "
        f"private for each {unit}, a limit declared beforehand and enforced. So far epsilon = {spent} of it is spent; that "
        "figure is not a guarantee by itself."
    )


def _page_of(statement: Statement, lineage: str, dataset: Stated) -> list[str]:
    delta, beside = statement.delta, dataset.outside_this_dag
    lines = [f"**{first_line(statement, lineage)}**", ""]
    lines += [
        f"This DAG's releases together: epsilon = {up(dataset.epsilon)}{_mu_of(dataset)}. Outside this DAG: "
        + (f"epsilon = {up(beside.epsilon)} over {beside.jobs} jobs." if beside.jobs else "nothing."),
        "",
        "| final model | its total | epsilon, search included | share of the search in mu^2 |",
        "|---|---|---|---|",
        *(_row_of(path, artifact) for path, artifact in dataset.artifacts.items()),
        "",
        "A final model's epsilon holds for someone who sees that model, its scores and its sweep, and nothing else; for "
        "someone who sees everything published here, the joint figure above holds.",
        *(["", AFTER] if any(a.with_earlier for a in dataset.artifacts.values()) else []),
        "",
        "| part of the data | epsilon of all that reads it |",
        "|---|---|",
        *(f"| {part} | {up(figure.epsilon)} |" for part, figure in dataset.partitions.items()),
        "",
        "| rule | experiment | buys | reads | times | epsilon alone |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {line.rule} {_where(line)} | {line.experiment} | {line.label}{' (superseded)' if line.superseded else ''} "
        f"| {line.partition} | {line.count} | {up(line.epsilon)} |"
        for line in dataset.spends
    ]
    if dataset.mu:
        groups = ", ".join(f"{k}: {up(gdp.epsilon(k * dataset.mu, delta), 2)}" for k in (2, 3, 4))
        lines += [
            "",
            f"Several {dataset.unit}s of one group together bear k mu; epsilon of this DAG for groups of {groups}.",
        ]
    return [*lines, ""]


def _row_of(path: str, artifact: StatedModel) -> str:
    epsilon, earlier = up(artifact.epsilon), artifact.with_earlier
    figure = f"{up(earlier.epsilon)}; alone {epsilon} \\*" if earlier else epsilon
    return f"| `{path}` | {artifact.target_epsilon:g} | {figure} | {_percent(artifact.search_share)} |"


def _mu_of(dataset: Stated) -> str:
    return f" (mu = {up(dataset.mu, 6)})" if dataset.mu is not None else ""


def _percent(share: float | None) -> str:
    return "in one with it" if share is None else f"{share:.1%}"


def _where(line: StatedSpend) -> str:
    return " ".join(f"{key} {value}" for key, value in line.wildcards.items())


def _assumptions(statement: Statement) -> list[str]:
    relation = {
        "add_remove": "neighbouring datasets differ by one unit more or less",
        "replace_one": "neighbouring datasets differ by one unit replaced; its old and new version may lie in two parts",
    }[statement.relation]
    selected = {
        line.label
        for dataset in statement.datasets.values()
        for line in dataset.spends
        if line.spend["event"]["type"] in ("RepeatAndSelect", "SubsetSelect")
    }
    secret = (
        "Of a private selection nothing is known but the model that it put out: not how often it trained, nor what lost. "
        + (
            "One that is not padded tells whoever times its job."
            if selected - {"search"}
            else "It was padded."
        )
    )
    return [
        f"Relation {statement.relation}: {relation}. Delta = {statement.delta:g}, one for the life of the lineage.",
        "Public by declaration: class list, nominal sizes, clip bounds, grids, split rule, caps, and every other key of the "
        "config; sources named public_test or public_validation.",
        "The secret key and the operator are trusted. Noise comes from a keyed generator, so the guarantee is "
        "computational. What is released is rounded to a public grid, so that its low bits tell nothing; what float64 "
        f"arithmetic adds to ideal noise is below {_slack()} (dpladder/privacy/release/publish.py has the theorem).",
        "Sums are computed in float32 chunks and float64 totals; clipping leaves a declared slack for that.",
        "Outside the guarantee: run time, memory, scheduler accounting, and validation that stops before anything is spent.",
        *([secret] if selected else []),
        "Sources and lineages belong to the operator, who is trusted to name them; whoever else chooses configs may not. A "
        "run stops where another lineage, or a source declared public, holds much of the same data; a smaller overlap goes "
        "unnoticed, so that nobody learns about one person.",
        *(
            f"Lineage {lineage} is about other people than those that were known before it, by the operator's word."
            for lineage, dataset in statement.datasets.items()
            if dataset.confirmed
        ),
        "A person whose records are in two lineages bears both.",
        "Versions: " + ", ".join(f"{name} {version}" for name, version in statement.versions.items()) + ".",
    ]


def _slack() -> str:
    from dpladder.privacy.release.publish import slack  # numpy, which the start of a workflow does without

    epsilon, delta = slack(MANY)
    return f"{epsilon:.0e} in epsilon and {delta:.0e} in delta for each million released numbers"
