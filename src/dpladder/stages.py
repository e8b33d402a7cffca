"""The DAG in plain data: which rule reads which config keys, what it stands on, and which experiment owns a job.

Snakemake compares a rule's params, the ledger matches finished work, experiments share jobs: all three read this table,
so they cannot disagree.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from dpladder.code import digest_of
from dpladder.config import Config, Project
from dpladder.config.check import PATH_SOURCES
from dpladder.config.learners import SECTIONS, Covariance, Statistics, names, shares_releases
from dpladder.config.searches import Ladder
from dpladder.privacy.spend import Job

Keys = dict[str, Any]
Wildcards = Mapping[str, str]


@dataclass(frozen=True)
class Stage:
    """`keys`: what the output depends on. `after`: the rules whose outputs it reads. `private`: whether it reads private
    files, whose places may change without changing any output."""

    keys: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    private: bool = True


DATA = ("mode", "dataset.lineage", "dataset.classes", "dataset.unit", "dataset.split")
FEATURES = tuple(
    f"features.{key}"
    for key in ("model", "weights", "image_size", "layers", "normalize", "dtype", "batch_size")
)
RELEASE = (
    *DATA,
    "research",
    "features.mean",
    "dataset.nominal_size",
    "privacy.delta",
    "privacy.relation",
)
TRAIN = (*RELEASE, "learner")
TRAINERS = ("run_trial", "train_final", "private_search")
FINALS = ("train_final", "private_search")  # the one or the other puts out an experiment's final models
COMPARISONS = ("compare_learners", "compare_hpo")
STAGES: dict[str, Stage] = {
    "prepare_dataset": Stage(DATA),
    "prepare_public": Stage(DATA),
    "extract_features": Stage(FEATURES, ("prepare_dataset",)),
    "merge_features": Stage((), ("extract_features",)),
    "estimate_mean": Stage(RELEASE, ("merge_features",)),
    "estimate_covariance": Stage((*RELEASE, "learner.radius", "learner.covariance"), ("merge_features",)),
    "estimate_statistics": Stage(
        (*RELEASE, "learner.radius", "learner.statistics.epsilon"), ("merge_features",)
    ),
    "run_trial": Stage((*TRAIN, "sweep.search", "sweep.select"), ("merge_features",)),
    "select_rung": Stage(("sweep.select",), ("run_trial",), private=False),
    "fit_radius": Stage(("fit", "sweep.search", "privacy.delta"), ("select_rung",), private=False),
    "train_final": Stage((*TRAIN, "sweep.search"), ("fit_radius", "merge_features")),
    "private_search": Stage((*TRAIN, "sweep.search", "sweep.select", "hpo"), ("merge_features",)),
    "evaluate": Stage((*RELEASE, "evaluate"), FINALS),
    "compare_learners": Stage(RELEASE, ("merge_features",)),
    "compare_hpo": Stage((*TRAIN, "sweep.search"), ("merge_features",)),
}

DATA_RULES = ("prepare_dataset", "prepare_public", "extract_features", "merge_features")
RULES = (*STAGES, "plan_spend", "compose_privacy", "summarise", "plots")


def params(project: Project, rule: str, wildcards: Wildcards) -> Keys:
    """What Snakemake compares for a job: the keys and places it reads, and the digest that the ledger knows it by."""
    config = project.experiments[wildcards["experiment"]]
    stage, values = STAGES[rule], _values(config)
    own = {key: _at(values, key) for key in stage.keys} | _ladder_keys(config, rule, wildcards)
    read = parts_read(config, rule, wildcards)
    if rule in ("prepare_dataset", "prepare_public"):
        source = source_of(config, read[0])
        own |= {"source": source, "fingerprint": fingerprint(source)}
    if rule == "run_trial":
        scored = trial_parts(config)[-1]
        own["scored"] = {"part": scored, "nominal_size": nominal_size(config, scored)}
    if stage.private:
        own |= {"places": places(config, rule, read), "static": static(config, rule, wildcards)}
        own["public_parts"] = [part for part in read if is_public(config, part)]
    return own


def places(config: Config, rule: str, parts: Iterable[str]) -> dict[str, Any]:
    """Where the private files lie that a rule opens for some parts, by the public config that they follow from."""
    root = Path(config.paths.private) / config.dataset.lineage

    def folders(kind: str, maker: str) -> dict[str, str]:
        return {part: str(root / kind / _version(config, maker, part)) for part in parts}

    opened: dict[str, Any] = {"diagnostics": str(root / "diagnostics")}
    if rule in DATA_RULES and rule != "merge_features":
        opened["manifests"] = folders("data", "prepare_dataset")
    if rule not in ("prepare_dataset", "prepare_public"):
        opened["features"] = folders("features", "merge_features")
    if rule in ("extract_features", "merge_features"):
        opened["cache"] = config.paths.cache or str(Path(config.paths.private) / "cache")
    return opened


def _version(config: Config, rule: str, part: str) -> str:
    declared = part if is_public(config, part) else None
    return digest(identity(config, rule, {}), source_of(config, part), declared)[:12]


def fingerprint(source: str) -> str:
    """Changes when a source's files do. One time only, the newest: a size, or a digest over guessable times, would tell
    how many records or folders there are. Adding or removing a file makes its folder the newest."""
    kind, _, place = source.partition(":")
    path = Path(place)
    if kind not in PATH_SOURCES:
        return ""
    if path.is_dir():
        return digest(max(os.stat(folder).st_mtime_ns for folder, _, _ in os.walk(path)))[:16]
    return digest(path.stat().st_mtime_ns)[:16] if path.is_file() else ""


def contestants(project: Project) -> list[Keys]:
    """What compare_learners is told of each experiment, which it repeats itself: how it learns and searches, and whether
    it is comparable."""

    def basis(config: Config) -> tuple[object, ...]:
        part = {"part": "train"}
        return identity(config, "merge_features", part), sources_behind(config, "merge_features", part)

    return [
        {
            "experiment": name,
            "learner": _values(config)["learner"],
            "sweep": _values(config)["sweep"],
            "fit": _values(config)["fit"],
            "epsilon": config.privacy.epsilon,
            "comparable": basis(config) == basis(project.main)
            and config.features.mean is None
            and not shares_releases(config.learner)
            and isinstance(config.hpo, Ladder),
        }
        for name in project.repeats
        for config in [project.experiments[name]]
    ]


def summary_params(config: Config) -> Keys:
    """What a summary says beside its inputs."""
    names = ("mode", "dataset.lineage", "dataset.nominal_size", "privacy", "sweep.search", "learner")
    return {name: _at(_values(config), name) for name in names}


def static(config: Config, rule: str, wildcards: Wildcards) -> str:
    """All that is known about a job before data is read: config keys and code, its ancestors' included.

    The code that prepares data is left out: it may well make the same bytes as before, and a query names those.
    """
    return digest(
        identity(config, rule, wildcards),
        [code_of(config, name) for name in _ancestry(config, rule) if name not in DATA_RULES],
    )


def identity(config: Config, rule: str, wildcards: Wildcards) -> Keys:
    """Everything in the config that a job's output depends on, its ancestors' keys included."""
    values = _values(config)
    keys = {key: _at(values, key) for name in _ancestry(config, rule) for key in STAGES[name].keys}
    return keys | _ladder_keys(config, rule, wildcards)


def _ancestry(config: Config, rule: str) -> tuple[str, ...]:
    return ancestry(rule, absent(config))


@cache
def ancestry(rule: str, without: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """A rule and every rule it stands on."""
    after = [parent for parent in STAGES[rule].after if parent not in without]
    return tuple(sorted({rule}.union(*(ancestry(parent, without) for parent in after))))


def absent(config: Config) -> frozenset[str]:
    """The rules that a config has no jobs for, though others would stand on them."""
    return frozenset(FINALS) - {final_rule(config)} | (frozenset() if config.sweep.rungs else {"fit_radius"})


def final_rule(config: Config) -> str:
    """The rule that puts the final models out."""
    return "train_final" if isinstance(config.hpo, Ladder) else "private_search"


def owner(project: Project, experiment: str, rule: str, wildcards: Wildcards) -> str:
    """The first experiment whose job is the same one; the others read its outputs."""

    def known(config: Config) -> tuple[Keys, list[str]]:
        return identity(config, rule, wildcards), sources_behind(config, rule, wildcards)

    wanted = known(project.experiments[experiment])
    for name, config in project.experiments.items():
        if name == experiment or (has(config, rule, wildcards) and known(config) == wanted):
            return name
    raise AssertionError("an experiment owns its own job at the latest")


def sources_behind(config: Config, rule: str, wildcards: Wildcards) -> list[str]:
    """The sources whose records reach a job. One that moves changes no release, so they are no part of its identity;
    experiments that read different ones share nothing."""
    swept = trial_parts(config) if "run_trial" in _ancestry(config, rule) else ()
    return [source_of(config, part) for part in (*swept, *parts_read(config, rule, wildcards))]


def owned_job(project: Project, experiment: str, rule: str, **wildcards: object) -> Job:
    """The job that does `rule` for an experiment, under the name of the experiment that owns it."""
    values = {key: str(value) for key, value in wildcards.items()}
    return job(owner(project, experiment, rule, values), rule, values)


def job(experiment: str, rule: str, wildcards: Wildcards) -> Job:
    others = {key: value for key, value in wildcards.items() if key != "experiment"}
    return Job(experiment, rule, tuple(sorted(others.items())))


def is_public(config: Config, part: str) -> bool:
    """Whether a part is a source of its own, declared public."""
    return _public_sources(config).get(part) is not None


def source_of(config: Config, part: str) -> str:
    """Where the records of a part come from."""
    return _public_sources(config).get(part) or config.dataset.source


def _public_sources(config: Config) -> dict[str, str | None]:
    return {"test": config.dataset.public_test, "validation": config.dataset.public_validation}


def parts_read(config: Config, rule: str, wildcards: Wildcards) -> tuple[str, ...]:
    """The parts whose private files a job opens itself."""
    if rule == "prepare_public":  # which it compares with the private records
        return (wildcards["part"], "train")
    if "part" in wildcards:
        return (wildcards["part"],)
    own = {
        "run_trial": trial_parts(config),
        "evaluate": ("test",),
        **dict.fromkeys(COMPARISONS, ("train", "test")),
    }
    return own.get(rule, ("train",))


def trial_parts(config: Config) -> tuple[str, ...]:
    """The parts whose features a trial reads: it trains on one, and is scored on the same or another."""
    select = config.sweep.select
    return tuple(dict.fromkeys(["train", "validation" if select.by == "public" else select.part]))


def nominal_size(config: Config, part: str) -> int:
    """How many units a part has by declaration: the training part's n0, and in proportion for the others."""
    split = config.dataset.split
    share = {"validation": split.validation, "test": split.test}.get(part, 0.0) / (
        1 - split.test - split.validation
    )
    return (
        config.dataset.nominal_size if part == "train" else max(1, round(config.dataset.nominal_size * share))
    )


