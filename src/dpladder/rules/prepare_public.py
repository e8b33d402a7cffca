"""The manifest of a source that is declared public, to evaluate or to score trials on for free."""

from __future__ import annotations

from typing import cast

from dpladder.data.prepare import Manifest, Part, prepare, read_manifest
from dpladder.errors import Refused
from dpladder.job import Task
from dpladder.rules import places
from dpladder.rules.prepare_dataset import dataset_of, keys_of
from dpladder.rules.record import write_record

CHANCE_COPIES = (
    0.01  # share of a public source that may by chance also be private; more is the private data itself
)


def prepare_public(task: Task) -> None:
    part, keys = cast(Part, task.wildcards["part"]), keys_of(places.job_home())
    dataset = dataset_of(task).model_copy(update={f"public_{part}": task.cfg["source"]})
    diagnostics = places.diagnostics(task, f"prepare_public-{part}")
    manifest = places.manifest(task, part)
    prepare(dataset, keys, manifest, diagnostics, public=part)
    public = read_manifest(manifest, keys.cache)
    if _shared(public, read_manifest(places.manifest(task, "train"), keys.cache)) > CHANCE_COPIES:
        raise Refused(
            f"dataset.public_{part} holds the private data itself. A public source is another one, open to everybody; to "
            "hold out some of the private data, use dataset.split."
        )
    write_record(task, free="declared public in the config")


def _shared(public: Manifest, private: Manifest) -> float:
    """Share of the public records whose content is that of a private one."""
    known = {row.tobytes() for row in private.contents}
    return sum(row.tobytes() in known for row in public.contents) / max(len(public.contents), 1)
