"""The feature caches that a job reads, and what is public of them. How trainings see them stands in
seen.py.

A cache says of itself which network made it, how wide its rows are and which units it holds. That
is read before COMMIT, and queries name the public map of it alone. Rows are used after COMMIT
(contract: write-ahead, per-record).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from dpladder.data import sealed
from dpladder.data.cache import map_of_cache, name_of, open_cache
from dpladder.data.depths import Known, stored_depths
from dpladder.errors import Refused
from dpladder.jobs import places
from dpladder.jobs.places import job_home
from dpladder.jobs.task import Task
from dpladder.learn.data import Data
from dpladder.learn.interface import Constants
from dpladder.plan.reads import ReleaseReads, TrainingReads
from dpladder.privacy.accounting.events import partition_version
from dpladder.privacy.ids import contains
from dpladder.privacy.ledger import book as ledgers
from dpladder.privacy.ledger.book import Ledger
from dpladder.privacy.ledger.home import Home, create_once, make_folder, subkey
from dpladder.privacy.ledger.journal import unwritable_error
from dpladder.privacy.ledger.units import units_of
from dpladder.privacy.release.store import query_digest
from dpladder.public_files import file_digest


@dataclass(frozen=True)
class Part:
    """A part's feature cache, by what may be known of it before COMMIT.

    Attributes:
        path: of the cache.
        seal: names its exact bytes, without a private read.
        name: of its data and of the map to its features.
        map_name: of this public map alone, whatever build or device made them. Queries name it.
        classes: number of classes.
        dimension: of its rows as they are stored.
        depths: what the rows hold of a network.
        lineage, version: of private records; empty of public ones.
        units: a digest of all units of private records; empty of public ones.
        attrs: all that the cache says of itself, which the seal covers.
    """

    path: Path
    seal: str
    name: str
    map_name: str
    classes: int
    dimension: int
    depths: Known = ()
    lineage: str = ""
    version: str = ""
    units: str = ""
    attrs: sealed.Attrs = field(default_factory=dict, repr=False, compare=False)


def part_of(task: Task[places.WithFeatures], part: str) -> Part:
    """The cache of a part that a job reads. Its attributes are read, and no record.

    Args:
        task: whose params say where the cache lies.
        part: its name, such as `train`, `test` or a further test's.

    Raises:
        Refused: the file is not there. Nothing was spent.
    """
    path = places.features(task, part)
    if not path.is_file():
        raise Refused(
            f"the features in {path} are gone. `dpladder run --forcerun prepare_dataset "
            "prepare_public` makes them again; what was released from them is restored, free."
        )
    attrs, seal = sealed.read_attrs(path)
    reads, private = task.reads, ("", "", "")
    # In research nothing is private, and a public part has no version whose units are remembered.
    if (
        isinstance(reads, ReleaseReads)
        and reads.mode == "release"
        and part not in reads.public_parts
    ):
        private = (reads.lineage, partition_version(reads.version), str(attrs["units"]))
    return Part(
        path,
        seal.hex(),
        name_of(attrs, subkey(job_home(), "cache")),
        map_of_cache(attrs),
        int(attrs["classes"]),
        int(attrs["width"]),
        stored_depths(attrs),
        *private,
        attrs,
    )


def save_found(task: Task[places.WithFeatures], name: str, arrays: Mapping[str, Any]) -> None:
    """Write what was found of a public sample, as it was found first. Another device or build may
    round it otherwise, and questions name it by its bytes.

    Args:
        task: the job, by whose inputs it is known again.
        name: of the output.
        arrays: what was found now; it is kept where nothing was found before.

    Callers pass what they computed on public records alone; this function does not check that.
    """
    mean = task.input.get("mean")
    under = query_digest(
        job=task.rule,
        cfg=task.public_cfg,
        sources=[part_of(task, part).name for part in task.reads.places.features],
        mean=file_digest(Path(mean)) if mean else "",
    )
    first = first_found_value(job_home(), under, save(dict(arrays)))
    task.output[name].write_bytes(first)


def first_found_value(home: Home, name: str, value: bytes) -> bytes:
    """What was found of a public sample the first time, whatever is found now: home keeps it.

    Args:
        home: where it is kept.
        name: a digest of all that it is found from.
        value: what was found now; kept where nothing was found before.
    """
    path = home.features / name
    if not path.exists():
        try:
            make_folder(path.parent)
            create_once(path, value)
        except OSError as error:
            raise unwritable_error(path.parent, error) from None
    return path.read_bytes()


def read_raw(part: Part) -> Data:
    """A part's records. Of private ones those alone count whose units were there when this version
    of the data was first asked. So none lies in another part than it did (data/prepare.py).

    Returns:
        All rows of the cache, in its order. A record that does not count has label -1; none is
        taken out, so that shapes tell nothing.
    """
    data = open_part(part)
    if not part.units:
        return data
    first = ledgers.load(Ledger(job_home(), part.lineage)).first_units.get(part.version)
    return data if first in (None, part.units) else _restrict_to_version(part, first)


@cache
def open_part(part: Part) -> Data:
    """The features themselves, mapped and every byte of them vouched for: before COMMIT, so that a
    file that is damaged, or another home's, costs nothing. What a row says is used after COMMIT
    alone.

    Raises:
        Refused: the cache changed after its attributes were read. Nothing was spent.
    """
    opened = open_cache(part.path, subkey(job_home(), "cache"))
    if opened.digest != part.seal:
        raise Refused(f"{part.path} changed while the job started. Run it again.")
    return Data(opened.features, opened.labels, opened.units, groups=opened.groups)


@cache
def _restrict_to_version(part: Part, first: str) -> Data:
    """The records with label -1, which counts as nothing, where a unit came later."""
    data = open_part(part)
    assert data.units is not None, "every cache has them"
    known = units_of(job_home(), part.lineage, first)
    there = contains(known, data.units)
    return replace(data, labels=np.where(there, data.labels, -1))


def stored_constants(task: Task[ReleaseReads], part: Part) -> Constants:
    """The public facts of a training on records as they are stored. `seen_part` replaces what the
    map to features changes: dimension, length and network."""
    return Constants(
        n0=task.reads.nominal_size,
        classes=part.classes,
        dimension=part.dimension,
        relation=task.reads.relation,
        delta=task.reads.delta,
        cap=task.reads.unit.cap,
        labels=task.reads.labels,
        seed=task.reads.search.seed if isinstance(task.reads, TrainingReads) else 0,
    )
