"""The second-order learners at d = 1,280 and 100 classes: time and memory, streamed from float16
features on the disk.

python tests/benchmarks/bench_second_order.py [--records 10000] [--newton-steps 1]

DP-Newton sums and decomposes a d x d matrix for each class and step: its time grows with records,
classes and steps, its memory with none of them. Bars: minutes for a training on two cores; no m x d
x d tensor (1.3 GB here) is ever held.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time

import numpy as np

from dpladder.config.model import Resources
from dpladder.learn.data import Data
from dpladder.learn.interface import Constants, Hyper
from dpladder.learn.trainings import declare, train
from dpladder.methods.dp_ls import LeastSquares
from dpladder.privacy.release.meter import Meter
from dpladder_papers.methods.dp_fc import FeatureCovariance
from dpladder_papers.methods.dp_newton import Newton

CLASSES, DIMENSION = 100, 1280


class Source:
    def stream(self, name: str, index: int) -> bytes:
        return (name * 32).encode()[:28] + index.to_bytes(4, "big")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--newton-steps", type=int, default=1)
    asked = parser.parse_args()
    # so little that the features do not become resident
    resources = Resources(threads=2, mem_mb=100)
    constants = Constants(n0=asked.records, classes=CLASSES, dimension=DIMENSION)
    runs = (
        (FeatureCovariance(), Hyper(1.0, 10, 0.3)),
        (LeastSquares(), Hyper(10.0, 1, 0.3)),
        (Newton(), Hyper(1.0, asked.newton_steps, 0.3)),
    )
    print(
        f"{asked.records:,} x {DIMENSION:,} float16, {CLASSES} classes, {resources.threads} threads"
    )
    print(f"{'':12}{'steps':>6}{'seconds':>10}{'of CPU':>10}{'GB at most':>12}")
    with tempfile.NamedTemporaryFile() as file:
        data = written(file.name, asked.records)
        for learner, hyper in runs:
            meter = Meter(declare(learner, hyper, constants).draws, Source())
            start, work = time.perf_counter(), time.process_time()
            train(data, hyper, learner, constants, meter, resources)
            seconds, work = time.perf_counter() - start, time.process_time() - work
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
            print(
                f"{learner.name:12}{hyper.steps:6}{seconds:10.1f}{work:10.1f}{peak:12.2f}",
                flush=True,
            )


def written(path: str, count: int) -> Data:
    random = np.random.default_rng(0)
    features = np.memmap(path, np.float16, "w+", shape=(count, DIMENSION))
    features[:] = random.standard_normal((count, DIMENSION), dtype=np.float32) / DIMENSION**0.5
    return Data(features, random.integers(0, CLASSES, count))


if __name__ == "__main__":
    main()
