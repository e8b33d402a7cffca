"""Features of one shard of one part."""

from __future__ import annotations

import json
from typing import cast

from dpladder.config.model import Features
from dpladder.data.extract import extract
from dpladder.data.prepare import Part
from dpladder.job import Task
from dpladder.privacy.home import subkey
from dpladder.rules import places
from dpladder.rules.record import write_record


def extract_features(task: Task) -> None:
    part = cast(Part, task.wildcards["part"])
    shard, shards = int(task.wildcards["shard"]), int(task.wildcards["shards"])
    name = f"{shard}-of-{shards}"
    home = places.job_home()
    extract(
        places.manifest(task, part),
        features_of(task),
        part,
        places.features(task, part, name),
        places.diagnostics(task, f"extract_features-{part}.{name}"),
        root=places.cache_root(task),
        units_key=subkey(home, "units"),
        cache_key=subkey(home, "cache"),
        shard=shard,
        shards=shards,
        threads=task.resources.threads,
    )
    write_record(task, free="a public map of each record by itself; the rows stay in the private folder")


def features_of(task: Task) -> Features:
    values = {key.removeprefix("features."): task.cfg[key] for key in task.cfg if key.startswith("features.")}
    return Features.model_validate_json(json.dumps(values))
