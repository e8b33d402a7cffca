"""A part's records as trainings see them: the public map from stored rows, and what trainings are
told beside them.

A map is public or was released, so applying it is free: centring by a mean, scaling to a length,
choosing depths. It works row by row, for sensitivities count on that (contract: per-record).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from dpladder.config.features_sections import row_length
from dpladder.data.cache import public_network_of
from dpladder.data.centre import Map, Mapped, map_of
from dpladder.jobs.features import Part, part_of, read_raw, stored_constants
from dpladder.jobs.reservation import RELEASES
from dpladder.jobs.task import Task
from dpladder.learn.data import Data
from dpladder.learn.interface import Claim, Constants
from dpladder.learn.shared_sums import ReleasedSums
from dpladder.plan.reads import SeenReads
from dpladder.public_files import file_digest

SAMPLE = "sample"  # the part that holds public records


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
        public head to start from and the public records that guide steps.

        Only after COMMIT: what it returns are private records, unless the part is declared public.
        """
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
        """What a training sees that stands on shared sums alone.

        No private record is opened: trials that solve released sums depend on those sums alone.
        """
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
    """A part of the data, such as `train`, as this job's trainings see it.

    Args:
        task: whose inputs say which mean, start and sums there are.
        name: of a part that the job's params name.

    Raises:
        Refused: the part's cache is gone. Nothing was spent.
    """
    part, reads, mean = part_of(task, name), task.reads, task.input.get("mean")
    mapped = map_of(reads, part.depths, load_file(mean) if mean else {})
    constants = dataclasses.replace(
        stored_constants(task, part),
        dimension=mapped.width(part.dimension),
        length=row_length(reads.length, reads.typical),
        # where features are activations at a cut in a public network
        network=public_network_of(part.attrs, reads.weights),
    )
    return SeenPart(task, part, mapped, constants)


def inputs_beside_records(task: Task[SeenReads]) -> dict[str, str]:
    """What trainings are told beside records, by its bytes.

    Returns:
        A digest for each kind of release; empty where the rule has none. A public sample is named
        by its data and map.
    """
    releases = {name: task.input.get(name) for name in RELEASES if name != "weights"}
    digests = {name: file_digest(Path(path)) if path else "" for name, path in releases.items()}
    guiding = SAMPLE in task.reads.places.features
    return digests | ({SAMPLE: part_of(task, SAMPLE).name} if guiding else {})
