"""Features of one shard of one part."""

from __future__ import annotations

from dpladder.data.extract import extract
from dpladder.jobs import places
from dpladder.jobs.record import write_record
from dpladder.jobs.task import Task
from dpladder.plan.reads import ExtractFeatures
from dpladder.privacy.ledger.home import subkey


def extract_features(task: Task[ExtractFeatures]) -> None:
    """Put a shard's records through the public network, into a cache of the private folder. Free:
    each row follows from its own record alone. A shard that was cut off goes on where it
    stopped.

    What is found in the cache root is not computed again, whichever experiment put it there. A
    record that cannot be encoded gets a row all the same, which counts as nothing (contract:
    unbreakable).
    """
    part = task.wildcards["part"]
    shard, shards = int(task.wildcards["shard"]), int(task.wildcards["shards"])
    name = f"{shard}-of-{shards}"
    home = places.job_home()
    extract(
        places.manifest(task, part),
        task.reads.features,
        places.manifest_part(part),
        places.features(task, part, name),
        places.diagnostics(task, f"extract_features-{part}.{name}"),
        root=places.cache_root(task),
        units_key=subkey(home, "units"),
        cache_key=subkey(home, "cache"),
        shard=shard,
        shards=shards,
        threads=task.resources.threads,
        views=task.reads.views,
        corruption=task.reads.corruption,
    )
    write_record(
        task, free="a public map of each record by itself; the rows stay in the private folder"
    )
