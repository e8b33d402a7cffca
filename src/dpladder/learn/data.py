"""The records that a curator holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpladder.learn.interface import Claim

if TYPE_CHECKING:
    from dpladder.learn.shared_sums import ReleasedSums


@dataclass(frozen=True)
class Data:
    """One part of the private data, and what was released of it before. A record with label -1, or
    with features all zero, contributes exactly zero.

    Attributes:
        features: an array (records, dimension) or (records, views, dimension), often a memory map,
            or mapped when read.
        labels: a class each, or the number of several (config/label_sets.py).
        units: (records, 16), whose record it is; Poisson sampling and means of units need it.
        shared: noised sums that were released before, for all trainings.
        start: a head trained on public data (learn/public_head.py).
        claim: of that head, where public records guide each step.
        sample: those public records (learn/guide.py).
        worth: as how many private records of the same kind a public one counts, where a look was
            released before.
        groups: of each record, where they are declared: for tests alone.
    """

    features: Any
    labels: NDArray[np.int64]
    units: NDArray[np.uint8] | None = None
    shared: ReleasedSums | None = None
    start: NDArray[np.float32] | None = None
    claim: Claim | None = None
    sample: Data | None = None
    worth: float | None = None
    groups: NDArray[np.int64] | None = None


def unaugmented(features: Any, rows: Any = slice(None)) -> Any:
    """Some records as they are: where there are several views, the first."""
    return features[rows] if features.ndim == 2 else features[rows, 0]
