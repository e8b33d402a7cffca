"""Which record is which: the private manifest of the lineage's data."""

from __future__ import annotations

from dpladder.data.census import census, report
from dpladder.data.files import write_private
from dpladder.data.prepare import Keys, prepare, read_manifest
from dpladder.data.spans import Cutter, cutter
from dpladder.data.stops import refuse_too_few_different_rows
from dpladder.jobs import places
from dpladder.jobs.checking import stop_if_few_usable
from dpladder.jobs.record import write_record
from dpladder.jobs.task import Task
from dpladder.plan.reads import PrepareDataset
from dpladder.privacy.ledger.home import Home, subkey
from dpladder.privacy.ledger.units import Known, remember_units
from dpladder.privacy.piles import large_id_set, pieces_of


def prepare_dataset(task: Task[PrepareDataset]) -> None:
    """Write the private manifest: which record is in which part, by its unit's keyed id.

    Which units there are is remembered in home at the first time of each version of the data, so
    that nobody moves later. In research too few usable records stop the run here; of private data
    the noised counts decide that (jobs/count_units.py).

    Raises:
        Refused: home does not know the lineage; or in research too few records can be used.
        BadInput: the source cannot be read as the config says, or its rows cannot all differ.
    """
    home = places.head_home(task)
    keys = keys_of(home)
    manifest = places.manifest(task, "train")
    diagnostics = places.diagnostics(task, "prepare_dataset")
    prepared = prepare(task.reads.dataset, keys, manifest, diagnostics, cutting=cutter_of(task))
    refuse_too_few_different_rows(prepared, task.reads.different_rows)
    manifest_written = read_manifest(manifest, keys.cache)
    write_private(places.census(task), report(census(prepared)).encode())
    # A stop that counts private records would be a release, so private data pass here unjudged.
    if task.reads.mode == "research":  # declared public: it has no budget to begin anew
        stop_if_few_usable(
            task,
            manifest_written.units,
            manifest_written.labels,
            prepared.units,
            manifest_written.attrs,
        )
    else:
        counts = manifest_written.labels >= 0
        contents = pieces_of(manifest_written.contents, counts)
        known = Known(
            prepared.everybody,
            prepared.numbered,
            large_id_set(contents, len(counts), manifest.parent),
        )
        remember_units(home, task.reads.lineage, manifest_written.everybody, known)
    write_record(
        task, free="the manifest stays in the private folder; nothing about a record leaves it"
    )


def keys_of(home: Home) -> Keys:
    """The keys behind splits, units, digests and caches. Without home nobody can compute them."""
    return Keys(*(subkey(home, purpose) for purpose in ("units", "commitment", "cache")))


def cutter_of(task: Task[PrepareDataset]) -> Cutter | None:
    """How documents are cut into spans; None where records are whole."""
    return None if task.reads.spans is None else cutter(task.reads.spans)
