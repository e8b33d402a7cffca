"""A private step of fine-tuning against opacus.PrivacyEngine.make_private: same network, batch and
trainable set, in turns in one run.

python tests/benchmarks/bench_finetune.py [--records 250] [--rounds 3] [--threads 1 --cpu-time]
[--cases "Lite0, last block" ...]

Bars: a step takes at most as long as the faster of Opacus' two ways (hooks, ghost clipping) on the
same input, and at most half of what Opacus takes from pixels on, where the frozen part of the
network is cached.
"""

from __future__ import annotations

import argparse
import math
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from opacus import PrivacyEngine
from timm.layers import BatchNormAct2d
from torch import Tensor, nn
from torch.nn.functional import batch_norm
from torch.utils.data import DataLoader, TensorDataset

from dpladder.config.learner_sections import Lora
from dpladder.config.learners import method
from dpladder.config.model import Resources
from dpladder.learn.curator import Curator, PublicInputs, Training
from dpladder.learn.data import Data
from dpladder.learn.finetune.owners import LARGEST_BLOCK
from dpladder.learn.finetune.parts import start, tuned_model
from dpladder.learn.interface import Constants, Hyper, Weights
from dpladder.learn.queries import Query
from dpladder.learn.records import prepare
from dpladder.learn.trainings import declare
from dpladder.methods.dp_finetune import FineTune
from dpladder.methods.dp_finetune.train import train
from dpladder.network.cut import network_of
from dpladder.network.facts import INPUT
from dpladder.privacy.release.meter import Meter

CLASSES = 10
SAME, CACHED = 1.0, 2.0  # bars, in times of ours
MODES = ("hooks", "ghost")


@dataclass(frozen=True)
class Case:
    """What is trained, above which cut."""

    model: str
    weights: str
    size: int
    until: str
    trains: Any

    @property
    def learner(self) -> FineTune:
        return FineTune(
            trains=self.trains,
            bias=True,
            init="random",
            free_step=False,
            lora=Lora(rank=4, freeze="none"),
        )

    def constants(self, until: str, count: int) -> Constants:
        network = network_of(self.model, until, self.size, self.weights)
        return Constants(count, CLASSES, math.prod(network.shape), network=network)


LITE, VIT = (
    ("efficientnet_lite0", "bundled", 96, "blocks.5"),
    ("vit_tiny_patch16_224", "random", 96, "blocks.9"),
)
CASES = {
    "Lite0, head": Case(*LITE, "head"),
    "Lite0, norm and bias": Case(*LITE, "norm_and_bias"),
    "Lite0, adapters": Case(*LITE, "lora"),
    "Lite0, last block": Case(*LITE, "last_block"),
    "ViT tiny, norm and bias": Case(*VIT, "norm_and_bias"),
    "ViT tiny, adapters": Case(*VIT, "lora"),
    "ViT tiny, last block": Case(*VIT, "last_block"),
    "ViT tiny, all above the cut": Case(*VIT, ("blocks.1?.*", "norm.*")),
}


class Source:
    def stream(self, name: str, index: int) -> bytes:
        return (name * 32).encode()[:28] + index.to_bytes(4, "big")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=250)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=[*CASES])
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--gpu", type=int, default=0)
    parser.add_argument("--cpu-time", action="store_true", help="on a machine that others use too")
    asked = parser.parse_args()
    warnings.filterwarnings("ignore")
    clock = time.process_time if asked.cpu_time else time.perf_counter
    resources = Resources(threads=asked.threads, mem_mb=4000, gpu=asked.gpu)
    print(
        f"{asked.records} records, {asked.threads} threads, {prepare(resources).type}; seconds "
        "for a step"
    )
    print(
        f"{'':30}{'ours':>8}{'Opacus':>9}{'ratio':>7}{'bar':>5}"
        f"{'from pixels':>13}{'ratio':>7}{'bar':>5}"
    )
    for name in asked.cases:
        show(name, timed(contenders(CASES[name], asked.records, resources), asked.rounds, clock))


