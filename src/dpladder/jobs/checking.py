"""The check before anything is spent: a run stops where its data cannot be what the config
means."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpladder.config.label_sets import MANY
from dpladder.data.census import cannot_be_meant
from dpladder.data.sealed import Attrs
from dpladder.errors import Refused
from dpladder.jobs.task import Task
from dpladder.plan.reads import MergeFeatures, PrepareDataset


def stop_if_few_usable(
    task: Task[PrepareDataset | MergeFeatures],
    units: NDArray[np.uint8],
    labels: NDArray[np.int64],
    seen: int,
    attrs: Attrs,
) -> None:
    """`attrs`: of the manifest or the cache that holds these records. One message, whatever the
    cause: that it is this one tells a bit, and data/census.py says why it may."""
    reads, classes = task.reads, int(attrs["classes"])
    most = MANY if attrs.get("labels") == MANY else 1
    lopsided = reads.few_usable == "lopsided"
    if reads.few_usable is not True and cannot_be_meant(
        units, labels, seen, classes, most, lopsided
    ):
        raise Refused(
            "the data does not look like what the config describes: most of it would count as "
            "nothing, or nearly all of it is of one class, or has no finding. Nothing was spent. "
            "`dpladder check` with this config shows why on your terminal, and "
            f"{reads.places.diagnostics} holds the details. Where a class is rare, declare its "
            "share in dataset.rare; if all of this is right, set dataset.few_usable: true."
        )
