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
from dpladder.privacy.accounting.shown import up, up_short
from dpladder.privacy.statement.build import guarantee_of
from dpladder.privacy.statement.documents import SealedStatement, Stated
from dpladder.privacy.statement.page import unit_of

RELATIONS = {
    "add_remove": "one of them holds one {unit} more than the other",
    "replace_one": "one {unit} of the one is replaced in the other",
}


def entry(statement: SealedStatement, lineage: str, told: Deployment) -> dict[str, Any]:
    """A record of the registry, of tier 3."""
    dataset = statement.datasets[lineage]
    published = told.published or statement.origin.date
    return {
        "url_slug": slug(told, published),
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": {
                "name": told.name,
                "data_curators": list(told.curators),
                "intended_use": told.use,
                "data_product_type": "Machine learning model",
                "data_product_region": told.region,
                "description": _described(dataset),
                "publication_date": published,
                "data_product_sector": told.sector,
            },
            "dp_variant": {
                "variant_name": "Approximate DP",
                "data_domain": told.data,
                "unprotected_quantities": (
                    "None computed from the data. Public by declaration, and chosen without it: "
                    "class list, nominal size, clip bounds, search ranges, split rule, caps, and "
                    "every other key of the config."
                ),
            },
            "privacy_loss": _loss(statement, dataset),
            "deployment_model": _model(statement, dataset, told),
            "accounting": {
                "post_processing": (
                    "Choosing a step size from released scores, tables, figures, and the "
                    "predictions of the published models."
                ),
                "composition": _composition(dataset),
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": (
                    "Features come from a public network, record by record, or from the data as "
                    "declared. The search for hyperparameters is made of private trials with "
                    "noised scores or of private selection; what it spent is part of every figure. "
                    "The operator looked at the data only to see that it can be read; ranges, "
                    "classes and sizes are public by declaration."
                ),
                "mechanisms": _mechanisms(statement, dataset),
                "justification": (
                    "Every spend is planned before any record is read, written to a ledger before "
                    "it is made, and refused above the limit. Noise that does not earn its charge "
                    "is refused before publication. The mechanisms are attacked by an audit that "
                    "comes with the code (dpladder audit), and the composed figures can be "
                    "recomputed from the published records without the data (dpladder verify)."
                ),
            },
            "administrative": {
                "sources": _sources(statement),
                "notes": "Written by dpladder register from the run's statement.",
                "registry_authors": list(told.authors),
            },
        },
    }


def slug(told: Deployment, published: str) -> str:
    """As the registry makes it of name, curators and year."""
    parts = (told.name, "-".join(told.curators), published[:4])
    return "-".join(re.sub(r"\W+", "-", part.lower()) for part in parts).replace("_", "-")


def file_name(told: Deployment, published: str) -> str:
    """Lower case letters, digits and underscores, as the registry asks."""
    return re.sub(r"[^a-z0-9]+", "_", slug(told, published)).strip("_") + ".yaml"


def written(entry: dict[str, Any]) -> str:
    return yaml.dump(entry, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1_000_000)


def _described(dataset: Stated) -> str:
    models = len(dataset.artifacts)
    made = "a classifier" if models == 1 else f"{models} classifiers"
    return (
        f"The weights of {made}, trained with differential privacy, and noised counts of how many "
        "held-out records it gets right."
    )


def _level(dataset: Stated) -> str:
    if dataset.unit == "record":
        return "record-level"
    if dataset.unit == "document":
        return f"document-level, at most {dataset.cap} spans of each"
    if dataset.cap == 1:
        return "user-level, each as one record at most"
    return f"user-level, at most {dataset.cap} records of each"


def _loss(statement: SealedStatement, dataset: Stated) -> dict[str, Any]:
    bound = guarantee_of(dataset)
    assert bound is not None, "what is registered has a guarantee"
    limited = dataset.lifetime_epsilon is not None
    meant = (
        "Epsilon is the limit on everything that is ever released about the data, declared "
        "beforehand and enforced"
        if limited
        else "Epsilon is that of all releases, which were planned as a whole before the first of "
        "them"
    )
    gaussian = (
        ""
        if bound.mu is None
        else f"; as Gaussian differential privacy, mu = {up(bound.mu, 6)}, from which both follow"
    )
    return {
        "privacy_unit": _level(dataset),
        "privacy_unit_details": (
            f"Protected: {unit_of(dataset)}. Two data sets are adjacent where "
            f"{RELATIONS[dataset.relation].format(unit=dataset.unit)} (relation "
            f"{dataset.relation})."
        ),
        "privacy_parameters": {"epsilon": _rounded_up(bound.epsilon), "delta": dataset.delta},
        "privacy_parameters_details": (
            f"{meant}{gaussian}. Spent so far: epsilon = {up(dataset.lifetime_spent)}."
        ),
    }


