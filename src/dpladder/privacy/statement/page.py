"""The statement as one page, in words: what a privacy officer reads and signs.

It follows from the statement's JSON byte for byte: no clock, no ledger and no config is read here.
So `dpladder verify` can hold the one against the other (docs/design.md, line 20).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from statistics import NormalDist
from typing import Any

from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.rounding import (
    markdown_cell,
    mu_up,
    round_down,
    round_nearest,
    round_up,
    round_up_short,
)
from dpladder.privacy.ledger.book import OWN_CODE
from dpladder.privacy.ledger.limits import lifetime_cost, remaining_epsilon
from dpladder.privacy.ledger.state import State, Terms
from dpladder.privacy.statement.build import (
    MODIFIED,
    guarantee_of,
    notes_on_releases,
)
from dpladder.privacy.statement.documents import (
    Cost,
    SealedStatement,
    Stated,
    StatedModel,
    Statement,
)
from dpladder.privacy.statement.templates import fill

MANY = 1_000_000  # released numbers that float64's slack is told for
FALSE_ALARMS_PERCENT = 5  # at which the best attack's hits are told
FALSE_ALARMS = FALSE_ALARMS_PERCENT / 100
NO_PERSON = ("record", "document")  # units of which a person may have several
DEPLOYED = ("name", "curators", "authors", "use", "data", "region", "access")  # shown in this order


def page(statement: SealedStatement) -> str:
    """One page that a privacy officer can sign: what is guaranteed, in plain words, and then the
    figures behind it. Its words stand in texts/page.md.jinja.

    Args:
        statement: sealed, for the page names its id and its seal. The same statement gives the same
            bytes.
    """
    return fill("privacy/statement/texts/page.md.jinja", _facts(statement))


def _facts(statement: SealedStatement) -> dict[str, Any]:
    """All that the template may name: each figure as it is shown, rounded to the safe side."""
    deployment, origin, datasets = statement.deployment or {}, statement.origin, statement.datasets
    selected = {
        line.label
        for dataset in datasets.values()
        for line in dataset.spends
        if line.spend["event"]["type"] in ("RepeatAndSelect", "SubsetSelect")
    }
    said = {key: deployment[key] for key in DEPLOYED if key in deployment}
    return {
        "release": statement.mode == "release",
        "workflow": bool(statement.config),  # mechanisms outside the workflow have no config
        "lineages": [_lineage(statement, name) for name in datasets],
        "false_alarms": FALSE_ALARMS_PERCENT,
        "units": " or ".join(dict.fromkeys(one.unit for one in datasets.values())),
        "deltas": " or ".join(
            dict.fromkeys(round_up_short(one.delta) for one in datasets.values())
        ),
        "deployment": [
            {"key": key, "words": markdown_cell(one if isinstance(one, str) else ", ".join(one))}
            for key, one in said.items()
        ],
        "date": origin.date,
        "config": statement.config,
        "commit": f"`{origin.commit}`" if origin.commit else "none: not run from a clone",
        "id": statement.id,
        "seal": statement.seal,
        "slack": rounding_text(),
        "selects": bool(selected),
        "padded": selected <= {"search"},
        "own_code": OWN_CODE,
        "code_warnings": [*modified_code_warning(statement)],
        "versions": ", ".join(f"{name} {version}" for name, version in origin.versions.items()),
    }


def _lineage(statement: Statement, name: str) -> dict[str, Any]:
    """What the template may name of one lineage. Each epsilon, mu and delta is rounded up, and told
    as text."""
    dataset = statement.datasets[name]
    bound, beside, delta = guarantee_of(dataset), dataset.outside_this_dag, dataset.delta
    exact_mu = dataset.mu if dataset.accountant == "exact" else None
    return {
        "name": name,
        "sentences": [f"**{first_line(statement, name)}**", *costs(statement, name)],
        "protected": unit_text(dataset),
        "unit": dataset.unit,
        "several_records": dataset.unit in NO_PERSON,
        "detectable": bound and detection_rate_text(bound, delta),
        "limited": dataset.lifetime_epsilon is not None,
        "relation": dataset.relation,
        "replaced": dataset.relation == "replace_one",
        "delta": round_up_short(delta),
        "spent": round_up(dataset.lifetime_spent),
        "together": _cost_text(dataset),
        "beside": _cost_text(beside),
        "jobs_beside": beside.jobs,
        "models": [_model(path, one) for path, one in dataset.artifacts.items()],
        "choice": [*choice_sentences(name, dataset)] if dataset.artifacts else [],
        "parts": [
            {"name": part, "epsilon": round_up(cost.epsilon), "mu": _mu(cost.mu)}
            for part, cost in dataset.partitions.items()
        ],
        "spends": [
            {
                "job": f"{line.rule} {' '.join(map(' '.join, line.wildcards.items()))}",
                "experiment": line.experiment,
                "label": line.label,
                "superseded": line.superseded,
                "part": line.partition,
                "count": line.count,
                "epsilon": round_up(line.epsilon),
                "mu": _mu(line.mu),
            }
            for line in dataset.spends
        ],
        "notes": notes_on_releases(dataset.spends),
        "groups": exact_mu
        and [
            {
                "size": k,
                "epsilon": round_up(gdp.epsilon(k * exact_mu, delta), 2),
                "mu": _mu(k * exact_mu),
            }
            for k in (2, 3, 4)
        ],
        "own_code": any(line.experiment == OWN_CODE for line in (*dataset.spends, *beside.spends)),
    }


def _model(path: str, model: StatedModel) -> dict[str, str]:
    """One final model as a row: its total, the figure that it is stated at, and its price alone.
    The former counts all that may have steered it (docs/design.md, line 15)."""
    share = model.search_share  # a private search and its model are one mechanism
    return {
        "path": path,
        "total": round_up_short(model.target_epsilon),
        "epsilon": round_up(model.stated.epsilon),
        "mu": _mu(model.stated.mu),
        "alone": _cost_text(model),
        "search_share": "not separable" if share is None else f"{round_nearest(100 * share, 1)}%",
    }


def unit_text(dataset: Stated) -> str:
    """Whose privacy is protected, in words."""
    if dataset.unit == "record":
        return "each record"
    if dataset.unit == "document":
        return f"each document, of which at most {dataset.cap} spans count"
    if dataset.cap == 1:  # of several, or the mean of all
        return f"each {dataset.unit}, who counts as one record at most"
    return f"each {dataset.unit}, of whom at most {dataset.cap} records count"


def detection_rate_text(bound: Cost, delta: float) -> str:
    """The true positives of the best test at FALSE_ALARMS, in percent, rounded up.

    A mu-GDP release allows Phi(Phi^-1(alpha) + mu) (Dong, Roth & Su 2019, (6)). Any (eps, delta)-DP
    one allows min(e^eps alpha + delta, 1 - e^-eps (1 - delta - alpha)) (Kairouz, Oh & Viswanath
    2015, Theorem 2.1).

    Args:
        bound: the guarantee. Where it has a mu, the smaller of both bounds is told.
        delta: the lineage's.
    """
    normal = NormalDist()
    odds = math.exp(min(bound.epsilon, 700.0))
    most = min(odds * FALSE_ALARMS + delta, 1.0 - (1.0 - delta - FALSE_ALARMS) / odds, 1.0)
    if bound.mu is not None:
        most = min(most, normal.cdf(normal.inv_cdf(FALSE_ALARMS) + bound.mu))
    return f"{round_up(100 * most, 1)} %"


def first_line(statement: Statement, lineage: str) -> str:
    """What is guaranteed about a lineage, in one sentence. The lifetime limit comes first
    (docs/design.md, line 17). What was spent so far is called a guarantee only where all of it was
    planned before its first release."""
    dataset = statement.datasets[lineage]
    delta, spent = round_up_short(dataset.delta), round_up(dataset.lifetime_spent)
    limit = dataset.lifetime_epsilon
    if statement.mode == "research":
        return (
            f"Lineage {lineage}: research mode, NOT A RELEASE. Its data is declared public, its "
            "noise may be seeded and its tests are counted exactly, so nothing is guaranteed; what "
            f"is noised would have cost a release epsilon = {spent} at delta = {delta}."
        )
    if limit is not None:
        return _limit_sentence(lineage, limit, dataset.delta, dataset.unit)
    if guarantee_of(dataset) is None:
        return (
            f"Lineage {lineage}: no lifetime limit was declared, and some of what was spent was "
            "planned after earlier results were out, so no figure is a guarantee. Everything so "
            f"far composes to epsilon = {spent} at delta = {delta}."
        )
    return (
        f"Lineage {lineage}: all of this was planned before its first release, and together it is "
        f"({spent}, {delta})-differentially private for each {dataset.unit}. No lifetime limit "
        "was declared, so nothing is promised about later runs."
    )


def closing_line(terms: Terms, state: State) -> str:
    """Where a lineage stands by its ledger alone, at the end of a run that may have stated nothing.

    Args:
        terms: what the lineage was opened with.
        state: what its ledger holds; all that was charged counts, released or not.
    """
    spent, delta = (
        round_up(lifetime_cost(terms, state.charged_spends()).epsilon),
        round_up_short(terms.delta),
    )
    if terms.mode == "research":
        return (
            f"Lineage {terms.lineage}: research mode, NOT A RELEASE. Nothing is guaranteed; what "
            f"is noised would have cost a release epsilon = {spent} at delta = {delta} so far."
        )
    if terms.lifetime_epsilon is not None:
        promise = _limit_sentence(terms.lineage, terms.lifetime_epsilon, terms.delta, terms.unit)
        fits = (
            f"What is left fits epsilon = "
            f"{round_down(remaining_epsilon(terms, state.charged_spends()))}: the squares of mu "
            "add up, and epsilons do not."
        )
        return f"{promise} {_spent_sentence(spent)} {fits}"
    return (
        f"Lineage {terms.lineage}: no lifetime limit was declared, so no lifetime guarantee can be "
        f"given. So far epsilon = {spent} at delta = {delta} is spent, which is no guarantee by "
        "itself."
    )


def _limit_sentence(lineage: str, limit: float, delta: float, unit: str) -> str:
    """The promise for life, which later runs are held to as well. So it does not change as more is
    spent."""
    epsilon = round_up_short(limit)
    return (
        f"Lineage {lineage}: all that was or will ever be released about it is held to epsilon = "
        f"{epsilon} for each {unit}, a limit declared beforehand and enforced. With the delta that "
        f"was declared beside it, it is ({epsilon}, {round_up_short(delta)})-differentially "
        f"private."
    )


def _spent_sentence(spent: str) -> str:
    """How far a limit is used up, said so that nobody takes what was spent for the guarantee."""
    return f"So far epsilon = {spent} of the limit is spent. The limit is the guarantee."


MOST_COSTS = 4  # models that are told one by one


def costs(statement: Statement, lineage: str) -> Iterator[str]:
    """Behind the promise: what each final model costs with all that may have steered it, and how
    much of the limit is spent. Of more models than MOST_COSTS, the dearest."""
    dataset = statement.datasets[lineage]
    models = dataset.artifacts
    if statement.mode == "research":
        return
    if 0 < len(models) <= MOST_COSTS:
        several = Counter(one.experiment for one in models.values())
        yield " ".join(
            f"The final model of {one.experiment}"
            + (
                f" for target {round_up_short(one.target_epsilon)}"
                if several[one.experiment] > 1
                else ""
            )
            + f" costs epsilon = {round_up(one.stated.epsilon)}, its search"
            f"{' and all releases before it' if one.with_earlier else ''} included."
            for one in models.values()
        )
    elif models:
        most = max(one.stated.epsilon for one in models.values())
        yield f"None of the {len(models)} final models costs more than epsilon = {round_up(most)}."
    if dataset.lifetime_epsilon is not None:
        yield _spent_sentence(round_up(dataset.lifetime_spent))


def choice_sentences(lineage: str, dataset: Stated) -> Iterator[str]:
    """What a choice among several models costs, which no figure of one model sees."""
    if dataset.chosen is not None:
        yield (
            f"If a final model of lineage {lineage} was chosen among these, retired ones included, "
            "because of anything that was released: epsilon = "
            f"{_cost_text(dataset.chosen)}, whichever it is."
        )


def _cost_text(cost: Cost) -> str:
    """An epsilon, rounded up, and its mu where a single one says it."""
    return round_up(cost.epsilon) + ("" if cost.mu is None else f" (mu = {_mu(cost.mu)})")


def _mu(mu: float | None) -> str:
    """A private selection has an epsilon alone."""
    return "no single mu" if mu is None else mu_up(mu)


def modified_code_warning(statement: Statement) -> Iterator[str]:
    """Whether the code that composed a statement was that of its commit: nothing where it was, or
    where there is no clone."""
    commit = statement.origin.commit
    if commit is not None and commit.endswith(MODIFIED):
        yield (
            "This statement was composed by modified code: the clone's files are not those of "
            f"commit {commit.removesuffix(MODIFIED)}."
        )


def rounding_text() -> str:
    """What float64 adds to ideal noise, for each MANY released numbers, rounded up (grid.py)."""
    # numpy, which the start of a workflow does without
    from dpladder.privacy.release.grid import slack

    epsilon, delta = slack(MANY)
    return (
        f"{round_up_short(epsilon, 2)} in epsilon and {round_up_short(delta, 2)} in delta for each "
        "million released numbers"
    )
