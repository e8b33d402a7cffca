"""The manifest of a source that is declared public, to evaluate or to score trials on for free."""

from __future__ import annotations

from typing import cast

from dpladder.data.prepare import Part, prepare
from dpladder.job import Task
from dpladder.rules import places
from dpladder.rules.prepare_dataset import dataset_of, keys_of
from dpladder.rules.record import write_record


def prepare_public(task: Task) -> None:
    part = cast(Part, task.wildcards["part"])
    dataset = dataset_of(task).model_copy(update={f"public_{part}": task.cfg["source"]})
    diagnostics = places.diagnostics(task, f"prepare_public-{part}")
    prepare(dataset, keys_of(places.job_home()), places.manifest(task, part), diagnostics, public=part)
    write_record(task, free="declared public in the config")
