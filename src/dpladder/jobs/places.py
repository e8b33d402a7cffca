"""Where the private files of a job lie: home, and the folders that its params name."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from dpladder.config.shift import ALSO
from dpladder.data.prepare import Part
from dpladder.errors import Refused
from dpladder.jobs.task import Task
from dpladder.plan.outer import module_advice
from dpladder.plan.rule_params import (
    ExtractFeatures,
    FindMean,
    MergeFeatures,
    PrepareDataset,
    Private,
    ReleaseReads,
)
from dpladder.privacy.ledger.book import Ledger
from dpladder.privacy.ledger.home import Home, open_home

WithFeatures = ReleaseReads | FindMean | ExtractFeatures | MergeFeatures


def job_home() -> Home:
    """The home where reservations lie. A job never makes one: a node without it has the wrong
    mount."""
    return open_home(create=False)


def head_home(task: Task[PrepareDataset]) -> Home:
    """Home, surely the head node's: there the workflow opened the lineage before it started any
    job."""
    home = job_home()
    if not Ledger(home, task.reads.lineage).folder.is_dir():
        raise Refused(
            f"home {home.path} knows nothing of lineage {task.reads.lineage}. On a cluster, check "
            f"that DPLADDER_HOME is mounted on this node and is the head node's.{module_advice()} "
            "Nothing was read."
        )
    return home


def manifest(task: Task[PrepareDataset | ExtractFeatures], part: str) -> Path:
    """The manifest behind a part: a source declared public has its own."""
    return Path(task.reads.places.manifests[part]) / "manifest.h5"


def manifest_part(part: str) -> Part:
    """The part that records lie in, in their manifest: a further test's are those of a test."""
    return "test" if part.startswith(ALSO) else cast(Part, part)


def features(task: Task[WithFeatures], part: str, shard: str | None = None) -> Path:
    """The features of a part, or of one shard of it.

    Args:
        task: whose params say where private files lie.
        part: its name; every further test has its own.
        shard: `0-of-4`; None is the whole part.
    """
    return (
        Path(task.reads.places.features[part])
        / f"{part if shard is None else f'{part}.{shard}'}.h5"
    )


def diagnostics(task: Task[Private], name: str) -> Path:
    return Path(task.reads.places.diagnostics) / f"{name}.jsonl"


def census(task: Task[Private]) -> Path:
    return Path(task.reads.places.diagnostics) / "check.txt"


def cache_root(task: Task[ExtractFeatures | MergeFeatures]) -> Path:
    return Path(task.reads.places.cache)
