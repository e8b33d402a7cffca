"""Where the private files of a job lie: home, and the folders that its params name."""

from __future__ import annotations

from pathlib import Path

from dpladder.errors import Refused
from dpladder.job import Task
from dpladder.privacy.home import Home, open_home
from dpladder.privacy.ledger import Ledger


def job_home() -> Home:
    """The home where reservations lie. A job never makes one: a node without it has the wrong mount."""
    return open_home(create=False)


def head_home(task: Task) -> Home:
    """Home, surely the head node's: there the workflow opened the lineage before it started any job."""
    home = job_home()
    if not Ledger(home, task.cfg["dataset.lineage"]).folder.is_dir():
        raise Refused(
            f"home {home.path} knows nothing of lineage {task.cfg['dataset.lineage']}. On a cluster, check that "
            "DPLADDER_HOME is mounted on this node and is the head node's. Nothing was read."
        )
    return home


def manifest(task: Task, part: str) -> Path:
    """The manifest behind a part: a source declared public has its own."""
    return Path(task.cfg["places"]["manifests"][part]) / "manifest.h5"


def features(task: Task, part: str, shard: str | None = None) -> Path:
    """The features of a part, or of one shard of it."""
    return Path(task.cfg["places"]["features"][part]) / f"{part if shard is None else f'{part}.{shard}'}.h5"


def diagnostics(task: Task, name: str) -> Path:
    return Path(task.cfg["places"]["diagnostics"]) / f"{name}.jsonl"


def cache_root(task: Task) -> Path:
    return Path(task.cfg["places"]["cache"])
