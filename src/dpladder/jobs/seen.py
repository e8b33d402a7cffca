"""A part's records as trainings see them: the public map from stored rows, and what trainings are
told beside them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from dpladder.config.features_sections import Features, Layers
from dpladder.data import sealed
from dpladder.data.cache import public_network_of
from dpladder.data.centre import Map, Mapped, ball, shrink_mean
from dpladder.data.depths import Depths, depths_by_name, depths_for, joined_depths
from dpladder.jobs.features import Part, part_of, read_raw, stored_constants
from dpladder.jobs.reservation import RELEASES
from dpladder.jobs.task import Task
from dpladder.learn.data import Data
from dpladder.learn.interface import Claim, Constants
from dpladder.learn.shared_sums import ReleasedSums
from dpladder.plan.rule_params import FindMean, SeenReads, StoredReads
from dpladder.privacy.statement.records import file_digest

SAMPLE = "sample"  # the part that holds public records
LAYERS = "layers"  # beside a public sample's mean: the depths that it chose


@dataclass(frozen=True, eq=False)
class SeenPart:
    """A part as trainings see it. Making one reads nothing private.

    Attributes:
        task: the job that reads it.
        part: its feature cache.
        map: from stored rows to those that a training sees: less a public or released mean, at the
            public length.
        constants: the public facts of a training on them.
    """

    task: Task[SeenReads]
    part: Part
    map: Map
    constants: Constants

    def read(self) -> Data:
        """The records. Beside them stand, where there are any, the sums that trainings share, the
        public head to start from and the public records that guide steps."""
        data, files = self._records(), self.task.input
        if SAMPLE in self.task.reads.places.features:
            sample = seen_part(self.task, SAMPLE)
            data = dataclasses.replace(data, sample=sample._records())
        if files.get("sums"):
            data = dataclasses.replace(data, shared=ReleasedSums(Path(files["sums"])))
        if files.get("start"):
            start = load_file(files["start"])
            claim = Claim(*map(float, start["claim"])) if "claim" in start else None
            worth = float(start["worth"][0]) if "worth" in start else None
            data = dataclasses.replace(data, start=start["head"], claim=claim, worth=worth)
        return data

    def read_nothing(self) -> Data:
        """What a training sees that stands on shared sums alone."""
        features = np.empty((0, self.constants.dimension), np.float32)
        shared = ReleasedSums(Path(self.task.input["sums"]))
        return Data(features, np.empty(0, np.int64), shared=shared)

    def inputs(self, name: str) -> dict[str, str]:
        """What `read` makes of stored rows, as a question names it. The public map goes by this
        name, and releases, public heads and what guides by their bytes.

        Returns:
            One text for each; an empty one where the rule has none.
        """
        return {name: self.part.map_name, **inputs_beside_records(self.task)}

    def _records(self) -> Data:
        data = read_raw(self.part)
        return dataclasses.replace(data, features=Mapped(data.features, self.map))


def seen_part(task: Task[SeenReads], name: str) -> SeenPart:
    """A part of the data, such as `train`, as this job's trainings see it."""
    part, length = part_of(task, name), task.reads.length
    mapped = _map_of(task, part)
    attrs, _ = sealed.read_attrs(part.path)
    constants = dataclasses.replace(
        stored_constants(task, part),
        dimension=mapped.width(part.dimension),
        length=task.reads.typical if length == "as_is" else length,
        # where features are activations at a cut in a public network
        network=public_network_of(attrs, task.reads.weights),
    )
    return SeenPart(task, part, mapped, constants)


def inputs_beside_records(task: Task[SeenReads]) -> dict[str, str]:
    """What trainings are told beside records, by its bytes."""
    releases = {name: task.input.get(name) for name in RELEASES if name != "weights"}
    digests = {name: file_digest(Path(path)) if path else "" for name, path in releases.items()}
    guiding = SAMPLE in task.reads.places.features
    return digests | ({SAMPLE: part_of(task, SAMPLE).name} if guiding else {})


def _map_of(task: Task[SeenReads], part: Part) -> Map:
    reads, arrays = task.reads, _mean_of(task)
    depths = depths_of(task, part)
    mean, noise = arrays.get("mean"), float(arrays["noise"][0]) if "noise" in arrays else 0.0
    if mean is not None and depths is not None and reads.tried:
        whole = depths_of_mean(task, part)
        if whole is not None and whole != depths:
            mean, noise = whole.mean_of(depths, mean, noise)
    if mean is not None and noise:
        mean = shrink_mean(mean, noise)
    bought, length = reads.mean, None if reads.length == "as_is" else reads.length
    radius, exact = (
        (None, False) if bought is None or mean is None else ball(bought.radius, reads.length)
    )
    return Map(mean, radius, length, reads.constant, exact, depths)


def depths_of_mean(task: Task[StoredReads | FindMean], part: Part) -> Depths | None:
    """The depths that a mean is of: those of all candidates, where there are some."""
    several = [_depths_for(task, part, layers) for layers in task.reads.tried]
    present = [depths for depths in several if depths is not None]
    return joined_depths(present) if present else depths_of(task, part)


def depths_of(task: Task[StoredReads | FindMean], part: Part) -> Depths | None:
    """The depths that are taken, of those that a part's features hold: those that a public sample
    chose, where one did."""
    arrays = _mean_of(task)
    if LAYERS in arrays:
        names = [part.depths[place][0] for place in arrays[LAYERS]]
        return depths_by_name(names, part.depths, _length_of_depths(task))
    return _depths_for(task, part, task.reads.layers)


def _mean_of(task: Task[StoredReads | FindMean]) -> dict[str, NDArray[Any]]:
    """The file of the mean that features are less of, where there is one."""
    mean = task.input.get("mean")
    return load_file(mean) if mean else {}


def _depths_for(task: Task[StoredReads | FindMean], part: Part, layers: Layers) -> Depths | None:
    model = task.reads.model
    takes = Features(model=model).takes
    return depths_for(layers, part.depths, _length_of_depths(task), takes, model)


def _length_of_depths(task: Task[StoredReads | FindMean]) -> float:
    return task.reads.typical if task.reads.length == "as_is" else task.reads.length
