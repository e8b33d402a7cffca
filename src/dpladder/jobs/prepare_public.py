"""The manifest of a source that is declared public, to evaluate or to score trials on for free."""

from __future__ import annotations

from dpladder.data.prepare import PUBLIC_PARTS, prepare, read_manifest
from dpladder.jobs import places
from dpladder.jobs.checking import stop_if_few_usable
from dpladder.jobs.prepare_dataset import cutter_of, keys_of
from dpladder.jobs.record import write_record
from dpladder.jobs.task import Task
from dpladder.plan.reads import PreparePublic


def prepare_public(task: Task[PreparePublic]) -> None:
    """Write the manifest of a source that is declared public, all of it in one part. What its
    records look like may stop the run.

    Its records are in no split. A further test with classes of its own has them matched to the
    model's (`reads.matched`).

    Raises:
        Refused: too few of its records can be used. Nothing was spent.
    """
    source_name, keys = task.wildcards["part"], keys_of(places.job_home())
    part = places.manifest_part(source_name)
    # Reads the named source as the public one of that part, whatever the rule's config calls it.
    dataset = task.reads.dataset.model_copy(update={f"public_{part}": task.reads.source})
    diagnostics = places.diagnostics(task, f"prepare_public-{source_name}")
    manifest = places.manifest(task, source_name)
    prepared = prepare(
        dataset, keys, manifest, diagnostics, part, task.reads.matched, cutter_of(task)
    )
    public = read_manifest(manifest, keys.cache)
    if (
        part not in PUBLIC_PARTS
    ):  # a public head alone reads labels of those, and says what it lacks
        stop_if_few_usable(task, public.units, public.labels, prepared.units, public.attrs)
    write_record(task, free="declared public in the config")