def _rounded_up(epsilon: float) -> float:
    return float(up(epsilon))


def _model(statement: SealedStatement, dataset: Stated, told: Deployment) -> dict[str, Any]:
    limit = dataset.lifetime_epsilon
    later = (
        "Later releases about the same data count against the same epsilon, for good: no budget is "
        f"ever renewed, and a ledger refuses what would exceed {up_short(limit)}."
        if limit is not None
        else "All releases were planned together before the first of them; nothing is promised "
        "about later ones."
    )
    return {
        "model_name": "Central",
        "model_name_details": "One curator holds the data and adds noise to what is released.",
        "actors": "\n".join(
            [
                f"- {', '.join(told.curators)}: the curator and operator, trusted with the data, "
                "the noise key and the ledger.",
                f"- Those with access to the data: {' '.join(told.access.split()).rstrip('.')}.",
                "- Whoever sees the published files, or chooses configs from them: not trusted; "
                "they may know everything else, all other records included.",
                "- The people in the data: trusted not to work against themselves.",
            ]
        ),
        "release_type": "One release" if len(dataset.spends) == 1 else "Many releases",
        "release_type_details": later,
        "data_source_type": "Dynamic" if told.dynamic else "Static",
        "data_source_type_details": (
            "Every later version of the data is the same lineage, with one budget for life."
        ),
        "access_type": "Non-interactive",
        "access_type_details": "What is asked is fixed by a config and priced before the data is "
        "read. Nobody queries the data.",
    }


def _composition(dataset: Stated) -> str:
    accountant = (
        "Gaussian releases compose exactly: mu squared adds"
        if dataset.accountant == "exact"
        else "Every event is booked as a dominating Gaussian, up to a small probability and, of "
        "private selections, a pure loss: mu "
        "squared adds, and so do the rest"
    )
    return (
        f"{accountant}; a filter holds the sum below the limit even where later questions follow "
        "from earlier answers. Parts of the data that a keyed hash keeps apart compose in parallel "
        "where adjacent data sets differ in one of them alone; otherwise they add. Hyperparameter "
        "search and evaluation are counted."
    )


def _mechanisms(statement: SealedStatement, dataset: Stated) -> str:
    kinds = sorted({line.spend["event"]["type"] for line in dataset.spends})
    versions = ", ".join(f"{name} {version}" for name, version in statement.origin.versions.items())
    return "\n".join(
        [
            f"- Events, by their names in the ledger: {', '.join(kinds)}. Gaussian: noise on "
            "clipped sums and on counts.",
            f"- Implemented in {versions}; commit {statement.origin.commit or 'unknown'}.",
            "- Timing: not interactive; run times and memory are outside the guarantee, and no run "
            "time of a private job is published.",
            "- Floating point: what leaves a mechanism is rounded to a public grid of powers of "
            "two, so that its low bits tell nothing; sums and noise are float64.",
            "- Randomness: a keyed cryptographic generator, a 256-bit key, a fresh nonce for each "
            "release.",
            "- The data, feature caches and details of errors lie in folders of mode 0700, never "
            "beside what is published. Public messages, logs, names and exit codes tell nothing of "
            "a record.",
        ]
    )


def _sources(statement: SealedStatement) -> str:
    return "\n".join(
        [
            f"- The run's privacy statement: id {statement.id}.",
            f"- Its config: digest {statement.config}.",
        ]
    )


class _Dumper(yaml.SafeDumper):
    """Text of several lines as a block, which the registry asks for, and no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
    )


_Dumper.add_representer(str, _text)


def typed(kind: type[Deployment]) -> Iterator[str]:
    """The keys that somebody has to fill in."""
    return (name for name, field in kind.model_fields.items() if field.is_required())
