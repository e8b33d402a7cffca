"""Where the private files of a job lie: home, and the folders that its params name.

Paths follow from public config alone, so a path in a log tells nothing (contract: no-tell).
"""

from __future__ import annotations

from pathlib import Path
from typing import cast

from dpladder.config.records import ALSO
from dpladder.data.prepare import Part
from dpladder.errors import Refused
from dpladder.jobs.task import Task
from dpladder.plan.outer import module_advice
from dpladder.plan.reads import (
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
    mount.

    A home that is not there counts as empty here. `head_home` and `find_reservation` then refuse
    the job.
    """
    return open_home(create=False)


def head_home(task: Task[PrepareDataset]) -> Home:
    """Home, surely the head node's: there the workflow opened the lineage before it started any
    job.

    Raises:
        Refused: the lineage was never opened in this home. Nothing was read.
    """
    home = job_home()
    if not Ledger(home, task.reads.lineage).folder.is_dir():
        raise Refused(
            f"home {home.path} knows nothing of lineage {task.reads.lineage}. On a cluster, check "
            f"that DPLADDER_HOME is mounted on this node and is the head node's.{module_advice()} "
            "Nothing was read."
        )
    return home


def manifest(task: Task[PrepareDataset | ExtractFeatures], part: str) -> Path:
    """The manifest behind a part: a source declared public has its own.

    Every part of the private source shares one manifest, which says which record lies in which
    part.
    """
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
    """Details of what a job met, such as records that cannot be read: private, for the operator's
    eyes."""
    return Path(task.reads.places.diagnostics) / f"{name}.jsonl"


def census(task: Task[Private]) -> Path:
    """Counts of the source, as `dpladder check` prints them: private, for the operator's eyes."""
    return Path(task.reads.places.diagnostics) / "check.txt"


def cache_root(task: Task[ExtractFeatures | MergeFeatures]) -> Path:
    """The root of caches of single records, which several experiments and lineages may share."""
    return Path(task.reads.places.cache)
