"""Which record is which: the private manifest of the lineage's current version."""

from __future__ import annotations

import json

from dpladder.config.model import Dataset
from dpladder.data.prepare import Keys, prepare, read_manifest
from dpladder.job import Task
from dpladder.privacy.home import Home, subkey
from dpladder.privacy.units import register_units
from dpladder.rules import places
from dpladder.rules.record import write_record


def prepare_dataset(task: Task) -> None:
    home = places.head_home(task)
    keys = keys_of(home)
    manifest = places.manifest(task, "train")
    prepare(dataset_of(task), keys, manifest, places.diagnostics(task, "prepare_dataset"))
    made = read_manifest(manifest, keys.cache)
    # Contents beside units: the same data under other ids, or with another unit, is found as well.
    known = {row.tobytes() for ids in (made.units, made.contents) for row in ids}
    register_units(home, task.cfg["dataset.lineage"], known)
    write_record(task, free="the manifest stays in the private folder; nothing about a record leaves it")


def keys_of(home: Home) -> Keys:
    return Keys(*(subkey(home, purpose) for purpose in ("units", "split", "commitment", "cache")))


def dataset_of(task: Task) -> Dataset:
    """The dataset section from the keys that this rule reads. Its nominal size plays no part in a manifest."""
    values = {
        key.removeprefix("dataset."): value for key, value in task.cfg.items() if key.startswith("dataset.")
    }
    return Dataset.model_validate_json(
        json.dumps({"nominal_size": 1, "source": task.cfg["source"], **values})
    )
