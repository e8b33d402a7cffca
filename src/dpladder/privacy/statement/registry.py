"""What `dpladder register` files beside a statement: an entry for OpenDP's registry of deployments,
a checklist of hazards and an impact assessment. Each is a text (texts/*.yaml) with facts put in.

The entry's keys are those of the registry's schema, deployments-schema.yaml of July 2026. Of all
fields of its three tiers ten are what people say, eight of them typed; the rest follows from the
statement.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib import resources
from types import MappingProxyType
from typing import Any

import yaml

from dpladder.privacy.accounting.rounding import round_up, round_up_short
from dpladder.privacy.statement.deployment import Deployment
from dpladder.privacy.statement.documents import Cost
from dpladder.privacy.statement.facts import LineageFacts, group_cost
from dpladder.privacy.statement.templates import environment, fill

NO_SCORES: Mapping[str, str] = MappingProxyType({})


def facts_of(
    lineage: LineageFacts, declared: Deployment, scores: Mapping[str, str] = NO_SCORES
) -> dict[str, Any]:
    """All that a text may name.

    Args:
        lineage: with a guarantee: the caller refuses any other.
        declared: what people say of the deployment, shown as they wrote it.
        scores: how good each final model is, with its interval, in words, by its path.
    """
    stated, bound = lineage.stated, lineage.bound
    assert bound is not None, "what is registered has a guarantee"
    return {
        "statement": lineage.statement,
        "lineage": lineage,
        "stated": stated,
        "bound": bound,
        "releases": len(stated.spends),
        "models": len(stated.artifacts),
        "scores": "; ".join(
            f"{model.experiment} at a total of epsilon = {round_up_short(model.target_epsilon)}, "
            f"whose price is epsilon = {round_up(model.epsilon)}: {scores[path]}"
            for path, model in stated.artifacts.items()
            if path in scores
        ),
        "events": ", ".join(sorted({line.spend["event"]["type"] for line in stated.spends})),
        "bears_two": _group_text(bound, stated.delta, 2),
        "bears_three": _group_text(bound, stated.delta, 3),
        "deployment": declared,
        "curators": ", ".join(declared.curators),
        "access_in_a_line": " ".join(declared.access.split()).rstrip("."),
        "published": declared.published or lineage.statement.origin.date,
    }


def _group_text(bound: Cost, delta: float, size: int) -> str:
    """What somebody with several units bears, in words. Without a mu it is (k epsilon,
    delta (1 + e^epsilon + ...)): k epsilon says too little, so only the factor is told."""
    if bound.mu is None:
        return f"{size} times epsilon, at a larger delta"
    cost = group_cost(bound.mu, delta, size)
    return f"epsilon = {round_up(cost.epsilon, 2)} (mu = {round_up(size * bound.mu, 6)})"


def entry(facts: dict[str, Any]) -> dict[str, Any]:
    """A record of the registry, of tier 3, whose epsilon is the guarantee's, rounded up. Its words
    stand in texts/registry.yaml.

    Args:
        facts: of `facts_of`.

    Returns:
        The entry as plain values, with the registry's own keys and the status of a draft.
    """
    declared, deployment = facts["deployment"], fill_text("registry", facts)
    deployment["basic"] |= {
        "data_curators": list(declared.curators),
        "data_product_sector": declared.sector,
    }
    epsilon = float(round_up(facts["bound"].epsilon))
    parameters = {"epsilon": epsilon, "delta": facts["stated"].delta}
    deployment["privacy_loss"]["privacy_parameters"] = parameters
    deployment["administrative"]["registry_authors"] = list(declared.authors)
    return {
        "url_slug": entry_slug(declared, facts["published"]),
        "status": "Draft",
        "tier": 3,
        "deployment": deployment,
    }


def entry_slug(deployment: Deployment, published: str) -> str:
    """As the registry makes it of name, curators and year.

    Args:
        deployment: what people declared.
        published: the day, as YYYY-MM-DD.
    """
    parts = (deployment.name, "-".join(deployment.curators), published[:4])
    return "-".join(re.sub(r"\W+", "-", part.lower()) for part in parts).replace("_", "-")


def file_name(deployment: Deployment, published: str) -> str:
    """Lower case letters, digits and underscores, as the registry asks."""
    return re.sub(r"[^a-z0-9]+", "_", entry_slug(deployment, published)).strip("_") + ".yaml"


def entry_as_yaml(entry: dict[str, Any]) -> str:
    """The file's text, its keys in the schema's order. No line is folded, so that texts stay as
    people wrote them."""
    return yaml.dump(entry, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1_000_000)


class _Dumper(yaml.SafeDumper):
    """Text of several lines as a block, which the registry asks for, and no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    """Text of several lines as a block; any other as YAML would have it."""
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
    )


_Dumper.add_representer(str, _text)


def required_keys(kind: type[Deployment]) -> Iterator[str]:
    """The keys that somebody has to fill in."""
    return (name for name, field in kind.model_fields.items() if field.is_required())


def document(name: str, facts: dict[str, Any]) -> str:
    """One of the other documents: the words of a text, put into its template.

    Args:
        name: of the template in texts/. What its name begins with, up to a dot, is the text's.
        facts: of `facts_of`.
    """
    text = fill_text(name.partition(".")[0], facts)
    return fill(f"privacy/statement/texts/{name}", text | {"name": facts["deployment"].name})


def fill_text(name: str, facts: dict[str, Any]) -> dict[str, Any]:
    """A text with its facts put in. A fact that is missing stops it: no text goes out with a gap.

    Args:
        name: of the text, a file in texts/.
        facts: of `facts_of`. They are put in as they are: each document escapes for itself.

    Returns:
        The YAML file's own tree of mappings and lists, every text in it filled.

    Raises:
        jinja2.UndefinedError: the text names a fact that there is not.
    """
    templates = environment()

    def fill_part(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: fill_part(value) for key, value in part.items()}
        if isinstance(part, list):
            return [fill_part(value) for value in part]
        return templates.from_string(part).render(facts) if isinstance(part, str) else part

    path = resources.files("dpladder.privacy.statement").joinpath("texts", f"{name}.yaml")
    result: dict[str, Any] = fill_part(yaml.safe_load(path.read_text("utf-8")))
    return result
