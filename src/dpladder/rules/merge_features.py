"""One cache per part, from its shards."""

from __future__ import annotations

from pathlib import Path

from dpladder.data.cache import merge
from dpladder.job import Task
from dpladder.privacy.home import subkey
from dpladder.rules import places
from dpladder.rules.record import write_record


def merge_features(task: Task) -> None:
    part = task.wildcards["part"]
    shards = [places.features(task, part, Path(record).parent.name) for record in task.input["shards"]]
    merge(shards, places.cache_root(task), places.features(task, part), subkey(places.job_home(), "cache"))
    write_record(task, free="rows are put together, none is changed; they stay in the private folder")
