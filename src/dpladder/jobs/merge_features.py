"""One cache per part, from its shards."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dpladder.data.cache import merge
from dpladder.data.census import count_units
from dpladder.data.prepare import PUBLIC_PARTS
from dpladder.jobs import places
from dpladder.jobs.checking import stop_if_few_usable
from dpladder.jobs.record import write_record
from dpladder.jobs.task import Task
from dpladder.plan.reads import MergeFeatures
from dpladder.privacy.ledger.home import subkey


def merge_features(task: Task[MergeFeatures]) -> None:
    """Put the shards of a part together, row by row and unchanged. Of a public part it stops the
    run where too few records can be used; of a private one it says nothing of that.

    Raises:
        Refused: a public part has too few usable records.
        BadInput: a shard is missing, or is of other data.
    """
    part = task.wildcards["part"]
    shards = [
        places.features(task, part, Path(record).parent.name) for record in task.input["shards"]
    ]
    output, key = places.features(task, part), subkey(places.job_home(), "cache")
    merged = merge(shards, places.cache_root(task), output, key)
    # Of a private part even the number of usable rows is private, so nothing is counted here.
    if part in task.reads.public_parts and part not in PUBLIC_PARTS:
        units, labels = (
            np.concatenate([getattr(one, name) for one in merged]) for name in ("units", "labels")
        )
        stop_if_few_usable(task, units, labels, count_units(units), merged[0].attrs)
    write_record(
        task, free="rows are put together, none is changed; they stay in the private folder"
    )
