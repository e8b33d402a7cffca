"""Where the private files of a job lie, under the folders that its params name."""

from __future__ import annotations

from pathlib import Path

from dpladder.job import Task


def manifest(task: Task, part: str) -> Path:
    """The manifest behind a part: a source declared public has its own."""
    own = task.cfg["public_parts"]
    return Path(task.cfg["places"]["data"]) / (f"manifest-{part}.h5" if part in own else "manifest.h5")


def features(task: Task, name: str) -> Path:
    return Path(task.cfg["places"]["features"]) / f"{name}.h5"


def diagnostics(task: Task, name: str) -> Path:
    return Path(task.cfg["places"]["diagnostics"]) / f"{name}.jsonl"


def cache_root(task: Task) -> Path:
    return Path(task.cfg["places"]["cache"])