def parts(config: Config) -> tuple[str, ...]:
    """The parts whose features the experiment needs."""
    return (*(trial_parts(config) if config.sweep.rungs else ("train",)), "test")


def covariance(config: Config) -> Covariance | None:
    """The covariance that all trainings share, where the learner uses one and does not pay for its own each time."""
    return getattr(config.learner, "covariance", None)


def statistics(config: Config) -> Statistics | None:
    """The noised sums that all trainings share, where the learner solves them instead of paying for its own each time."""
    return getattr(config.learner, "statistics", None)


def looks_back(config: Config) -> bool:
    """Whether a rung's draws use the earlier rungs' releases."""
    return config.sweep.search.prior != "none" or config.sweep.search.draw == "binary"


def targets(config: Config) -> tuple[float, ...]:
    return config.final.targets or (config.privacy.epsilon,)


def target_name(target: float) -> str:
    """A total as it stands in paths, exactly: 1.0 is 1, 0.5 is 0.5."""
    short = f"{target:g}"
    return short if float(short) == target else repr(target)


def code_of(config: Config, rule: str) -> str:
    """Digest of the code behind a job."""
    search = None if isinstance(config.hpo, Ladder) or rule != "private_search" else config.hpo.module
    return rule_code(rule, config.learner.name if rule in TRAINERS else None, search)


