"""What privacy costs in time, learner by learner and search by search, as ratios of CPU seconds:
wall time tells of a machine's other work, ratios in one process do not.

python tools/overhead.py [--records 4000] [--rounds 5] [--repeats 10] [--epsilon 4] [--cache FOLDER]

A learner's training is told in times of the plain one: full-batch descent of the same head by
torch, 50 steps with momentum and without privacy; dp_mlp's of the same two layers. Opacus takes as
many steps. All of them on one thread and the same random features, each at the least of several
rounds. A search is told in times of one training at the prior's kappa, mean over repeats, each
alone, on the features of mnist5k.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from arena import load
from terminal import print_head, print_row, read_options
from torch import nn
from torch.nn.functional import cross_entropy

from dpladder.config.learners import METHODS
from dpladder.learn.trainings import declare, train
from dpladder_papers.methods.dp_mlp import HiddenLayer

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "benchmarks"))
from bench_learn import Source, opacus_ghost, opacus_hooks

from dpladder.config.learner_sections import Tuning
from dpladder.config.learners import learner_of
from dpladder.config.model import Resources
from dpladder.config.sweep_sections import Search
from dpladder.learn.data import Data
from dpladder.learn.interface import Constants, Hyper
from dpladder.learn.perceptron import Perceptron
from dpladder.methods.dp_gd import Descent
from dpladder.privacy.release.meter import Meter
from dpladder.research.arena import Arena
from dpladder.search.prior import with_prior
from dpladder.search.protocol import Setting
from dpladder_papers.methods.dp_mlp.train import layers
from dpladder_papers.research.contest import Competitor, answer, start_search
from dpladder_papers.research.contestants import HYPERPARAMETER_FREE, entry
from dpladder_papers.research.ladder import LadderSearcher

CLASSES = 10
STEPS, NEWTON = 50, 10
WIDTHS = (1280, 112)
ONE_RUN_SECONDS = 5.0  # CPU seconds for one line, above which it is not timed again
WIDE = 200  # features, above which these take minutes
SLOW = ("dp_mlp", "dp_ls", "dp_newton", "dp_fc")
PLAIN, PLAIN_MLP = "plain descent, no privacy", "plain descent of two layers"
ONCE = {"one_step": 1, "dp_prototypes": 1, "dp_ls": 1, "dp_newton": NEWTON}
# Those of a network are timed in bench_finetune.py.
LEARNT: dict[str, dict[str, object]] = {
    name: {"name": name} for name in METHODS if not isinstance(learner_of({"name": name}), Tuning)
}
LEARNT["hyfree_dp, losses at every step"] = {"name": "hyfree_dp", "every": 1}
SEARCHED = (
    *("prior", "ladder", HYPERPARAMETER_FREE, "naive_composition", "koskela_kulkarni"),
    *("papernot_steinke", "liu_talwar", "dp_hypo", "propose_test"),
)
DEMO = ((0.05, 3), (0.1, 3))


def main() -> None:
    options = read_options(__doc__, records=4000, rounds=5, repeats=10, epsilon=4.0, cache=Path)
    warnings.filterwarnings("ignore", category=UserWarning)
    torch.set_num_threads(1)
    print_head("way", "steps", *(f"{width} features" for width in WIDTHS))
    # each width in turn, and every way of it in turn, so that all see the machine alike
    spent = {width: least(ways(options.records, width), options.rounds) for width in WIDTHS}
    for way in spent[min(WIDTHS)]:
        than = PLAIN_MLP if way == "dp_mlp" else PLAIN
        cells = [f"{by[way] / by[than]:.2f}" if way in by else "–" for by in spent.values()]
        print_row(way, ONCE.get(way, STEPS), *cells)
    print()
    print_head("search", "trainings", "CPU time")
    time_searches(load("mnist5k", options.cache, threads=1), options.epsilon, options.repeats)


def least(ways: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """CPU seconds of each, at the least of the rounds that it is worth."""
    spent: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, run in ways.items():
            if sum(spent[way]) < ONE_RUN_SECONDS:
                start = time.process_time()
                run()
                spent[way].append(time.process_time() - start)
    return {way: min(seconds) for way, seconds in spent.items()}


def ways(records: int, width: int) -> dict[str, Callable[[], object]]:
    random = np.random.default_rng(0)
    features = random.standard_normal((records, width), dtype=np.float32) / width**0.5
    data = Data(features, random.integers(0, CLASSES, records))
    x, y = torch.from_numpy(features), torch.from_numpy(data.labels)
    constants = Constants(n0=records, classes=CLASSES, dimension=width)
    head = nn.Linear(width, CLASSES, bias=False)
    runs: dict[str, Callable[[], object]] = {
        PLAIN: partial(descend, head, x, y),
        "Opacus, ghost clipping": partial(repeated, opacus_ghost, x, y),
        "Opacus, hooks": partial(repeated, opacus_hooks, x, y),
        **{
            way: partial(train_released, section, data, constants)
            for way, section in LEARNT.items()
            if width < WIDE or way not in SLOW
        },
    }
    if width < WIDE:
        layers_plain = Perceptron(layers(HiddenLayer(), constants), False)
        runs[PLAIN_MLP] = partial(descend, layers_plain, x, y)
    return runs


def repeated(step: Callable[..., None], x: torch.Tensor, y: torch.Tensor) -> None:
    for _ in range(STEPS):
        step(x, y)


def descend(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(STEPS):
        optimizer.zero_grad()
        torch.autograd.backward(cross_entropy(model(x), y))
        optimizer.step()


def train_released(section: Mapping[str, object], data: Data, constants: Constants) -> None:
    """A whole training as a release makes it, its hardened noise and loading of the records
    included."""
    learner = learner_of(section)
    hyper = Hyper(0.1, ONCE.get(learner.name, STEPS), 0.3)
    meter = Meter(declare(learner, hyper, constants).draws, Source())
    train(data, hyper, learner, constants, meter, Resources(threads=1, mem_mb=8000))


def time_searches(arena: Arena, epsilon: float, repeats: int) -> None:
    """What they ask for, trained and scored: nothing here is secret, so none is padded."""
    setting = Setting(epsilon, with_prior(Search(), Descent(), True), arena.constants, centred=True)
    entries = {name: entry(name, setting, Descent()) for name in SEARCHED}
    two = replace(entries["ladder"], name="demo", way=LadderSearcher(DEMO))
    entries["two rungs of three"] = two
    search(arena, entries["prior"], 0)  # warm up
    means = {
        name: np.mean([search(arena, one, again) for again in range(repeats)], axis=0)
        for name, one in entries.items()
    }
    for name, (trainings, seconds) in means.items():
        print_row(name, f"{trainings:.1f}", f"{seconds / means['prior'][1]:.1f}")


def search(arena: Arena, one: Competitor, repeat: int) -> tuple[float, float]:
    """Trainings, and CPU seconds."""
    run, start = start_search(arena, one, repeat), time.process_time()
    while run.asks:
        answer(arena, [run])
    return run.trainings, time.process_time() - start


if __name__ == "__main__":
    main()
