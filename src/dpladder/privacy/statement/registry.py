"""An entry for OpenDP's registry of deployments, from a statement and the config's `deployment:`
section.

The keys are those of its schema, deployments-schema.yaml of July 2026. Of all fields of its three
tiers ten are what people say, eight of them typed; the rest follows from the statement.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from dpladder.config.model import Deployment
from dpladder.privacy.accounting.rounding import round_up
from dpladder.privacy.statement.build import guarantee_of
from dpladder.privacy.statement.documents import SealedStatement
from dpladder.privacy.statement.facts import facts_of, fill_template


def entry(statement: SealedStatement, lineage: str, declared: Deployment) -> dict[str, Any]:
    """A record of the registry, of tier 3. Its words stand in texts/registry.yaml.

    Args:
        statement: as it is sealed.
        lineage: one of its lineages, with a guarantee: that is the epsilon that is registered,
            rounded up.
        declared: what people say of the deployment.

    Returns:
        The entry as plain values, with the registry's own keys and the status of a draft.
    """
    dataset, facts = statement.datasets[lineage], facts_of(statement, lineage, declared)
    bound = guarantee_of(dataset)
    assert bound is not None, "what is registered has a guarantee"
    deployment = fill_template("registry", facts)
    deployment["basic"] |= {
        "data_curators": list(declared.curators),
        "data_product_sector": declared.sector,
    }
    epsilon = float(round_up(bound.epsilon))
    deployment["privacy_loss"]["privacy_parameters"] = {"epsilon": epsilon, "delta": dataset.delta}
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
