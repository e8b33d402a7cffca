"""What the documents beside a statement know. It is one set of facts, each a figure or a word as it
is shown, and the texts that they are put into (texts/*.yaml)."""

from __future__ import annotations

from importlib import resources
from typing import Any

import yaml

from dpladder.config.model import Deployment
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.rounding import markdown_cell, round_up, round_up_short
from dpladder.privacy.statement.build import guarantee_of
from dpladder.privacy.statement.documents import Cost, SealedStatement, Stated
from dpladder.privacy.statement.page import NO_PERSON, detection_rate_text, unit_text
from dpladder.privacy.statement.templates import fill

STRONG = 1.0  # NIST SP 800-226, 2.2: up to here epsilon is taken to be strong in most cases


def facts_of(statement: SealedStatement, lineage: str, deployment: Deployment) -> dict[str, Any]:
    """All that a text may name, ready to be shown. Figures are the guarantee's, rounded to the safe
    side.

    Args:
        statement: as it is sealed.
        lineage: one of its lineages, with a guarantee (`guarantee_of`): the caller refuses any
            other.
        deployment: what people declared, shown as they wrote it.

    Returns:
        Text for most names; booleans, a number or None for those that a template chooses by.
    """
    dataset, origin = statement.datasets[lineage], statement.origin
    bound = guarantee_of(dataset)
    assert bound is not None, "what is registered has a guarantee"
    limit, models = dataset.lifetime_epsilon, len(dataset.artifacts)
    return {
        "name": deployment.name,
        "curators": ", ".join(deployment.curators),
        "use": deployment.use,
        "data": deployment.data,
        "region": deployment.region,
        "access": deployment.access,
        "access_in_a_line": " ".join(deployment.access.split()).rstrip("."),
        "dynamic": deployment.dynamic,
        "statement": statement.id,
        "date": origin.date,
        "published": deployment.published or origin.date,
        "config": statement.config,
        "versions": ", ".join(f"{name} {version}" for name, version in origin.versions.items()),
        "commit": origin.commit or "unknown",
        "epsilon": round_up(bound.epsilon),
        "strong": bound.epsilon <= STRONG,
        "delta": round_up_short(dataset.delta),
        "gaussian": bound.mu is not None,
        "mu": "no single mu" if bound.mu is None else round_up(bound.mu, 6),
        "limit": None if limit is None else round_up_short(limit),
        "spent": round_up(dataset.lifetime_spent),
        "releases": len(dataset.spends),
        "one_release": len(dataset.spends) == 1,
        "events": ", ".join(sorted({line.spend["event"]["type"] for line in dataset.spends})),
        "classifiers": "a classifier" if models == 1 else f"{models} classifiers",
        "models": f"{models} model" + ("" if models == 1 else "s"),
        "detectable": detection_rate_text(bound, dataset.delta),
        "unit": dataset.unit,
        "protected": unit_text(dataset),
        "several_records": dataset.unit in NO_PERSON,
        "bears_two": group_guarantee(bound, dataset.delta, 2),
        "bears_three": group_guarantee(bound, dataset.delta, 3),
        "level": _level(dataset),
        "relation": dataset.relation,
        "replaced": dataset.relation == "replace_one",
        "accountant": dataset.accountant,
        "exact": dataset.accountant == "exact",
    }


def _level(dataset: Stated) -> str:
    """Whose data is protected, as the registry's field `privacy_unit` says it."""
    if dataset.unit == "record":
        return "record-level"
    if dataset.unit == "document":
        return f"document-level, at most {dataset.cap} spans of each"
    if dataset.cap == 1:
        return "user-level, each as one record at most"
    return f"user-level, at most {dataset.cap} records of each"


def group_guarantee(bound: Cost, delta: float, size: int) -> str:
    """What somebody with several units bears, in words: of mu-GDP, k mu. For each of k neighbours
    on the way adds mu to Phi^-1 of a probability at most (Dong, Roth & Su 2019, on groups).

    Otherwise it is (k epsilon, delta (1 + e^epsilon + ...)): k epsilon says too little, so only the
    factor is told.

    Args:
        bound: the guarantee for one unit.
        delta: the lineage's, at which the group's epsilon is told, too.
        size: k, the number of units.
    """
    if bound.mu is None:
        return f"{size} times epsilon, at a larger delta"
    return (
        f"epsilon = {round_up(gdp.epsilon(size * bound.mu, delta), 2)} (mu = "
        f"{round_up(size * bound.mu, 6)})"
    )


def document(name: str, facts: dict[str, Any]) -> str:
    """One of the documents beside a statement: the words of a text, put into its template.

    Args:
        name: of the template in texts/. What its name begins with, up to a dot, is the text's.
        facts: of `facts_of`.
    """
    cell = markdown_cell if name.endswith(".md.jinja") else str  # HTML is escaped by the template

    def as_cells(part: Any) -> Any:
        if isinstance(part, list):
            return [as_cells(one) for one in part]
        if isinstance(part, dict):
            return {
                key: cell(one) if key == "answer" else as_cells(one) for key, one in part.items()
            }
        return part

    text: dict[str, Any] = as_cells(fill_template(name.partition(".")[0], facts))
    return fill(f"privacy/statement/texts/{name}", text | {"name": cell(facts["name"])})


def fill_template(name: str, facts: dict[str, Any]) -> dict[str, Any]:
    """A text with its facts put in. A fact that is missing stops it: no text goes out with a gap.

    Args:
        name: of the text, a file in texts/.
        facts: of `facts_of`. They are put in as they are: each document escapes for itself.

    Returns:
        The YAML file's own tree of mappings and lists, every text in it filled.

    Raises:
        jinja2.UndefinedError: the text names a fact that there is not.
    """
    from jinja2 import Environment, StrictUndefined

    templates = Environment(undefined=StrictUndefined)  # each document escapes for itself

    def fill_part(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: fill_part(value) for key, value in part.items()}
        if isinstance(part, list):
            return [fill_part(value) for value in part]
        return templates.from_string(part).render(facts) if isinstance(part, str) else part

    path = resources.files("dpladder.privacy.statement").joinpath("texts", f"{name}.yaml")
    result: dict[str, Any] = fill_part(yaml.safe_load(path.read_text("utf-8")))
    return result
