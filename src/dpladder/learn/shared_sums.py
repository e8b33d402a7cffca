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

from dpladder.errors import Refused
from dpladder.learn.interface import Constants
from dpladder.learn.queries import Query

Keep = Callable[[Query, int, ArrayLike], None]
"""Takes a released sum: its query, its class where it comes class by class, else 0."""


@dataclass(frozen=True)
class ReleasedSums:
    """The file of released sums. A curator answers from it (learn/curator.py).

    Attributes:
        path: of the file.
    """

    path: Path

    @cached_property
    def released(self) -> dict[str, tuple[str, float]]:
        """Kind and multiplier of each query whose sums are there. Steps that share nothing open no
        file."""
        with h5py.File(self.path, "r", locking=False) as file:
            return {
                name: (str(sums.attrs["kind"]), float(sums.attrs["multiplier"]))
                for name, sums in file.items()
            }

    def find(self, query: Query, place: int) -> tuple[NDArray[np.float64], float] | None:
        """A released sum and its query's multiplier, or None where the file has no such query.

        Args:
            query: that asks for it.
            place: the class, where it comes class by class, else 0.

        Raises:
            Refused: what was released under the query's name is another sum, such as one in another
                ball.
        """
        if query.name not in self.released:
            return None
        kind, multiplier = self.released[query.name]
        if kind != repr(query.kind):
            raise Refused(
                f"query {query.name} asks for another sum than the one that was released for all "
                f"trainings, {kind}. Nothing was answered: ask for that one, or take another name."
            )
        with h5py.File(self.path, "r", locking=False) as file:
            return np.asarray(file[query.name][place], np.float64), multiplier


@contextmanager
def create(path: Path, queries: Sequence[Query], constants: Constants) -> Iterator[Keep]:
    """A file to fill, one draw of these queries at a time.

    Args:
        path: of the file.
        queries: whose answers are kept.
        constants: public sizes, from which shapes follow.
    """
    with h5py.File(path, "w") as file:
        for query in queries:
            shape = (query.parts(constants), *query.shape(constants))
            file.create_dataset(query.name, shape, np.float32)
            file[query.name].attrs.update(kind=repr(query.kind), multiplier=query.multiplier)

        def keep(query: Query, place: int, total: ArrayLike) -> None:
            file[query.name][place] = total

        yield keep
