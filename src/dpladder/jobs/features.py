"""The features that a job reads, the map to what a training sees, and their public facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save

from dpladder.config.features_sections import Features, Layers
from dpladder.data import sealed
from dpladder.data.cache import map_of_cache, name_of, open_cache, public_network_of
from dpladder.data.centre import Map, Mapped, ball, shrink_mean
from dpladder.data.depths import (
    Depths,
    Known,
    depths_by_name,
    depths_for,
    joined_depths,
    stored_depths,
)
from dpladder.errors import Refused
from dpladder.jobs import places
from dpladder.jobs.places import job_home
from dpladder.jobs.reservation import RELEASES
from dpladder.jobs.task import Task
from dpladder.learn.data import Data
from dpladder.learn.interface import Claim, Constants
from dpladder.learn.shared_sums import ReleasedSums
from dpladder.network.facts import Network
from dpladder.plan.rule_params import (
    FindMean,
    ReleaseReads,
    SeenReads,
    StoredReads,
    TrainingReads,
)
from dpladder.privacy.accounting.events import partition_version
from dpladder.privacy.ledger import book as ledgers
from dpladder.privacy.ledger.book import Ledger
from dpladder.privacy.ledger.features import first_found_value
from dpladder.privacy.ledger.home import subkey
from dpladder.privacy.ledger.units import units_of
from dpladder.privacy.release.store import query_digest
from dpladder.privacy.statement.records import file_digest

SAMPLE = "sample"  # the part that holds public records

LAYERS = "layers"  # beside a public sample's mean: the depths that it chose


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


def part_of(task: Task[places.WithFeatures], part: str) -> Part:
    """The cache of a part that a job reads. Its attributes are read, and no record."""
    path = places.features(task, part)
    if not path.is_file():
        raise Refused(
            f"the features in {path} are gone. `dpladder run --forcerun prepare_dataset "
            "prepare_public` makes them again; what was released from them is restored, free."
        )
    attrs, seal = sealed.read_attrs(path)
    reads, private = task.reads, ("", "", "")
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
    )


def read(task: Task[SeenReads], part: Part) -> Data:
    """The features as a training sees them: less a public or released mean, at the public length;
    beside them the sums that trainings share, the public head to start from and the public records
    that guide steps, where there are any."""
    data = _mapped(task, part)
    if SAMPLE in task.reads.places.features:
        data = replace(data, sample=_mapped(task, part_of(task, SAMPLE)))
    if task.input.get("sums"):
        data = replace(data, shared=ReleasedSums(Path(task.input["sums"])))
    if task.input.get("start"):
        start = load_file(task.input["start"])
        claim = Claim(*map(float, start["claim"])) if "claim" in start else None
        worth = float(start["worth"][0]) if "worth" in start else None
        data = replace(data, start=start["head"], claim=claim, worth=worth)
    return data


def _mapped(task: Task[SeenReads], part: Part) -> Data:
    data = read_raw(part)
    return replace(data, features=Mapped(data.features, map_of(task, part)))


def depths_of_mean(task: Task[StoredReads | FindMean], part: Part) -> Depths | None:
    """The depths that a mean is of: those of all candidates, where there are some."""
    several = [_depths_for(task, part, layers) for layers in task.reads.tried]
    present = [depths for depths in several if depths is not None]
    return joined_depths(present) if present else depths_of(task, part)


def depths_of(task: Task[StoredReads | FindMean], part: Part) -> Depths | None:
    """The depths that are taken, of those that a part's features hold: those that a public sample
    chose, where one did."""
    mean = task.input.get("mean")
    if mean and LAYERS in (arrays := load_file(mean)):
        names = [part.depths[place][0] for place in arrays[LAYERS]]
        return depths_by_name(names, part.depths, _length_of(task.reads))
    return _depths_for(task, part, task.reads.layers)


def _depths_for(task: Task[StoredReads | FindMean], part: Part, layers: Layers) -> Depths | None:
    reads = task.reads
    takes = Features(model=reads.model).takes
    return depths_for(layers, part.depths, _length_of(reads), takes, reads.model)


def _length_of(reads: StoredReads | FindMean) -> float:
    return reads.typical if reads.length == "as_is" else reads.length


def map_of(task: Task[SeenReads], part: Part) -> Map:
    """From a part's stored rows to those that a training sees."""
    arrays = load_file(task.input["mean"]) if task.input.get("mean") else {}
    depths = depths_of(task, part)
    mean, noise = arrays.get("mean"), float(arrays["noise"][0]) if "noise" in arrays else 0.0
    if mean is not None and depths is not None and task.reads.tried:
        whole = depths_of_mean(task, part)
        if whole is not None and whole != depths:
            mean, noise = whole.mean_of(depths, mean, noise)
    if mean is not None and noise:
        mean = shrink_mean(mean, noise)
    bought, length = task.reads.mean, task.reads.length
    radius, exact = (None, False) if bought is None or mean is None else ball(bought.radius, length)
    length_or_none = None if length == "as_is" else length
    return Map(mean, radius, length_or_none, task.reads.constant, exact, depths)


