"""Noised sums that are released once, as a file, for all trainings that share them: written and
read one draw at a time.

float32 is rounding after the release. What it loses is far below the noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import h5py
import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpladder.learn.interface import Constants
from dpladder.learn.queries import Query

Keep = Callable[[Query, int, ArrayLike], None]
"""Takes a released sum: its query, its class where it comes class by class, else 0."""


@dataclass(frozen=True)
class ReleasedSums:
    """The file. A curator answers from it (learn/curator.py)."""

    path: Path

    @cached_property
    def multipliers(self) -> dict[str, float]:
        """Of each query whose sums are there. Steps that share nothing open no file."""
        with h5py.File(self.path, "r", locking=False) as file:
            return {name: float(sums.attrs["multiplier"]) for name, sums in file.items()}

    def find(self, name: str, place: int) -> tuple[NDArray[np.float64], float] | None:
        """A released sum and its query's multiplier, or None where the file has no such query.

        Args:
            name: of the query.
            place: the class, where it comes class by class, else 0.
        """
        if name not in self.multipliers:
            return None
        with h5py.File(self.path, "r", locking=False) as file:
            return np.asarray(file[name][place], np.float64), self.multipliers[name]


@contextmanager
def create(path: Path, queries: Sequence[Query], constants: Constants) -> Iterator[Keep]:
    """A file to fill, one draw of these queries at a time."""
    with h5py.File(path, "w") as file:
        for query in queries:
            shape = (query.parts(constants), *query.shape(constants))
            file.create_dataset(query.name, shape, np.float32)
            file[query.name].attrs["multiplier"] = query.multiplier

        def keep(query: Query, place: int, total: ArrayLike) -> None:
            file[query.name][place] = total

        yield keep
