"""The manifest of a source that is declared public, to evaluate or to score trials on for free."""

from __future__ import annotations

from dpladder.config.shift import ALSO
from dpladder.data.prepare import FEW, prepare, read_manifest
from dpladder.errors import Refused
from dpladder.jobs import places
from dpladder.jobs.checking import stop_if_few_usable
from dpladder.jobs.prepare_dataset import cutter_of, keys_of, rows
from dpladder.jobs.record import write_record
from dpladder.jobs.task import Task
from dpladder.plan.reads import PreparePublic
from dpladder.privacy.ledger.units import same_data


def prepare_public(task: Task[PreparePublic]) -> None:
    named, keys = task.wildcards["part"], keys_of(places.job_home())
    part = places.part_in(named)
    dataset = task.reads.dataset.model_copy(update={f"public_{part}": task.reads.source})
    diagnostics = places.diagnostics(task, f"prepare_public-{named}")
    manifest = places.manifest(task, named)
    found = prepare(dataset, keys, manifest, diagnostics, part, task.reads.matched, cutter_of(task))
    public = read_manifest(manifest, keys.cache)
    if part not in FEW:  # a public head alone reads labels of those, and says what it lacks
        stop_if_few_usable(task, public.units, public.labels, len(found.units), public.attrs)
    private = read_manifest(places.manifest(task, "train"), keys.cache)
    if same_data(rows(public.contents), rows(private.contents)):
        what = f"public_{part}" if task.reads.matched is None else f"{named.removeprefix(ALSO)}"
        key = "dataset" if task.reads.matched is None else "evaluate.also"
        raise Refused(
            f"{key}.{what} holds the private data itself. A public source is another one, open to "
            "everybody; to hold out some of the private data, use dataset.split."
        )
    write_record(task, free="declared public in the config")
