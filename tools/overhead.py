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
from dpladder.methods.dp_mlp.section import HiddenLayer

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "benchmarks"))
from bench_learn import CLASSES, Source, opacus_ghost, opacus_hooks

from dpladder.config.learner_sections import Tuning
from dpladder.config.learners import learner_of
from dpladder.config.model import Resources
from dpladder.config.sweep_sections import Search
from dpladder.learn.data import Data
from dpladder.learn.interface import Constants, Hyper
from dpladder.learn.perceptron import Perceptron
from dpladder.methods.dp_gd.section import Descent
from dpladder.methods.dp_mlp.queries import layers
from dpladder.privacy.release.meter import Meter
from dpladder.research.contest import Arena, Competitor, answer, start_search
from dpladder.research.contestants import HYPERPARAMETER_FREE, entry
from dpladder.research.ladder import LadderSearcher
from dpladder.search.prior import with_prior
from dpladder.search.protocol import Setting

STEPS, NEWTON = 50, 10
WIDTHS = (1280, 112)
ENOUGH = 5.0  # CPU seconds for one line, above which it is not timed again
WIDE = 200  # features, above which these take minutes
SLOW = ("dp_mlp", "dp_ls", "dp_newton", "dp_fc")
PLAIN, PLAIN_MLP = "plain descent, no privacy", "plain descent of two layers"
ONCE = {"one_step": 1, "dp_prototypes": 1, "dp_ls": 1, "dp_newton": NEWTON}
VARIANTS: dict[str, dict[str, str | int]] = {
    "hyfree_dp, losses at every step": {"name": "hyfree_dp", "every": 1}
}
# Those of a network are timed in bench_finetune.py.
LEARNT = [name for name in METHODS if not isinstance(learner_of({"name": name}), Tuning)]
SEARCHED = (
    *("prior", "ladder", HYPERPARAMETER_FREE, "naive_composition", "koskela_kulkarni"),
    *("papernot_steinke", "liu_talwar", "dp_hypo", "propose_test"),
)
DEMO = ((0.05, 3), (0.1, 3))


def main() -> None:
    asked = read_options(__doc__, records=4000, rounds=5, repeats=10, epsilon=4.0, cache=Path)
    warnings.filterwarnings("ignore", category=UserWarning)
    torch.set_num_threads(1)
    print_head("way", "steps", *(f"{width} features" for width in WIDTHS))
    of_learners(asked.records, asked.rounds)
    print()
    print_head("search", "trainings", "CPU time")
    of_searches(load("mnist5k", asked.cache, 1, 0), asked.epsilon, asked.repeats)


def of_learners(records: int, rounds: int) -> None:
    """Each width in turn, and every way of it in turn, so that all see the machine alike."""
    found = {width: least(ways(records, width), rounds) for width in WIDTHS}
    for way in found[min(WIDTHS)]:
        than = PLAIN_MLP if way == "dp_mlp" else PLAIN
        cells = [f"{own[way] / own[than]:.2f}" if way in own else "–" for own in found.values()]
        print_row(way, ONCE.get(way, STEPS), *cells)


def least(asked: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """CPU seconds of each, at the least of the rounds that it is worth."""
    found: dict[str, list[float]] = {way: [] for way in asked}
    for _ in range(rounds):
        for way, run in asked.items():
            if sum(found[way]) < ENOUGH:
                start = time.process_time()
                run()
                found[way].append(time.process_time() - start)
    return {way: min(spent) for way, spent in found.items()}


def ways(records: int, width: int) -> dict[str, Callable[[], object]]:
    random = np.random.default_rng(0)
    features = random.standard_normal((records, width), dtype=np.float32) / width**0.5
    data = Data(features, random.integers(0, CLASSES, records))
    x, y = torch.from_numpy(features), torch.from_numpy(data.labels)
    constants = Constants(n0=records, classes=CLASSES, dimension=width)
    few = [name for name in LEARNT if width < WIDE or name not in SLOW]
    asked = {name: {"name": name} for name in few} | VARIANTS
    head = nn.Linear(width, CLASSES, bias=False)
    found: dict[str, Callable[[], object]] = {
        PLAIN: partial(plain, head, x, y),
        "Opacus, ghost clipping": partial(repeated, partial(opacus_ghost, x, y)),
        "Opacus, hooks": partial(repeated, partial(opacus_hooks, x, y)),
        **{way: partial(trained, section, data, constants) for way, section in asked.items()},
    }
    if "dp_mlp" in few:
        found[PLAIN_MLP] = partial(plain, Perceptron(layers(HiddenLayer(), constants), False), x, y)
    return found


def plain(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(STEPS):
        optimizer.zero_grad()
        torch.autograd.backward(cross_entropy(model(x), y))
        optimizer.step()


def repeated(step: Callable[[], object]) -> None:
    for _ in range(STEPS):
        step()


def trained(section: Mapping[str, object], data: Data, constants: Constants) -> None:
    """A whole training as a release makes it, its hardened noise and loading of the records
    included."""
    learner = learner_of(section)
    hyper = Hyper(0.1, ONCE.get(learner.name, STEPS), 0.3)
    meter = Meter(declare(learner, hyper, constants).draws, Source())
    train(data, hyper, learner, constants, meter, Resources(threads=1, mem_mb=8000))


def of_searches(arena: Arena, epsilon: float, repeats: int) -> None:
    """What they ask for, trained and scored: nothing here is secret, so none is padded."""
    setting = Setting(epsilon, with_prior(Search(), Descent(), True), arena.constants, centred=True)
    asked = {name: entry(name, setting, Descent()) for name in SEARCHED}
    asked["two rungs of three"] = replace(asked["ladder"], name="demo", way=LadderSearcher(DEMO))
    least({"": partial(searched, arena, asked["prior"], 0)}, 1)  # warm up
    each = {
        name: [searched(arena, one, again) for again in range(repeats)]
        for name, one in asked.items()
    }
    means = {name: np.mean(found, axis=0) for name, found in each.items()}
    for name, (trainings, seconds) in means.items():
        print_row(name, f"{trainings:.1f}", f"{seconds / means['prior'][1]:.1f}")


def searched(arena: Arena, one: Competitor, repeat: int) -> tuple[float, float]:
    """Trainings, and CPU seconds."""
    run = start_search(arena, one, repeat)
    start = time.process_time()
    while run.asks:
        answer(arena, [run])
    return run.trainings, time.process_time() - start


if __name__ == "__main__":
    main()
