"""The DAG in plain data: which rule reads which config keys, what it stands on, and which experiment owns a job.

Snakemake compares a rule's params; the ledger matches finished work by them; experiments with the same keys share
one job. All three read this table, so they cannot disagree.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpladder.code import digest_of
from dpladder.config import Config, Project
from dpladder.privacy.spend import Job

Keys = dict[str, Any]


@dataclass(frozen=True)
class Stage:
    """One rule: the config keys it reads itself, and the rules whose outputs it reads."""

    keys: tuple[str, ...]
    after: tuple[str, ...] = ()


DATA_KEYS = (
    "mode",
    "paths.private",
    "dataset.lineage",
    "dataset.source",
    "dataset.classes",
    "dataset.unit",
    "dataset.split",
    "dataset.public_test",
    "dataset.public_validation",
)
FEATURE_KEYS = tuple(
    f"features.{key}"
    for key in ("model", "weights", "image_size", "layers", "normalize", "dtype", "batch_size", "shards")
)
TRAIN_KEYS = ("mode", "research", "learner", "dataset.nominal_size", "privacy.delta", "privacy.relation")

STAGES: dict[str, Stage] = {
    "prepare_dataset": Stage(DATA_KEYS),
    "extract_features": Stage(FEATURE_KEYS, ("prepare_dataset",)),
    "merge_features": Stage((), ("extract_features",)),
    "estimate_mean": Stage(("features.mean", *TRAIN_KEYS), ("merge_features",)),
    "run_trial": Stage((*TRAIN_KEYS, "sweep.search", "sweep.select", "features.mean"), ("estimate_mean", "merge_features")),
    "select_rung": Stage(("sweep.select",), ("run_trial",)),
    "fit_radius": Stage(("fit", "sweep.search"), ("select_rung",)),
    "train_final": Stage((*TRAIN_KEYS, "sweep.search", "features.mean"), ("fit_radius",)),
    "evaluate": Stage((*TRAIN_KEYS, "evaluate", "features.mean"), ("train_final",)),
}


def own_keys(config: Config, rule: str) -> Keys:
    """The values of the keys that a rule reads, JSON-plain, by dotted path."""
    values = config.model_dump(mode="json")
    return {key: _at(values, key) for key in STAGES[rule].keys}


def identity(config: Config, rule: str, wildcards: Mapping[str, str]) -> Keys:
    """Everything in the config that a job's output depends on, its ancestors' keys included."""
    keys = own_keys(config, rule)
    for parent in STAGES[rule].after:
        keys |= identity(config, parent, wildcards)
    return keys | _ladder_keys(config, rule, wildcards)


def _ladder_keys(config: Config, rule: str, wildcards: Mapping[str, str]) -> Keys:
    """What a job depends on beyond its section: the rungs it stands on, and its own total."""
    rungs = [rung.model_dump(mode="json") for rung in config.sweep.rungs]
    if rule in ("run_trial", "select_rung") and "rung" in wildcards:
        rung = int(wildcards["rung"])
        below = rungs[:rung] if looks_back(config) else []
        own = rungs[rung] if rule == "select_rung" else {"epsilon": rungs[rung]["epsilon"]}
        return {"rungs": [*below, own]}
    if rule in ("fit_radius", "train_final", "evaluate"):
        return {"rungs": rungs, "target": float(wildcards["target"]), "final.budget": config.final.budget}
    return {}


def looks_back(config: Config) -> bool:
    """Whether a rung's draws use the earlier rungs' releases."""
    return config.sweep.search.prior != "none" or config.sweep.search.draw == "binary"


def owner(project: Project, experiment: str, rule: str, wildcards: Mapping[str, str]) -> str:
    """The first experiment whose job is the same one; the others read its outputs."""
    wanted = identity(project.experiments[experiment], rule, wildcards)
    for name, config in project.experiments.items():
        if name == experiment or (_has(config, wildcards) and identity(config, rule, wildcards) == wanted):
            return name
    raise AssertionError("an experiment owns its own job at the latest")


def owned_job(project: Project, experiment: str, rule: str, **wildcards: object) -> Job:
    """The job that does `rule` for an experiment, under the name of the experiment that owns it."""
    values = {key: str(value) for key, value in wildcards.items()}
    return Job(owner(project, experiment, rule, values), rule, tuple(sorted(values.items())))


def static(config: Config, job: Job) -> str:
    """What is known about a job before data is read: the config keys and the code, its ancestors' included."""
    return digest(identity(config, job.rule, dict(job.wildcards)), [rule_code(rule) for rule in ancestry(job.rule)])


def ancestry(rule: str) -> tuple[str, ...]:
    """A rule and every rule it stands on."""
    rules = dict.fromkeys([rule])
    for parent in STAGES[rule].after:
        rules |= dict.fromkeys(ancestry(parent))
    return tuple(sorted(rules))


def rule_code(rule: str) -> str:
    return digest_of(f"dpladder.rules.{rule}")


def digest(*parts: object) -> str:
    """sha256 of plain values, floats at full precision (json writes the shortest exact form)."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, allow_nan=False).encode()).hexdigest()


def targets(config: Config) -> tuple[float, ...]:
    return config.final.targets or (config.privacy.epsilon,)


def target_name(target: float) -> str:
    """A total's name in paths, exact: 1.0 is 1, 0.5 is 0.5."""
    return f"{target:.17g}" if float(f"{target:g}") != target else f"{target:g}"


def _has(config: Config, wildcards: Mapping[str, str]) -> bool:
    """Whether a config has the rung, trial and target that a job is about."""
    rung = int(wildcards.get("rung", 0))
    if rung >= len(config.sweep.rungs) or int(wildcards.get("trial", 0)) >= config.sweep.rungs[rung].trials:
        return False
    return "target" not in wildcards or float(wildcards["target"]) in targets(config)


def _at(values: Any, key: str) -> Any:
    for part in key.split("."):
        values = values[part]
    return values
