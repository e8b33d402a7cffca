"""The records that a curator holds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpladder.learn.interface import Claim


@dataclass(frozen=True)
class Data:
    """One part of the private data. A record with label -1, or with features all zero, contributes
    exactly zero."""

    # an array (records, dimension) or (records, views, dimension), often a memory map, or mapped
    # when read
    features: Any
    labels: NDArray[np.int64]  # a class each, or the number of several (config/label_sets.py)
    # (records, 16): whose record it is; Poisson sampling needs it
    units: NDArray[np.uint8] | None = None
    covariance: NDArray[np.float64] | None = None  # released before, where trainings share one
    statistics: Path | None = None  # DP-LS's sums as released before (methods/dp_ls/statistics.py)
    start: NDArray[np.float32] | None = None  # a head trained on public data (learn/public_head.py)
    claim: Claim | None = None  # of that head, where public records guide each step
    sample: Data | None = None  # those records (learn/guide.py)
    worth: float | None = None  # as how many of the same kind, where a look told it before
    # of each record, where they are declared: for tests alone
    groups: NDArray[np.int64] | None = None


def unaugmented(features: Any, rows: Any = slice(None)) -> Any:
    """Some records as they are: where there are several views, the first."""
    return features[rows] if features.ndim == 2 else features[rows, 0]
