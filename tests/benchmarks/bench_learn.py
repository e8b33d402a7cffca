"""One full-batch private step against the matrix products that it cannot do without, and against
Opacus, in turns in one run.

python tests/benchmarks/bench_learn.py [--shape wide|narrow] [--rounds 9] [--threads 1]

The floor is the two products of a step, weights with features and residuals with features, each by
the fastest of the libraries at hand (MKL and oneDNN through torch, OpenBLAS through NumPy), in
either orientation, at once or in the engine's chunks; or one read of the features, where that takes
longer. So it means the same on every processor; ONEDNN_MAX_CPU_ISA=AVX2,
MKL_ENABLE_INSTRUCTIONS=AVX2 and NPY_DISABLE_CPU_FEATURES=X86_V4 try those without AVX-512. One
thread is timed by its own CPU time, several by the clock.

Which products are the fastest is found first. Then these and all steps are timed in turns, and a
step is compared with its floor within each turn: the fastest time of a dozen ways would be the
luckiest of many times, and that of a step the luckiest of few.

Exact logits are those whose order of adding up cannot matter: rows of 16 bits, weights of 24, in
float64, where every partial sum stays below 2^53. They stand here to be compared with "forward 1".

Bars: of the wide shape (50,000 x 1,280 float32, 10 classes) a step takes at most 1.3 times that
floor, 32 trials together at most 1.2 times theirs. Of the narrow one (800,000 x 40, 2 classes) a
step takes at most 2.5 times its floor: softmax and norms read as many numbers as the products do.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from statistics import median

import numpy as np
import torch
from numpy.typing import NDArray
from opacus import GradSampleModule
from opacus.grad_sample import GradSampleModuleFastGradientClipping
from opacus.optimizers import DPOptimizer, DPOptimizerFastGradientClipping
from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping
from threadpoolctl import threadpool_limits
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from dpladder.config.learners import method
from dpladder.config.model import Resources
from dpladder.learn.curator import Curator, PublicInputs, Training
from dpladder.learn.data import Data
from dpladder.learn.descent import descend, momentum
from dpladder.learn.interface import Constants, Hyper
from dpladder.learn.queries import GradientSum, Query, declared
from dpladder.learn.records import Records, prepare
from dpladder.methods.dp_gd import Descent
from dpladder.privacy.release.meter import Meter

TRIALS = 32
READ, PEER = "one read of the features", "Opacus, ghost clipping"
TOGETHER = f"{TRIALS} together"
STEPS = {1: 4, TRIALS: 2}  # of a training that is timed
# each way with the trials whose floor it is held to
HELD = {"one step": 1, "one step, saturated": 1, TOGETHER: TRIALS}

EXACT = ("exact logits, rows kept in float64", "exact logits, rows kept in 16 bits")

Run = Callable[[], object]
Times = Mapping[str, NDArray[np.float64]]
Multiply = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Shape:
    """Records of so many numbers and classes, and how many floors a step, and steps together, may
    take; 0 for any number."""

    records: int
    width: int
    classes: int
    step: float
    together: float


SHAPES = {
    "wide": Shape(50_000, 1280, 10, 1.3, 1.2),
    "narrow": Shape(800_000, 40, 2, 2.5, 0.0),
}


class Source:
    def stream(self, name: str, index: int) -> bytes:
        return (name * 32).encode()[:28] + index.to_bytes(4, "big")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shape", choices=[*SHAPES], default="wide")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    warnings.filterwarnings("ignore", category=UserWarning)
    clock = time.process_time if asked.threads == 1 else time.perf_counter
    shape = SHAPES[asked.shape]
    ways, products = contenders(shape, Resources(threads=asked.threads, mem_mb=8000))
    with threadpool_limits(asked.threads):
        for product, by in products.items():
            tried = in_turns(by, asked.rounds, clock)
            way = min(tried, key=lambda way: median(tried[way]))
            print(f"{product:24}{median(tried[way]):10.4f}  {way}")
            ways[product] = by[way]
        times = in_turns(ways, asked.rounds, clock)
    print(
        f"{shape.records:,} x {shape.width:,} float32, {shape.classes} classes, {asked.threads} "
        "threads"
    )
    return 0 if show(times, shape) else 1


def in_turns(ways: Mapping[str, Run], rounds: int, clock: Callable[[], float]) -> Times:
    """The seconds of each way, round by round."""
    times: dict[str, list[float]] = {way: [] for way in ways}
    for turn in range(-1, rounds):
        for way, run in ways.items():
            start = clock()
            run()
            if turn >= 0:  # the first one warms up
                times[way].append(clock() - start)
    return {way: np.array(seconds) for way, seconds in times.items()}


def contenders(
    shape: Shape, resources: Resources
) -> tuple[dict[str, Run], dict[str, dict[str, Run]]]:
    """What is timed, and every way to multiply."""
    device = prepare(resources)
    random, count, width = np.random.default_rng(0), shape.records, shape.width
    features = random.standard_normal((count, width), dtype=np.float32) / width**0.5
    data = Data(features, random.integers(0, shape.classes, count))
    constants = Constants(n0=count, classes=shape.classes, dimension=width)
    curator = Curator(data, constants, resources)
    records = curator._records()
    x, y = records.features[:count, 0], records.labels[:count]

    def ours(trials: int, start: float) -> None:
        learner, hyper = Descent(), Hyper(1.0, STEPS[trials], 0.3)
        queries = method("dp_gd").queries(learner, hyper, constants)
        draws = declared(queries, constants).draws
        meters = [Meter(draws, Source()) for _ in range(trials)]
        first = start * torch.eye(shape.classes, width, device=device)

        def begin(_: PublicInputs, asks: tuple[Query, ...]) -> Training[NDArray[np.float32]]:
            (asked,) = asks
            assert isinstance(asked, GradientSum)
            return descend(asked, first, hyper, learner, constants, momentum(learner.momentum))

        curator.run(begin, [queries] * trials, meters)
        torch.set_num_threads(resources.threads)

    ways: dict[str, Run] = {
        READ: lambda: x.sum().item(),
        "one step": partial(ours, 1, 0.0),
        "one step, saturated": partial(ours, 1, 3e3),
        TOGETHER: partial(ours, TRIALS, 0.0),
        **dict(zip(EXACT, exact_logits(x, records.chunk, shape.classes), strict=True)),
        PEER: partial(opacus_ghost, x, y, shape.classes),
    }
    products = {
        product: ways
        for trials in STEPS
        for product, ways in products_of(records, trials, shape.classes).items()
    }
    return ways, products


def products_of(records: Records, trials: int, classes: int) -> dict[str, dict[str, Run]]:
    """Every way to multiply some trials' weights, and their residuals, by the features."""
    rows = trials * classes
    x = records.features[:, 0]
    weights, residuals = torch.randn(rows, x.shape[1]), torch.randn(rows, len(x))
    chunks = [part.contiguous() for part in torch.split(residuals, records.chunk, 1)]
    forward, backward = floor_of(trials)
    ways: dict[str, dict[str, Run]] = {forward: {}, backward: {}}
    for size, parts in (("at once", [residuals]), ("in chunks", chunks)):
        own = torch.split(x, parts[0].shape[1])
        pairs = {
            forward: [(weights, one.T) for one in own],
            backward: [*zip(parts, own, strict=True)],
        }
        for library, multiply in LIBRARIES.items():
            for product, operands in pairs.items():
                ways[product][f"{library}, {size}"] = partial(each, multiply, operands)
    return ways


