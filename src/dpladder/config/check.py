"""What holds between keys, within one experiment and across a project. Types and ranges are the model's own."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import get_args

from dpladder.config.learners import Descending, shares_releases
from dpladder.config.model import Config
from dpladder.config.searches import Ladder, SecretRuns
from dpladder.config.wording import KeyPath, did_you_mean, shown

Problem = tuple[KeyPath, str]

NAMED_SOURCES = ("mnist5k", "digits")
PATH_SOURCES = ("folder", "csv", "hdf5", "npz", "parquet")
PUBLIC_FOLDERS = (Path("results"), Path("logs"), Path("benchmarks"))
MATRIX_SOURCES = ("hdf5", "npz", "parquet")


def problems_of_experiment(config: Config, doubtful: Collection[KeyPath] = ()) -> list[Problem]:
    """What is wrong between keys. A check that reads a doubtful key is left out: it would complain of an echo."""
    return [
        problem
        for check, keys in _READS.items()
        if not any(_overlap(tuple(key.split(".")), doubt) for key in keys for doubt in doubtful)
        for problem in check(config)
    ]


def _overlap(one: KeyPath, other: KeyPath) -> bool:
    return all(a == b for a, b in zip(one, other, strict=False))


def problems_of_project(experiments: Mapping[str, Config]) -> list[Problem]:
    """Experiments on one lineage must agree on what is fixed for the lineage's life."""
    problems: list[Problem] = []
    first: dict[str, tuple[str, dict[str, object]]] = {}
    for name, config in experiments.items():
        terms = lineage_terms(config)
        owner, agreed = first.setdefault(config.dataset.lineage, (name, terms))
        problems += [
            (
                ("experiments", name, *key.split(".")),
                f"given {shown(terms[key])}, but {shown(agreed[key])} in {owner}; "
                f"it is fixed for the life of lineage {config.dataset.lineage}, so give both the same",
            )
            for key in terms
            if terms[key] != agreed[key]
        ]
        problems += [
            (("experiments", taken), f"this is what a repeat of {name} is called; choose another name")
            for taken in repeat_names(name, config)[1:]
            if taken in experiments
        ]
    return problems


def repeat_names(name: str, config: Config) -> list[str]:
    """What the repeats of an experiment are called; the first one is the experiment itself."""
    return [name, *(f"{name}-{repeat}" for repeat in range(2, config.research.repeats + 1))]


