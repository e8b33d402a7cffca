"""What the rules that read private data share: their keys, their caches, and their one way to release."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from dpladder.config.model import Features, Learner, Mean, Resources, Section
from dpladder.data import cache, sealed
from dpladder.data.mean import apply_mean
from dpladder.data.prepare import Keys
from dpladder.errors import Refused
from dpladder.job import Task
from dpladder.learn.interface import Constants, Data
from dpladder.privacy import ledger as ledgers
from dpladder.privacy.home import Home, open_home, subkey
from dpladder.privacy.ledger import Ledger
from dpladder.privacy.meter import Draw, Meter
from dpladder.privacy.spend import Counted, Job, Spend, mu
from dpladder.privacy.store import Outcome, query_digest, release
from dpladder import stages

Model = TypeVar("Model", bound=Section)


@dataclass(frozen=True)
class Reserved:
    """A private job as the ledger knows it: what it may spend, by what the spend buys."""

    ledger: Ledger
    job: Job
    spends: dict[str, Spend]

    def mu(self, label: str) -> float:
        spend = self.spends[label]
        cost = mu(spend.event, spend.count)
        assert cost is not None
        return cost

    def concrete(self, label: str, events: Iterable[Counted]) -> list[Spend]:
        """The events that a mechanism really makes, in place of the declared one."""
        return [replace(self.spends[label], event=event.event, count=event.count) for event in events]


def section(task: Task, name: str, model: type[Model]) -> Model:
    """A section of the config as the job was given it."""
    return model.model_validate_json(json.dumps(task.cfg[name]))


def features_of(task: Task) -> Features:
    values = {key.removeprefix("features."): value for key, value in task.cfg.items() if key.startswith("features.")}
    return Features.model_validate_json(json.dumps(values))


def job_home() -> Home:
    """The home where this job's reservation lies. It is never made here: a node without it has the wrong mount."""
    return open_home(create=False)


def keys_of(home: Home) -> Keys:
    return Keys(
        units=subkey(home, "units"),
        split=subkey(home, "split"),
        commitment=subkey(home, "commitment"),
        cache=subkey(home, "cache"),
    )


def reserved(task: Task) -> Reserved:
    """What the head node reserved for this job. Jobs look in the ledger, never in a file."""
    ledger = Ledger(job_home(), task.cfg["dataset.lineage"])
    job = stages.job(task.experiment, task.rule, task.wildcards)
    held = [h for h in ledgers.load(ledger).of(job) if h.static == task.cfg["static"]]
    if not held:
        raise Refused(
            f"{ledgers.name(job)} finds no reservation in {ledger.folder}. On a cluster, check that DPLADDER_HOME is "
            "mounted on this node and is the same folder as on the head node; otherwise start the workflow again."
        )
    return Reserved(ledger, job, {spend.label: spend for spend in held[-1].declared})


@dataclass(frozen=True)
class Part:
    """A part's feature cache by its seal, which names its exact bytes without reading them."""

    path: Path
    seal: str
    classes: int
    dimension: int


def part_of(task: Task, part: str) -> Part:
    path = Path(task.cfg["places"]["features"]) / f"{part}.h5"
    attrs, seal = sealed.read_attrs(path)
    return Part(path, seal.hex(), int(attrs["classes"]), int(attrs["dimension"]))


def load(part: Part, key: bytes, mean: np.ndarray | None, radius: float) -> Data:
    """The features themselves: the first private read of a job, so it comes after COMMIT."""
    opened = cache.open_cache(part.path, key)
    if opened.digest != part.seal:
        raise Refused(f"{part.path} changed while the job started. Run it again.")
    features = opened.features if mean is None else apply_mean(opened.features, mean, radius)
    return Data(features, opened.labels, opened.units)


def constants_of(task: Task, part: Part) -> Constants:
    cfg = task.cfg
    return Constants(
        n0=cfg["dataset.nominal_size"],
        classes=part.classes,
        dimension=part.dimension,
        relation=cfg["privacy.relation"],
        delta=cfg["privacy.delta"],
        cap=cfg["dataset.unit"]["cap"],
        seed=cfg["sweep.search"]["seed"] if "sweep.search" in cfg else 0,
    )


def release_once(
    task: Task,
    held: Reserved,
    spends: list[Spend],
    draws: Iterable[Draw],
    inputs: Mapping[str, Any],
    produce: Callable[[Meter, Path], None],
    outputs: Iterable[str],
) -> Outcome:
    """Answer this job's query once, ever. The query is every input: constants, seals of private bytes, code."""
    research = task.cfg["mode"] == "research"
    return release(
        held.ledger,
        held.job,
        task.cfg["static"],
        query_digest(job=repr(held.job), code=task.code, **inputs),
        spends,
        tuple(draws),
        produce,
        {task.output[name].name: task.output[name] for name in outputs},
        seed=task.cfg["research"]["seed"] if research else None,
    )
