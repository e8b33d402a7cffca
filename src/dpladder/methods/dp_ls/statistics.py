"""DP-LS's noised sums as a file, for all trainings that share them: written and read one class at a
time.

float32 is rounding after the release. What it loses is far below the noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import h5py
import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpladder.learn.interface import Constants
from dpladder.learn.queries import coordinates

Keep = Callable[[str, int | None, ArrayLike], None]
"""Takes a released sum by its name, and its class where it has one."""


@contextmanager
def create(path: Path, mu: float, constants: Constants) -> Iterator[Keep]:
    """A file to fill, one sum at a time: `covariance`, and `moments` and `targets` of each
    class."""
    classes, dimension = constants.classes, constants.dimension
    size = coordinates(dimension)
    with h5py.File(path, "w") as file:
        file.attrs["mu"] = mu
        for name, shape in (
            ("covariance", (size,)),
            ("moments", (classes, size)),
            ("targets", (classes, dimension)),
        ):
            file.create_dataset(name, shape, np.float32)

        def keep(name: str, label: int | None, total: ArrayLike) -> None:
            file[name][() if label is None else label] = total

        yield keep


def mu_of(path: Path) -> float:
    """What the sums cost together."""
    with h5py.File(path, "r", locking=False) as file:
        return float(file.attrs["mu"])


def read(path: Path, name: str, label: int | None = None) -> NDArray[np.float64]:
    """One sum; a class's own where `label` names one."""
    with h5py.File(path, "r", locking=False) as file:
        return np.asarray(file[name][() if label is None else label], np.float64)
