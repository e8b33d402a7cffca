"""Trainings on as many records as ImageNet has, and on ten thousand classes, against one read of
the features' file.

python tests/benchmarks/bench_large.py [--records 1281167] [--folder /somewhere] [--threads 2]

Takes 3.3 GB of disk, and 7 GB of memory for the training that holds its features. The page cache
is emptied before each step and before the plain read, so both come from the disk. A step's time
goes from one draw of noise to the next. Memory is the process's own: pages of the file are the page
cache's. "Reads" is how often a training read the file in all: once where half of the memory
declared to it holds its features, else once more at each step. Bar: no training takes more memory
than was declared.
"""

from __future__ import annotations

import argparse
import mmap
import os
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpladder.config.model import Resources
from dpladder.learn import trainings
from dpladder.learn.data import Data
from dpladder.learn.interface import Constants, Hyper
from dpladder.methods.dp_gd import Descent
from dpladder.privacy.release.grid import Noise
from dpladder.privacy.release.meter import Meter

IMAGENET, DIMENSION = 1_281_167, 1280
STEPS = 3
MANY = 10_000  # classes


class Source:
    def stream(self, name: str, index: int) -> bytes:
        return (name * 32).encode()[:28] + index.to_bytes(4, "big")


def forget(features: np.memmap, file: int) -> None:
    """Out of this process, then out of the page cache."""
    assert isinstance(features.base, mmap.mmap)
    features.base.madvise(mmap.MADV_DONTNEED)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)


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


def write(path: Path, count: int) -> None:
    block = np.random.default_rng(0).standard_normal((16384, DIMENSION)).astype(np.float16)
    with path.open("wb") as file:
        for start in range(0, count, len(block)):
            file.write(block[: count - start].tobytes())
        file.flush()
        os.fsync(file.fileno())


@dataclass(frozen=True)
class Case:
    classes: int
    memory: int  # MB that are declared
    share: float  # of the records


CASES = (
    Case(10, 4000, 1.0),
    Case(10, 16000, 1.0),
    Case(MANY, 4000, 0.02),
)


class Counted:
    """Features in a file, and how many rows of them were read."""

    def __init__(self, path: Path, rows: int) -> None:
        self.stored = np.memmap(path, np.float16, "r", shape=(rows, DIMENSION))
        self.shape, self.ndim, self.read = self.stored.shape, self.stored.ndim, 0

    def __len__(self) -> int:
        return len(self.stored)

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        found: NDArray[Any] = self.stored[rows]
        self.read += len(found)
        return found


class Timed(Meter):
    """A meter that notes when each step ends, and empties the page cache for the next one."""

    def __init__(self, draws: Any, features: np.memmap, file: int) -> None:
        super().__init__(draws, Source())
        self.features, self.file = features, file
        self.ends: list[tuple[float, float]] = []

    def noise(self, name: str, shape: tuple[int, ...]) -> Noise:
        forget(self.features, self.file)
        self.ends.append((time.perf_counter(), time.process_time()))
        return super().noise(name, shape)

    def step(self) -> tuple[float, float]:
        """The shortest step by the clock and by the processor, the first one left out."""
        spans = np.diff(np.array(self.ends), axis=0).min(axis=0)
        return float(spans[0]), float(spans[1])


def one_read(path: Path, size: int = 1 << 24) -> float:
    buffer = bytearray(size)
    with path.open("rb", buffering=0) as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        start = time.perf_counter()
        while file.readinto(buffer):
            pass
        return time.perf_counter() - start


def train(path: Path, count: int, case: Case, threads: int) -> bool:
    """Whether the bar holds."""
    rows = int(count * case.share)
    constants = Constants(n0=rows, classes=case.classes, dimension=DIMENSION)
    learner, hyper = Descent(), Hyper(1.0, STEPS, 0.3)
    features = Counted(path, rows)
    data = Data(features, np.random.default_rng(1).integers(0, case.classes, rows))
    file = os.open(path, os.O_RDONLY)
    meter = Timed(trainings.declare(learner, hyper, constants).draws, features.stored, file)
    with watching() as most:
        resources = Resources(threads=threads, mem_mb=case.memory)
        trainings.train(data, hyper, learner, constants, meter, resources)
    os.close(file)
    clock, processor = meter.step()
    print(
        f"| {rows:,} | {case.classes:,} | {case.memory:,} MB | {features.read / rows:.0f} "
        f"| {clock:.1f} s | {processor:.1f} s | {most[0]:,} MB |",
        flush=True,
    )
    return most[0] <= case.memory


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=IMAGENET)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="on a real disk")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        path = Path(folder) / "features"
        write(path, asked.records)
        print(f"{DIMENSION:,} features in float16, {path.stat().st_size / 1e9:.2f} GB")
        print(f"one read of the file: {one_read(path):.1f} s")
        print("| records | classes | declared | reads | a step | its CPU time | most memory |")
        print("|---|---|---|---|---|---|---|")
        held = [train(path, asked.records, case, asked.threads) for case in CASES]
    return 0 if all(held) else 1


if __name__ == "__main__":
    raise SystemExit(main())
