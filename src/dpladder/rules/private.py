"""What the rules that train and count share: reservations, caches, and the one way to release."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from dpladder import stages
from dpladder.data import cache, sealed
from dpladder.data.mean import apply_mean
from dpladder.errors import Refused
from dpladder.job import Task
from dpladder.learn.interface import Constants, Data
from dpladder.privacy import ledger as ledgers
from dpladder.privacy.home import subkey
from dpladder.privacy.ledger import Ledger
from dpladder.privacy.meter import Draw, Meter
from dpladder.privacy.spend import Counted, Job, Spend, mu
from dpladder.privacy.store import Outcome, query_digest, release
from dpladder.rules import places
from dpladder.rules.places import job_home
from dpladder.rules.record import write_record


@dataclass(frozen=True)
class Reserved:
    """A private job as the ledger knows it: what it may spend, by what the spend buys."""

    ledger: Ledger
    job: Job
    spends: Mapping[str, Spend]

    def mu(self, label: str) -> float:
        spend = self.spends[label]
        cost = mu(spend.event, spend.count)
        assert cost is not None, "plans reserve Gaussian budgets"
        return cost

    def concrete(self, label: str, events: Iterable[Counted]) -> list[Spend]:
        """The events that a mechanism really makes, in place of the declared one."""
        return [replace(self.spends[label], event=event.event, count=event.count) for event in events]


@dataclass(frozen=True)
class Part:
    """A part's feature cache, known by its seal, which names its exact bytes without a private read."""

    path: Path
    seal: str
    classes: int
    dimension: int


def reserved(task: Task) -> Reserved:
    """What the head node reserved for this job. Jobs look in the ledger, never in a file."""
    ledger = Ledger(job_home(), task.cfg["dataset.lineage"])
    job = stages.job(task.experiment, task.rule, task.wildcards)
    held = [h for h in ledgers.load(ledger).of(job) if h.static == task.cfg["static"]]
    if not held:
        raise Refused(
            f"{ledgers.name(job)} finds no reservation in {ledger.folder}. On a cluster, check that DPLADDER_HOME is "
            "mounted on this node and is the head node's; otherwise start the workflow again, it reserves first."
        )
    return Reserved(ledger, job, {spend.label: spend for spend in held[-1].declared})


def part_of(task: Task, part: str) -> Part:
    path = places.features(task, part)
    if not path.is_file():
        raise Refused(
            f"the features in {path} are gone. `snakemake --forcerun prepare_dataset prepare_public` makes them again; "
            "what was released from them is restored, free."
        )
    attrs, seal = sealed.read_attrs(path)
    return Part(path, seal.hex(), int(attrs["classes"]), int(attrs["width"]))


def read(task: Task, part: Part) -> Data:
    """The features as a training sees them: with the released mean taken away, and the released covariance or statistics
    beside them, where there are any."""
    data = read_raw(part)
    if task.input["mean"]:
        mean = load_file(task.input["mean"])["mean"]
        data = replace(data, features=apply_mean(data.features, mean, task.cfg["features.mean"]["radius"]))
    if task.input.get("covariance"):
        data = replace(data, covariance=load_file(task.input["covariance"])["covariance"])
    if task.input.get("statistics"):
        data = replace(data, statistics=Path(task.input["statistics"]))
    return data


def read_nothing(task: Task, part: Part) -> Data:
    """What a training sees that stands on released statistics alone."""
    features = np.empty((0, part.dimension), np.float32)
    return Data(features, np.empty(0, np.int64), statistics=Path(task.input["statistics"]))


def shared(task: Task) -> dict[str, str]:
    """The releases that `read` uses, by their bytes."""
    return {name: file_digest(task.input.get(name, [])) for name in ("mean", "covariance", "statistics")}


def read_raw(part: Part) -> Data:
    """The features themselves: a job's first private read, so it comes after COMMIT."""
    opened = cache.open_cache(part.path, subkey(job_home(), "cache"))
    if opened.digest != part.seal:
        raise Refused(f"{part.path} changed while the job started. Run it again.")
    return Data(opened.features, opened.labels, opened.units)


def constants_of(task: Task, part: Part) -> Constants:
    return Constants(
        n0=task.cfg["dataset.nominal_size"],
        classes=part.classes,
        dimension=part.dimension,
        relation=task.cfg["privacy.relation"],
        delta=task.cfg["privacy.delta"],
        cap=task.cfg["dataset.unit"]["cap"],
        seed=task.cfg["sweep.search"]["seed"] if "sweep.search" in task.cfg else 0,
    )


def file_digest(path: str | list[str]) -> str:
    """A released input by its bytes; empty where the rule has none."""
    if not isinstance(path, str):
        return ""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def release_once(
    task: Task,
    held: Reserved,
    spends: list[Spend],
    draws: Iterable[Draw],
    inputs: Mapping[str, Any],
    outputs: Iterable[str],
    produce: Callable[[Meter, Path], None],
) -> Outcome:
    """Answer this job's query once, ever, and record what it cost.

    The query is every input: seals of private bytes, upstream releases, every constant, the code, the job itself.
    """
    cfg = {key: value for key, value in task.cfg.items() if key not in ("places", "static")}
    outcome = release(
        held.ledger,
        held.job,
        task.cfg["static"],
        query_digest(job=repr(held.job), code=task.code, cfg=cfg, spends=repr(spends), **inputs),
        spends,
        tuple(draws),
        produce,
        {task.output[name].name: task.output[name] for name in outputs},
        seed=task.cfg["research"]["seed"] if task.cfg["mode"] == "research" else None,
    )
    write_record(task, outcome.spends)
    return outcome