def read_nothing(task: Task[SeenReads], part: Part) -> Data:
    """What a training sees that stands on shared sums alone."""
    features = np.empty((0, map_of(task, part).width(part.dimension)), np.float32)
    return Data(features, np.empty(0, np.int64), shared=ReleasedSums(Path(task.input["sums"])))


def shared_inputs(task: Task[Any]) -> dict[str, str]:
    """What `read` uses beside the records, by its bytes; empty where the rule has none."""
    releases = {name: task.input.get(name) for name in RELEASES if name != "weights"}
    digests = {name: file_digest(Path(path)) if path else "" for name, path in releases.items()}
    guiding = SAMPLE in task.reads.places.features
    return digests | ({SAMPLE: part_of(task, SAMPLE).name} if guiding else {})


def save_found(task: Task[places.WithFeatures], name: str, arrays: Mapping[str, Any]) -> None:
    """Write what was found of a public sample: as it was found first, for another device or build
    may round it otherwise, and questions name it by its bytes.

    Args:
        task: the job, by whose inputs it is known again.
        name: of the output.
        arrays: what was found now; it is kept where nothing was found before.
    """
    mean = task.input.get("mean")
    under = query_digest(
        job=task.rule,
        code=task.code,
        cfg=task.public_cfg,
        sources=[part_of(task, part).name for part in task.reads.places.features],
        mean=file_digest(Path(mean)) if mean else "",
    )
    first = first_found_value(job_home(), under, save(dict(arrays)))
    task.output[name].write_bytes(first)


def read_raw(part: Part) -> Data:
    """A part's records. Of private ones those alone count whose units were there when this version
    of the data was first asked: then none lies in another part than it did (data/prepare.py)."""
    data = open_part(part)
    if not part.units:
        return data
    first = ledgers.load(Ledger(job_home(), part.lineage)).first_units.get(part.version)
    return data if first in (None, part.units) else _restrict_to_version(part, first)


@cache
def open_part(part: Part) -> Data:
    """The features themselves, mapped and every byte of them vouched for: before COMMIT, so that a
    file that is damaged, or another home's, costs nothing. What a row says is used after COMMIT
    alone."""
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
    there = np.fromiter((row.tobytes() in known for row in data.units), bool, len(data.units))
    return replace(data, labels=np.where(there, data.labels, -1))


def constants_of(task: Task[SeenReads], part: Part) -> Constants:
    """The public facts of a training on records as it sees them."""
    length = task.reads.length
    return replace(
        stored_constants(task, part),
        dimension=map_of(task, part).width(part.dimension),
        length=task.reads.typical if length == "as_is" else length,
        network=network_of(task, part),
    )


def network_of(task: Task[SeenReads], part: Part) -> Network | None:
    """The public network, where features are activations at a cut in it."""
    attrs, _ = sealed.read_attrs(part.path)
    return public_network_of(attrs, task.reads.weights)


def stored_constants(task: Task[ReleaseReads], part: Part) -> Constants:
    """The same for records as they are stored."""
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