def timed(
    ways: dict[str, Callable[[], object]], rounds: int, clock: Callable[[], float]
) -> dict[str, float]:
    best = dict.fromkeys(ways, math.inf)
    for run in ways.values():
        run()  # warm up
    for _ in range(rounds):
        for way, run in ways.items():
            began = clock()
            run()
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            best[way] = min(best[way], clock() - began)
    return best


def contenders(case: Case, count: int, resources: Resources) -> dict[str, Callable[[], object]]:
    device, random = prepare(resources), np.random.default_rng(0)
    labels = random.integers(0, CLASSES, count)
    ways: dict[str, Callable[[], object]] = {}
    for until in (case.until, INPUT):
        constants = case.constants(until, count)
        top = 255.0 if until == INPUT else 1.0
        x = random.uniform(0.0, top, (count, constants.dimension)).astype(np.float32)
        for mode in MODES:
            tensors = torch.from_numpy(x).to(device), torch.from_numpy(labels).to(device)
            ways[f"{mode} {until == INPUT}"] = opacus_step(case.learner, constants, *tensors, mode)
        if until == case.until:
            ways["ours"] = our_step(case.learner, constants, Data(x, labels), resources)
    return ways


def our_step(
    learner: FineTune, constants: Constants, data: Data, resources: Resources
) -> Callable[[], object]:
    curator, known, hyper = (
        Curator(data, constants, resources),
        method("dp_finetune"),
        Hyper(0.1, 1, 1.0),
    )
    queries = known.queries(learner, hyper, constants)

    def begin(given: PublicInputs, asks: tuple[Query, ...]) -> Training[Weights]:
        return train(given, asks, learner, hyper, constants)

    def step() -> object:
        meter = Meter(declare(learner, hyper, constants).draws, Source())
        return curator.run(begin, [queries], [meter])

    return step


class Still(BatchNormAct2d):  # type: ignore[misc]
    """As it is in evaluation mode, in the training mode that Opacus' hooks ask for, and without
    buffers, which it refuses."""

    def forward(self, x: Tensor) -> Tensor:
        found = batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
        )
        return self.act(found)


def still(module: nn.Module) -> nn.Module:
    for part in module.modules():
        if type(part) is BatchNormAct2d:
            part.__class__ = Still
            held = dict(part.named_buffers())
            for name, value in held.items():
                delattr(part, name)
                setattr(part, name, value)
    return module


def opacus_step(
    learner: FineTune, constants: Constants, x: Tensor, labels: Tensor, mode: str
) -> Callable[[], object]:
    """One logical batch, in chunks of a size that fits into memory."""
    tuned = tuned_model(learner, constants).copy_to(x.device)
    tuned.set_difference(start(learner, constants, tuned).float().to(x.device))
    for weight in tuned.trained.values():
        weight.requires_grad_(True)
    module = still(tuned.module.train())
    sgd = torch.optim.SGD(tuned.trained.values(), lr=0.1, momentum=0.9)
    private = PrivacyEngine().make_private(
        module=module,
        optimizer=sgd,
        criterion=nn.CrossEntropyLoss(),
        data_loader=DataLoader(TensorDataset(x, labels), batch_size=len(x)),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        poisson_sampling=False,
        grad_sample_mode=mode,
    )
    wrapped, optimizer = private[0], private[1]
    criterion = private[2] if mode == "ghost" else nn.CrossEntropyLoss()
    chunk = LARGEST_BLOCK[x.device.type]  # as ours

    def step() -> None:
        for begin in range(0, len(x), chunk):
            part = slice(begin, begin + chunk)
            optimizer.signal_skip_step(begin + chunk < len(x))
            criterion(wrapped(x[part]), labels[part]).backward()
            optimizer.step()
            optimizer.zero_grad()

    return step


def show(name: str, best: dict[str, float]) -> None:
    ours = best["ours"]
    same, pixels = (min(best[f"{mode} {whole}"] for mode in MODES) for whole in (False, True))
    print(
        f"{name:30}{ours:8.3f}{same:9.3f}{same / ours:7.2f}{SAME:5.0f}"
        f"{pixels:13.3f}{pixels / ours:7.2f}{CACHED:5.0f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
