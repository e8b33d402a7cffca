"""One full-batch private step against one read of the features and against Opacus, in turns in one
run.

python tests/benchmarks/bench_learn.py [--records 50000] [--rounds 7]

Bars (50,000 x 1,280 float32, 10 classes): a step takes at most 4 reads of the features and a 15th
of Opacus with ghost clipping; 32 trials together take at most 2 reads each.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from opacus import GradSampleModule
from opacus.grad_sample import GradSampleModuleFastGradientClipping
from opacus.optimizers import DPOptimizer, DPOptimizerFastGradientClipping
from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping
from torch import nn
from torch.nn.functional import cross_entropy

from dpladder.config.learner_sections import Descent
from dpladder.config.model import Resources
from dpladder.learn import linear
from dpladder.learn.descent import descend, momentum
from dpladder.learn.interface import Constants, Data, Hyper
from dpladder.learn.records import load, prepare
from dpladder.learn.registry import method
from dpladder.privacy.release.meter import Meter

CLASSES, DIMENSION = 10, 1280
TRIALS = 32
BARS = {"one step": 4.0, "one step, saturated": 4.0, f"one of {TRIALS} together": 2.0}
GHOST_BAR = 15.0


class Source:
    def stream(self, name: str, index: int) -> bytes:
        return (name * 32).encode()[:28] + index.to_bytes(4, "big")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=7)
    asked = parser.parse_args()
    warnings.filterwarnings("ignore", category=UserWarning)
    threads = len(os.sched_getaffinity(0))
    ways = contenders(asked.records, Resources(threads=threads, mem_mb=8000))
    best = dict.fromkeys(ways, float("inf"))
    for run, _ in ways.values():
        run()  # warm up
    for _ in range(asked.rounds):
        for way, (run, parts) in ways.items():
            start = time.perf_counter()
            run()
            best[way] = min(best[way], (time.perf_counter() - start) / parts)
    show(best, asked.records, threads)


def contenders(count: int, resources: Resources) -> dict[str, tuple[Callable[[], object], int]]:
    """Each way with what its time is divided by: steps or trials."""
    device = prepare(resources)
    random = np.random.default_rng(0)
    features = random.standard_normal((count, DIMENSION), dtype=np.float32) / DIMENSION**0.5
    data = Data(features, random.integers(0, CLASSES, count))
    constants = Constants(n0=count, classes=CLASSES, dimension=DIMENSION)
    records = load(
        data, constants, device, chunk=linear.CHUNK[device.type], memory_mb=resources.mem_mb
    )
    x, y = records.features[:, 0], records.labels

    def ours(trials: int, steps: int, start: float) -> None:
        learner, hyper = Descent(), Hyper(1.0, steps, 0.3)
        meters = [
            Meter(method("dp_gd").declare(learner, hyper, constants).draws, Source())
            for _ in range(trials)
        ]
        first = start * torch.eye(CLASSES, DIMENSION, device=device)
        sums = partial(linear.clipped_sum, records, threads=resources.threads)
        torch.set_num_threads(1)  # as train_many does
        with torch.inference_mode():
            descend(
                sums,
                first,
                records,
                [hyper] * trials,
                learner,
                constants,
                meters,
                momentum(learner),
            )
        torch.set_num_threads(resources.threads)

    return {
        "one read of the features": (lambda: x.sum().item(), 1),
        "one step": (lambda: ours(1, 4, 0.0), 4),
        "one step, saturated": (lambda: ours(1, 4, 3e3), 4),
        f"one of {TRIALS} together": (lambda: ours(TRIALS, 1, 0.0), TRIALS),
        "Opacus, ghost clipping": (partial(opacus_ghost, x, y), 1),
        "Opacus, hooks": (partial(opacus_hooks, x, y), 1),
    }


def opacus_hooks(x: torch.Tensor, y: torch.Tensor, size: int = 2500) -> None:
    """Per-record gradients, in batches that fit into memory."""
    model = GradSampleModule(
        nn.Linear(x.shape[1], CLASSES, bias=False).to(x.device), loss_reduction="sum"
    )
    sgd = torch.optim.SGD(model.parameters(), lr=1.0)
    optimizer = DPOptimizer(
        sgd,
        noise_multiplier=10.0,
        max_grad_norm=1.0,
        expected_batch_size=len(x),
        loss_reduction="sum",
    )
    for start in range(0, len(x), size):
        optimizer.signal_skip_step(start + size < len(x))
        loss = cross_entropy(
            model(x[start : start + size]), y[start : start + size], reduction="sum"
        )
        torch.autograd.backward(loss)
        optimizer.step()
        optimizer.zero_grad()


def opacus_ghost(x: torch.Tensor, y: torch.Tensor) -> None:
    layer = nn.Linear(x.shape[1], CLASSES, bias=False).to(x.device)
    model = GradSampleModuleFastGradientClipping(layer, max_grad_norm=1.0, loss_reduction="sum")
    sgd = torch.optim.SGD(model.parameters(), lr=1.0)
    optimizer = DPOptimizerFastGradientClipping(
        sgd,
        noise_multiplier=10.0,
        max_grad_norm=1.0,
        expected_batch_size=len(x),
        loss_reduction="sum",
    )
    loss = DPLossFastGradientClipping(model, optimizer, nn.CrossEntropyLoss(reduction="sum"), "sum")
    loss(model(x), y).backward()
    optimizer.step()


def show(best: dict[str, float], count: int, threads: int) -> None:
    read, ghost = best["one read of the features"], best["Opacus, ghost clipping"]
    print(f"{count:,} x {DIMENSION:,} float32, {CLASSES} classes, {threads} threads")
    print(f"{'':28}{'seconds':>10}{'reads':>8}{'bar':>6}{'ghost / it':>12}{'bar':>6}")
    for way, seconds in best.items():
        bar = f"{BARS[way]:.0f}" if way in BARS else ""
        ghost_bar = f"{GHOST_BAR:.0f}" if way == "one step" else ""
        print(
            f"{way:28}{seconds:10.4f}{seconds / read:8.2f}{bar:>6}"
            f"{ghost / seconds:12.1f}{ghost_bar:>6}"
        )


if __name__ == "__main__":
    main()
