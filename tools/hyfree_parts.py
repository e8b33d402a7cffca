"""HyFreeDP as published, as dpladder has it, and what each change is worth. Public data, seeded.

python tools/hyfree_parts.py [mnist5k-112 digits] [--epsilons 0.5 1 4] [--repeats 10]
[--only "ours" "Laplace losses"] [--rate 0.25] [--cache FOLDER]

The whole total in one training of 50 steps, which looks at the losses at every fifth, each at the
same price. Mean and deviation over repeats, whose noise differs and whose records are the same.
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

import numpy as np
from arena import DATA, DELTA, load
from batch_size import with_units

from dpladder.config.sweep_sections import Search
from dpladder.learn.scorers import ClassScorer
from dpladder.methods.hyfree_dp import train as own
from dpladder.methods.hyfree_dp.section import HyperparameterFree
from dpladder.privacy.accounting import booking
from dpladder.privacy.accounting.booking import Entry
from dpladder.research.contest import Arena, PublicMeter
from dpladder.search.space import Space
from dpladder.search.training import training_of

ADAMW: dict[str, object] = {"optimizer": "adamw", "weight_decay": 0.01}
FIVE: dict[str, object] = {"points": 5}
LOW: dict[str, object] = {"eta": 1e-4}
PUBLISHED: dict[str, object] = {"steering": "published"}
# What is said in the config, and what of the guards is taken away.
COMPARED: dict[str, tuple[dict[str, object], dict[str, float]]] = {
    "ours": ({}, {}),
    "the last loss is the bound": ({}, {"ROOM": 1.0}),
    "every look is believed": ({}, {"SURE": 0.0}),
    "a rate moves as far as it likes": ({}, {"FACTOR": 1e12}),
    "steering: published": (PUBLISHED, {}),
    "Laplace losses": ({"loss_noise": "laplace"}, {}),
    "five points": (FIVE, {}),
    "a first rate of 1e-4": (LOW, {}),
    "AdamW, decay 0.01": (ADAMW, {}),
    "AdamW, decay 0.01, a first rate of 1e-4": (ADAMW | LOW, {}),
    "as published": (PUBLISHED | FIVE | ADAMW | LOW, {}),
    "as published, steered as ours": (FIVE | ADAMW | LOW, {}),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("problems", nargs="*", default=["mnist5k-112", "digits"])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.5, 1.0, 4.0])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--only", nargs="+", default=[*COMPARED], choices=[*COMPARED])
    parser.add_argument("--rate", type=float, default=1.0, help="of Poisson samples")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cache", type=Path, help="where extracted features stay between runs")
    asked = parser.parse_args()
    if unknown := set(asked.problems) - set(DATA):
        parser.error(f"no data called {', '.join(sorted(unknown))}; there are {', '.join(DATA)}")
    print(f"| data | what | {' | '.join(f'ε = {epsilon:g}' for epsilon in asked.epsilons)} |")
    print(f"|---|---|{'---|' * len(asked.epsilons)}", flush=True)
    for problem in asked.problems:
        arena = with_units(load(problem, asked.cache, asked.threads, 0))
        for about in asked.only:
            said, guards = COMPARED[about]
            learner = HyperparameterFree.model_validate(said | {"sampling_rate": asked.rate})
            with ExitStack() as stack:
                for name, value in guards.items():
                    stack.enter_context(patch.object(own, name, value))
                cells = [cell(arena, learner, one, asked.repeats) for one in asked.epsilons]
            print(f"| {problem} | {about} | {' | '.join(cells)} |", flush=True)


def cell(arena: Arena, learner: HyperparameterFree, epsilon: float, repeats: int) -> str:
    space = Space(Search(), learner, arena.constants)
    delta0 = (
        booking.delta0_of(DELTA, booking.FINAL, booking.SAMPLED_SHARE)
        if learner.sampling_rate < 1.0
        else 0.0
    )
    mu = booking.largest_mu(epsilon, DELTA, Entry(delta0=delta0))
    training = training_of(space, None, Entry(mu, delta0=delta0))
    found = []
    for repeat in range(repeats):
        meter = PublicMeter(training.declared.draws, arena, f"{epsilon} {repeat}")
        weights = training.run(arena.train, meter, arena.resources)
        right = ClassScorer().count(weights, arena.test.features, arena.test.labels)
        found.append(right / len(arena.test.labels))
    return f"{np.mean(found):.3f} ± {np.std(found, ddof=1):.3f}"


if __name__ == "__main__":
    main()