def exact_logits(x: Tensor, chunk: int, classes: int) -> list[Run]:
    """Of one head. Rows of 16 bits take half of the memory of float32, and are widened at each
    step; in float64 they take twice as much."""
    short = (x * ((2**15 - 1) / x.abs().max())).round().to(torch.int16)
    whole, weights = short.double(), (torch.randn(classes, x.shape[1]) * 2**20).round().double()
    kept = [(part, weights.T) for part in torch.split(whole, chunk)]
    widened = torch.split(short, chunk)
    return [
        partial(each, BY["torch"], kept),
        lambda: [part.double() @ weights.T for part in widened],
    ]


def floor_of(trials: int) -> tuple[str, str]:
    """The two products of a step."""
    return f"forward {trials}", f"backward {trials}"


def each(multiply: Multiply, pairs: list[tuple[Tensor, Tensor]]) -> None:
    for left, right in pairs:
        multiply(left, right)


def onednn(left: Tensor, right: Tensor) -> Tensor:
    product: Tensor = torch.ops.mkldnn._linear_pointwise(left, right.T, None, "none", [], "")
    return product


def turned(multiply: Multiply) -> Multiply:
    """The other orientation of the same product."""
    return lambda left, right: multiply(right.T, left.T)


BY: dict[str, Multiply] = {
    "torch": lambda left, right: left @ right,
    "oneDNN": onednn,
    "NumPy": lambda left, right: left.numpy() @ right.numpy(),
}
LIBRARIES = BY | {f"{library} turned": turned(multiply) for library, multiply in BY.items()}


def opacus_hooks(x: Tensor, y: Tensor, classes: int = 10, size: int = 2500) -> None:
    """Per-record gradients, in batches that fit into memory."""
    model = GradSampleModule(
        nn.Linear(x.shape[1], classes, bias=False).to(x.device), loss_reduction="sum"
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


def opacus_ghost(x: Tensor, y: Tensor, classes: int = 10) -> None:
    layer = nn.Linear(x.shape[1], classes, bias=False).to(x.device)
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


def show(times: Times, shape: Shape) -> bool:
    """Whether the bars hold. A floor is the two products, or a read."""
    floors = {
        trials: np.maximum(sum(times[product] for product in floor_of(trials)), times[READ])
        for trials in STEPS
    }
    print(f"{'':36}{'seconds':>10}{'floors':>8}{'half of turns':>16}{'bar':>6}{'Opacus / it':>13}")
    met = True
    bars = {1: shape.step, TRIALS: shape.together}
    for way in (READ, *HELD, *EXACT, PEER):
        trials = HELD.get(way, 1)
        bar = bars[trials] if way in HELD else 0.0
        seconds = times[way] / (STEPS[trials] if way in HELD else 1)
        low, ratio, high = np.quantile(seconds / floors[trials], (0.25, 0.5, 0.75))
        peer = median(times[PEER] * trials / seconds)
        met &= not bar or ratio <= bar
        told = f"{bar:.1f}" if bar else ""
        between = f"{low:.2f} to {high:.2f}"
        print(f"{way:36}{median(seconds):10.4f}{ratio:8.2f}{between:>16}{told:>6}{peer:13.1f}")
    return bool(met)


if __name__ == "__main__":
    raise SystemExit(main())
