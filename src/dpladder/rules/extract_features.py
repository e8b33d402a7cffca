"""Features of one shard of one part."""

from __future__ import annotations

from typing import cast

from dpladder.data.extract import extract
from dpladder.data.prepare import Part
from dpladder.job import Task
from dpladder.rules import places
from dpladder.rules.private import features_of, job_home, keys_of
from dpladder.rules.record import write_record


def extract_features(task: Task) -> None:
    part = cast(Part, task.wildcards["part"])
    shard, shards = int(task.wildcards["shard"]), int(task.wildcards["shards"])
    name = f"{shard}-of-{shards}"
    keys = keys_of(job_home())
    extract(
        places.manifest(task, part),
        features_of(task),
        part,
        places.features(task, part, name),
        places.diagnostics(task, f"extract_features-{part}.{name}"),
        root=places.cache_root(task),
        units_key=keys.units,
        cache_key=keys.cache,
        shard=shard,
        shards=shards,
        threads=task.resources.threads,
    )
    write_record(task, free="a public map of each record by itself; the rows stay in the private folder")
