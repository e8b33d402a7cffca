"""Where the private files of a job lie: home, and the folders that its params name."""

from __future__ import annotations

from pathlib import Path

from dpladder.job import Task
from dpladder.privacy.home import Home, open_home


def job_home() -> Home:
    """The home where reservations lie. A job never makes one: a node without it has the wrong mount."""
    return open_home(create=False)


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