@cache
def rule_code(rule: str, learner: str | None = None, search: str | None = None) -> str:
    """Digest of the package code behind a rule: of all learners, and searches, the one that it runs. The statement is what
    compose_privacy makes, and inert for all others."""
    own: tuple[str, ...] = ("dpladder.privacy.statement",) if rule == "compose_privacy" else ()
    if rule in COMPARISONS:
        own = tuple(f"dpladder.learn.{name}" for section in SECTIONS for name in names(section))
    trained = () if learner is None else (f"dpladder.learn.{learner}",)
    searched = () if search is None else (f"dpladder.search.{search}",)
    return digest_of(f"dpladder.rules.{rule}", *own, *trained, *searched)


def digest(*parts: object) -> str:
    """sha256 of plain values, floats at full precision (json writes the shortest exact form)."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, allow_nan=False).encode()).hexdigest()


def _ladder_keys(config: Config, rule: str, wildcards: Wildcards) -> Keys:
    """What a job depends on beyond its sections: the rungs it stands on, and its own total."""
    rungs = _values(config)["sweep"]["rungs"]
    if rule in ("run_trial", "select_rung"):
        rung = int(wildcards["rung"])
        below = rungs[:rung] if looks_back(config) else []
        own = rungs[rung] if rule == "select_rung" else {"epsilon": rungs[rung]["epsilon"]}
        return {"rungs": [*below, own]}
    if rule in ("fit_radius", "evaluate", *FINALS):
        return {"rungs": rungs, "target": float(wildcards["target"]), "final.budget": config.final.budget}
    return {}


def has(config: Config, rule: str, wildcards: Wildcards) -> bool:
    """Whether a config has this job: its rule at all, and the rung, trial and target that it is about."""
    rungs = config.sweep.rungs
    if rule == "estimate_covariance":
        return covariance(config) is not None
    if rule == "estimate_statistics":
        return statistics(config) is not None
    if "rung" in wildcards:
        rung = int(wildcards["rung"])
        return rung < len(rungs) and int(wildcards.get("trial", 0)) < rungs[rung].trials
    if rule in absent(config):
        return False
    return "target" not in wildcards or float(wildcards["target"]) in targets(config)


@cache
def _values(config: Config) -> Keys:
    return config.model_dump(mode="json")


def _at(values: Any, key: str) -> Any:
    for part in key.split("."):
        values = values[part]
    return values
