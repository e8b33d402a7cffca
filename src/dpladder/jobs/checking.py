"""The check of what is declared public, before anything is spent: a run stops where it cannot be
what the config means. Private records are counted under noise (count_units.py).

Exact counts are allowed here because the records are public by the config's word. A refusal tells
nothing that is protected (contract: no-tell, refuse-first).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpladder.config.label_sets import MANY, NUMBER, Labels
from dpladder.data.sealed import Attrs
from dpladder.data.stops import reason_to_stop
from dpladder.errors import Refused
from dpladder.jobs.task import Task
from dpladder.learn.counts import units_by_class
from dpladder.plan.reads import MergeFeatures, PrepareDataset


def stop_if_few_usable(
    task: Task[PrepareDataset | MergeFeatures],
    units: NDArray[np.uint8],
    labels: NDArray[np.int64],
    seen: int,
    attrs: Attrs,
) -> None:
    """Stop the run where records that are declared public cannot be what the config means. They are
    counted exactly.

    Args:
        task: the job.
        units: (records, 16), whose each record is.
        labels: of each record; below 0 it counts as nothing.
        seen: number of units that the source holds.
        attrs: of the manifest or the cache that holds these records.

    Raises:
        Refused: the counts are on the wrong side of a line (data/stops.py). Nothing was spent.
    """
    kind = attrs.get("labels")
    most: Labels = MANY if kind == MANY else NUMBER if kind == NUMBER else 1
    counts = units_by_class(units, labels, int(attrs["classes"]), most)
    why = reason_to_stop(counts, seen, task.reads.stops, most)
    if why is not None:
        raise Refused(
            f"the data does not look like what the config describes: {why}. Nothing was spent. "
            "`dpladder check` with this config shows why on your terminal, and "
            f"{task.reads.places.diagnostics} holds the details. Where a class is rare, declare "
            "its share in dataset.rare; if all of this is right, set dataset.census: null."
        )