def lineage_terms(config: Config) -> dict[str, object]:
    """The keys that one lineage holds for life (DESIGN: lineage)."""
    dataset, privacy = config.dataset, config.privacy
    return {
        "privacy.relation": privacy.relation,
        "privacy.delta": privacy.delta,
        "privacy.lifetime": None if privacy.lifetime is None else privacy.lifetime.epsilon,
        "privacy.lifetime.selections": privacy.lifetime is not None and privacy.lifetime.selections,
        "dataset.unit": dataset.unit.model_dump(),
        "dataset.split": dataset.split.model_dump(),
        "dataset.declared_public": dataset.declared_public,
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
        yield (
            ("mode",),
            "research runs only on data declared public; set dataset.declared_public: true if nobody in it needs protection",
        )
    if config.mode == "release" and config.research.repeats > 1:
        yield ("research", "repeats"), f"given {config.research.repeats}; repeats need mode: research"


def _sources(config: Config) -> Iterator[Problem]:
    dataset = config.dataset
    for field in ("source", "public_test", "public_validation"):
        source = getattr(dataset, field)
        if source is not None:
            yield from _source(("dataset", field), source)
        if source == dataset.source and field != "source":
            yield (
                ("dataset", field),
                f"given {shown(source)}, the private source itself; name another one that is open to everybody, "
                "or hold out private data by dataset.split",
            )
    if dataset.source.partition(":")[0] in PATH_SOURCES and dataset.classes is None:
        yield (
            ("dataset", "classes"),
            "required for your own data: list the class names, or say how many there are; they are public",
        )


def _source(key: KeyPath, source: str) -> Iterator[Problem]:
    kind, _, rest = source.partition(":")
    if source in NAMED_SOURCES or (kind == "torchvision" and rest):
        return
    if kind not in PATH_SOURCES or not rest:
        forms = [*NAMED_SOURCES, "torchvision:<Name>", *(f"{kind}:<path>" for kind in PATH_SOURCES)]
        yield key, f"given {shown(source)}; {did_you_mean(source, forms)}allowed: {', '.join(forms)}"
        return
    wrong = _wrong_with(rest, folder=kind == "folder")
    if wrong:
        yield key, f"given {shown(source)}; {wrong}"


def _wrong_with(path: str, folder: bool = False) -> str | None:
    """Why a path that the config names cannot be used, if so. Nothing inside it is read here."""
    try:
        found_folder = stat.S_ISDIR(os.stat(path).st_mode)
    except FileNotFoundError:
        return "nothing is there; paths are relative to the working directory"
    except (OSError, ValueError) as error:
        return f"it cannot be reached ({getattr(error, 'strerror', None) or error}); check the path and its permissions"
    if found_folder != folder:
        return f"a {'folder' if folder else 'file'} is wanted there"
    return None if os.access(path, os.R_OK) else "it cannot be read; check its permissions"


def _features(config: Config) -> Iterator[Problem]:
    features, matrix = config.features, config.dataset.source.partition(":")[0] in MATRIX_SOURCES
    if matrix != (features.model == "none"):
        yield (
            ("features", "model"),
            f"given {shown(features.model)} with source {shown(config.dataset.source)}; "
            + ("a feature matrix needs model: none" if matrix else "images need a model"),
        )
    elif features.weights == "bundled" and features.model not in ("efficientnet_lite0", "none"):
        yield (
            ("features", "weights"),
            f"given 'bundled' with model {shown(features.model)}; bundled weights exist for efficientnet_lite0 alone; use pretrained or a path",
        )
    if features.weights not in ("bundled", "pretrained"):
        wrong = _wrong_with(features.weights)
        if wrong:
            yield (
                ("features", "weights"),
                f"given {shown(features.weights)}; allowed: bundled, pretrained, or a checkpoint's path; {wrong}",
            )


def _sweep(config: Config) -> Iterator[Problem]:
    if config.fit.using == "pooled" and config.fit.degree != 1:
        yield (
            ("fit", "degree"),
            f"given {config.fit.degree}; pooled scores take a line: set using: best for a parabola",
        )
    select, dataset = config.sweep.select, config.dataset
    if select.by == "public" and dataset.public_validation is None:
        yield ("sweep", "select", "by"), "given 'public'; it needs dataset.public_validation"
    if (
        select.by != "public"
        and select.part == "validation"
        and dataset.split.rule == "hash"
        and dataset.split.validation == 0
    ):
        yield ("sweep", "select", "part"), "given 'validation'; it needs dataset.split.validation above 0"


def _ladder(config: Config) -> Iterator[Problem]:
    learner, degree = config.learner, config.fit.degree
    if not isinstance(config.hpo, Ladder):
        return
    points = len({rung.epsilon for rung in config.sweep.rungs})
    # With shared statistics all trainings have one budget, and a rung's epsilon buys scores alone.
    solved = getattr(learner, "statistics", None) is not None
    if learner.searches is None and points:
        yield ("sweep", "rungs"), f"learner {learner.name} has nothing to search; write rungs: []"
    if learner.searches is not None and points == 0:
        yield ("sweep", "rungs"), f"given []; learner {learner.name} has an r to search, so add at least 1"
    elif solved and config.fit.using != "pooled":
        yield (
            ("fit", "using"),
            f"given {shown(config.fit.using)}; all trials solve the same statistics, one point for a line: set using: pooled",
        )
    elif learner.searches is not None and not solved and points <= degree:
        yield (
            ("sweep", "rungs"),
            f"{points} distinct epsilon for a fit of degree {degree}; it needs at least {degree + 1}",
        )


def _hpo(config: Config) -> Iterator[Problem]:
    """A private search is one job that spends the whole total, so nothing else may bear on the training part."""
    hpo, sweep, relation = config.hpo, config.sweep, config.privacy.relation
    if isinstance(hpo, Ladder):
        return
    shared = config.features.mean is not None or shares_releases(config.learner)
    parallel = config.dataset.split.rule == "hash" and relation == "add_remove"
    lifetime = config.privacy.lifetime
    alone = isinstance(hpo, get_args(SecretRuns)) and lifetime is not None and not lifetime.selections
    wrong = (
        (
            config.learner.searches is None,
            f"learner {config.learner.name} has nothing to search; leave hpo out",
        ),
        (sweep.rungs, "it climbs no ladder; write sweep: {rungs: []} beside it"),
        (
            (sweep.search.draw, sweep.search.prior) != ("stratified", "none"),
            "it draws r by itself; leave sweep.search.draw and sweep.search.prior out",
        ),
        (
            (sweep.select.by, sweep.select.part) != ("noisy_count", "train"),
            "it counts on the training part; leave sweep.select.by and sweep.select.part out",
        ),
        (
            shared,
            "it spends the whole total; leave features.mean, learner.covariance and learner.statistics out",
        ),
        (config.final.budget != "remaining", "it spends the whole total; leave final.budget out"),
        (
            hpo.name == "koskela_kulkarni" and relation != "add_remove",
            "its bound holds under privacy.relation: add_remove alone",
        ),
        (
            config.dataset.public_test is None and not parallel,
            "the test part must cost nothing beside it: name dataset.public_test, or use split.rule: hash and "
            "privacy.relation: add_remove",
        ),
        (
            alone,
            "set privacy.lifetime.selections: true, so that it may share the limit; it is fixed for life",
        ),
    )
    yield from ((("hpo", "name"), f"given {hpo.name!r}; {what}") for holds, what in wrong if holds)


def _learner(config: Config) -> Iterator[Problem]:
    learner = config.learner
    if not isinstance(learner, Descending):
        return
    if learner.sampling_rate < 1:
        yield (
            ("learner", "sampling_rate"),
            f"given {learner.sampling_rate!r}; the ladder plans full-batch trainings, whose cost is exact; set it to 1",
        )
    if learner.augment > 1:
        yield (
            ("learner", "augment"),
            f"given {learner.augment}; feature caches hold one view per image; set it to 1",
        )


def _test_part(config: Config) -> Iterator[Problem]:
    dataset = config.dataset
    if dataset.public_test is None and dataset.split.rule == "hash" and dataset.split.test == 0:
        yield (
            ("dataset", "split", "test"),
            "given 0; the final model needs something to be measured on: raise it, or name dataset.public_test",
        )


def _paths(config: Config) -> Iterator[Problem]:
    for name, path in (("private", config.paths.private), ("cache", config.paths.cache)):
        if path is not None and any(
            _nested(Path(os.path.abspath(path)), public.absolute()) for public in PUBLIC_FOLDERS
        ):
            yield (
                ("paths", name),
                f"given {shown(path)}; neither it nor {', '.join(map(str, PUBLIC_FOLDERS))} may lie in the other: "
                "those are public, it must never be shared",
            )


def _nested(one: Path, other: Path) -> bool:
    return one.is_relative_to(other) or other.is_relative_to(one)


_READS = {
    _delta: ("privacy.delta", "dataset.nominal_size"),
    _lifetime: ("privacy.epsilon", "privacy.lifetime"),
    _mode: ("mode", "dataset.declared_public", "research.repeats"),
    _sources: ("dataset.source", "dataset.public_test", "dataset.public_validation", "dataset.classes"),
    _features: ("features.model", "features.weights", "dataset.source"),
    _ladder: (
        "sweep.rungs",
        "fit.degree",
        "fit.using",
        "learner.name",
        "learner.statistics",
        "hpo.name",
    ),
    _sweep: ("sweep", "fit", "dataset.public_validation", "dataset.split"),
    _hpo: (
        "hpo",
        "learner",
        "sweep",
        "features.mean",
        "final.budget",
        "privacy.relation",
        "privacy.lifetime",
        "dataset.public_test",
        "dataset.split.rule",
    ),
    _learner: ("learner.sampling_rate", "learner.augment"),
    _test_part: ("dataset.public_test", "dataset.split"),
    _paths: ("paths",),
}
"""Each check, and the keys it reads."""
