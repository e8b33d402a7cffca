"""Trainings on features that do not fit into the declared memory: what is read from the disk, and
what stays in memory.

python tests/benchmarks/bench_stream.py [--records 1281167] [--rate 0.05] [--steps 4] [--folder
/somewhere]

By default as many records as ImageNet has, or as half of the free disk takes. The page cache is
emptied before each step, so every byte that a step needs comes from the disk, as it does where
features are larger than memory. A disk is read in whole pages: a step must read those that hold a
sampled record. Bar: no more than twice those, within the declared memory.
"""

from __future__ import annotations

import argparse
import mmap
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpladder.config.model import Resources
from dpladder.learn import trainings
from dpladder.learn.data import Data
from dpladder.learn.interface import Constants, Hyper
from dpladder.methods.dp_gd.section import Descent
from dpladder.privacy.release.meter import Meter

IMAGENET, CLASSES, DIMENSION, WIDTH = 1_281_167, 10, 1280, 2560  # bytes of a record
DECLARED = 1000  # MB
BAR = 2.0


class Source:
    def stream(self, name: str, index: int) -> bytes:
        return (name * 32).encode()[:28] + index.to_bytes(4, "big")


class Watched(Meter):
    """A meter that notes what each step must read, and empties the page cache before it."""

    def __init__(self, draws: Any, features: np.memmap, file: int) -> None:
        super().__init__(draws, Source())
        self.features, self.file = features, file
        self.rows, self.pages, self.before = 0, 0, 0

    def mask(self, name: str, ids: NDArray[np.uint8]) -> NDArray[np.bool_]:
        chosen = super().mask(name, ids)
        first = np.flatnonzero(chosen).astype(np.int64) * WIDTH
        both = np.concatenate([first // mmap.PAGESIZE, (first + WIDTH - 1) // mmap.PAGESIZE])
        self.rows += len(first)
        self.pages += len(np.unique(both))
        forget(self.features, self.file)
        self.before = self.before or read_bytes()
        return chosen


def forget(features: np.memmap, file: int) -> None:
    """Out of this process, then out of the page cache."""
    assert isinstance(features.base, mmap.mmap)
    features.base.madvise(mmap.MADV_DONTNEED)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)


def read_bytes() -> int:
    """What this process had the disk read, page faults included."""
    with open("/proc/self/io") as file:
        return int(dict(line.split(": ") for line in file)["read_bytes"])


def own_memory() -> int:
    """MB that are this process's own; pages of the file are the page cache's, which gives them
    back."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon")) // 1000


@contextmanager
def watching() -> Iterator[list[int]]:
    """The most memory at any time, once a block is left."""
    most, over = [own_memory()], threading.Event()

    def look() -> None:
        while not over.wait(0.05):
            most[0] = max(most[0], own_memory())

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield most
    finally:
        over.set()
        watcher.join()


def write(path: str, count: int) -> None:
    block = np.random.default_rng(0).standard_normal((16384, DIMENSION)).astype(np.float16)
    with open(path, "wb") as file:
        for start in range(0, count, len(block)):
            file.write(block[: count - start].tobytes())
        file.flush()
        os.fsync(file.fileno())


def train(path: str, count: int, rate: float, steps: int) -> bool:
    """Whether the bars hold."""
    constants = Constants(n0=count, classes=CLASSES, dimension=DIMENSION)
    learner, hyper = Descent(sampling_rate=rate), Hyper(1.0, steps, 0.3, 1e-7)
    features = np.memmap(path, np.float16, "r", shape=(count, DIMENSION))
    numbers = np.arange(count, dtype=np.uint64)
    units = np.stack([numbers, numbers], axis=1).view(np.uint8)
    data = Data(features, np.random.default_rng(1).integers(0, CLASSES, count), units)
    file = os.open(path, os.O_RDONLY)
    forget(features, file)
    meter = Watched(trainings.declare(learner, hyper, constants).draws, features, file)
    began, start = time.perf_counter(), read_bytes()
    with watching() as most:
        trainings.train(
            data, hyper, learner, constants, meter, Resources(threads=2, mem_mb=DECLARED)
        )
    seconds, end = time.perf_counter() - began, read_bytes()
    os.close(file)

    must, did = meter.pages * mmap.PAGESIZE, end - meter.before
    size = count * WIDTH
    print(
        f"{count:,} x {DIMENSION:,} float16, {size / 1e9:.2f} GB; rate {rate}, {steps} steps, "
        f"{seconds:.0f} s in all"
    )
    print(
        f"  before the first step, once over the file: {(meter.before - start) / 1e9:.2f} GB read"
    )
    print(
        f"  steps: {did / 1e6:.1f} MB read; pages that hold sampled records {must / 1e6:.1f} MB: "
        f"{did / must:.2f} times what must be read (bar {BAR:g}); {did / (meter.rows * WIDTH):.2f} "
        f"times the records' own bytes, {did / (size * steps):.3f} of the file for each step"
    )
    print(f"  most memory of its own: {most[0]} MB of {DECLARED} declared")
    return did <= BAR * must and most[0] <= DECLARED


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int)
    parser.add_argument("--rate", type=float, default=0.05)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument(
        "--folder", default=tempfile.gettempdir(), help="on a real disk, not in memory"
    )
    asked = parser.parse_args()
    count = asked.records or min(IMAGENET, shutil.disk_usage(asked.folder).free // 2 // WIDTH)
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        path = os.path.join(folder, "features")
        write(path, count)
        return 0 if train(path, count, asked.rate, asked.steps) else 1


if __name__ == "__main__":
    raise SystemExit(main())
