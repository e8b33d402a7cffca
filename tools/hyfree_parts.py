"""HyFreeDP as published, as dpladder has it, and what each change is worth. Public data, seeded.

python tools/hyfree_parts.py [mnist5k-112 digits] [--epsilons 0.5 1 4] [--repeats 10]
[--only "ours" "Laplace losses"] [--rate 0.25] [--cache FOLDER]

The whole total in one training of 50 steps, which looks at the losses at every fifth, each at the
same price. Mean and deviation over repeats, whose noise differs and whose records are the same.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

from arena import load, with_units
from terminal import print_head, print_row, read_options, totals
from trainings import accuracy, mean_and_sd, trained, training_for

from dpladder.methods.hyfree_dp import train as own
from dpladder.methods.hyfree_dp.section import HyperparameterFree
from dpladder.research.contest import Arena

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
    asked = read_options(
        __doc__,
        choices={"only": [*COMPARED]},
        problems=["mnist5k-112", "digits"],
        epsilons=[0.5, 1.0, 4.0],
        repeats=10,
        only=[*COMPARED],
        rate=1.0,
        threads=1,
        cache=Path,
    )
    print_head("data", "what", *totals(asked.epsilons))
    for problem in asked.problems:
        arena = with_units(load(problem, asked.cache, asked.threads, 0))
        for about in asked.only:
            said, guards = COMPARED[about]
            learner = HyperparameterFree.model_validate(said | {"sampling_rate": asked.rate})
            with ExitStack() as stack:
                for name, value in guards.items():
                    stack.enter_context(patch.object(own, name, value))
                cells = [cell(arena, learner, one, asked.repeats) for one in asked.epsilons]
            print_row(problem, about, *cells)


def cell(arena: Arena, learner: HyperparameterFree, epsilon: float, repeats: int) -> str:
    training = training_for(arena, learner, epsilon)
    names = [f"{epsilon} {repeat}" for repeat in range(repeats)]
    return mean_and_sd([accuracy(arena, trained(arena, training, name)) for name in names])


if __name__ == "__main__":
    main()
