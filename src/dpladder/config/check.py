"""What holds between keys, within one experiment and across a project. Types and ranges are the model's own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from dpladder.config.model import Config

KeyPath = tuple[str | int, ...]
Problem = tuple[KeyPath, str]

NAMED_SOURCES = ("mnist5k", "digits")
PATH_SOURCES = ("folder", "csv", "hdf5", "npz", "parquet")
MATRIX_SOURCES = ("hdf5", "npz", "parquet")


def problems_of_experiment(config: Config) -> list[Problem]:
    return [problem for check in _CHECKS for problem in check(config)]


def problems_of_project(experiments: Mapping[str, Config]) -> list[str]:
    """Experiments on one lineage must agree on what is fixed for the lineage's life."""
    problems = []
    first: dict[str, tuple[str, dict[str, object]]] = {}
    for name, config in experiments.items():
        terms = lineage_terms(config)
        owner, agreed = first.setdefault(config.dataset.lineage, (name, terms))
        problems += [
            f"experiments.{name}: {key} is {terms[key]!r}, but {agreed[key]!r} in {owner}; "
            f"it is fixed for the life of lineage {config.dataset.lineage}, so give both the same"
            for key in terms
            if terms[key] != agreed[key]
        ]
    return problems


def lineage_terms(config: Config) -> dict[str, object]:
    """The keys that one lineage holds for life (DESIGN: lineage)."""
    dataset, privacy = config.dataset, config.privacy
    return {
        "privacy.relation": privacy.relation,
        "privacy.delta": privacy.delta,
        "privacy.lifetime": None if privacy.lifetime is None else privacy.lifetime.epsilon,
        "dataset.unit": dataset.unit.model_dump(),
        "dataset.split": dataset.split.model_dump(),
        "mode": config.mode,
    }


def _delta(config: Config) -> Iterator[Problem]:
    size = config.dataset.nominal_size
    if config.privacy.delta >= 1 / size:
        yield (
            ("privacy", "delta"),
            f"given {config.privacy.delta!r}; it must stay below 1/nominal_size = {1 / size:.3g}: "
            "at that delta publishing one random record in full would count as private",
        )


def _lifetime(config: Config) -> Iterator[Problem]:
    lifetime = config.privacy.lifetime
    if lifetime is not None and lifetime.epsilon < config.privacy.epsilon:
        yield (
            ("privacy", "lifetime", "epsilon"),
            f"given {lifetime.epsilon!r}; it must be at least privacy.epsilon = {config.privacy.epsilon!r}",
        )


def _mode(config: Config) -> Iterator[Problem]:
    if config.mode == "research" and not config.dataset.declared_public:
        yield ("mode",), "research runs only on data declared public; set dataset.declared_public: true if nobody in it needs protection"
    if config.mode == "release" and config.research.repeats > 1:
        yield ("research", "repeats"), f"given {config.research.repeats}; repeats need mode: research"


def _sources(config: Config) -> Iterator[Problem]:
    dataset = config.dataset
    for field in ("source", "public_test", "public_validation"):
        source = getattr(dataset, field)
        if source is not None:
            yield from _source(("dataset", field), source)
    if dataset.source.partition(":")[0] in PATH_SOURCES and dataset.classes is None:
        yield ("dataset", "classes"), "required for your own data: list the class names, or say how many there are; they are public"


def _source(key: KeyPath, source: str) -> Iterator[Problem]:
    kind, colon, rest = source.partition(":")
    if not colon and source in NAMED_SOURCES:
        return
    if kind == "torchvision" and rest:
        return
    if kind not in PATH_SOURCES or not rest:
        forms = ", ".join([*NAMED_SOURCES, "torchvision:<Name>", *(f"{kind}:<path>" for kind in PATH_SOURCES)])
        yield key, f"given {source!r}; allowed: {forms}"
        return
    path = Path(rest)
    if not path.exists():
        yield key, f"given {source!r}; nothing is there; paths are relative to the working directory"
    elif (kind == "folder") != path.is_dir():
        yield key, f"given {source!r}; {kind}: wants a {'folder' if kind == 'folder' else 'file'}"
    elif not os.access(path, os.R_OK):
        yield key, f"given {source!r}; it cannot be read; check its permissions"


def _features(config: Config) -> Iterator[Problem]:
    features, matrix = config.features, config.dataset.source.partition(":")[0] in MATRIX_SOURCES
    if matrix != (features.model == "none"):
        yield (
            ("features", "model"),
            f"given {features.model!r} with source {config.dataset.source!r}; "
            + ("a feature matrix needs model: none" if matrix else "images need a model"),
        )
    elif features.weights == "bundled" and features.model not in ("efficientnet_lite0", "none"):
        yield (
            ("features", "weights"),
            f"given 'bundled' with model {features.model!r}; bundled weights exist for efficientnet_lite0 alone; use pretrained or a path",
        )
    elif features.weights not in ("bundled", "pretrained") and not Path(features.weights).is_file():
        yield ("features", "weights"), f"given {features.weights!r}; allowed: bundled, pretrained, or the path of an existing checkpoint"


def _sweep(config: Config) -> Iterator[Problem]:
    points = len({rung.epsilon for rung in config.sweep.rungs})
    if points <= config.fit.degree:
        yield (
            ("sweep", "rungs"),
            f"{points} distinct epsilon for a fit of degree {config.fit.degree}; it needs at least {config.fit.degree + 1}",
        )
    select, dataset = config.sweep.select, config.dataset
    if select.by == "public" and dataset.public_validation is None:
        yield ("sweep", "select", "by"), "given 'public'; it needs dataset.public_validation"
    if select.by != "public" and select.part == "validation" and dataset.split.rule == "hash" and dataset.split.validation == 0:
        yield ("sweep", "select", "part"), "given 'validation'; it needs dataset.split.validation above 0"


def _test_part(config: Config) -> Iterator[Problem]:
    dataset = config.dataset
    if dataset.public_test is None and dataset.split.rule == "hash" and dataset.split.test == 0:
        yield ("dataset", "split", "test"), "given 0; the final model needs something to be measured on: raise it, or name dataset.public_test"


_CHECKS = (_delta, _lifetime, _mode, _sources, _features, _sweep, _test_part)
