"""Does the full batch beat Poisson samples at equal epsilon? The rule of
config/examples/batch_size.yaml in one process.

python tools/batch_size.py [mnist5k] [--epsilons 1] [--repeats 3] [--cache FOLDER]

Each rate is booked as in a release; its r is the best of three, by the mean over repeats, so that
no rate suffers from the others' choice. Public data, seeded.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from arena import load, with_units
from terminal import print_head, print_row, read_options
from trainings import accuracy, mean_and_sd, trained, training_for

from dpladder.methods.dp_gd.section import Descent
from dpladder.research.contest import Arena
from dpladder.search.prior import prior_of_learner

RATES = (1.0, 0.5, 0.2, 0.05)
AROUND = (0.5, 1.0, 2.0)  # the prior's median


def accuracies(
    arena: Arena, rate: float, epsilon: float, around: float, repeats: int
) -> list[float]:
    learner = Descent(sampling_rate=rate)
    kappa = around * prior_of_learner(learner.name, centred=True).median
    training = training_for(arena, learner, epsilon, kappa)
    names = [f"{rate} {epsilon} {around} {repeat}" for repeat in range(repeats)]
    return [accuracy(arena, trained(arena, training, name)) for name in names]


def main() -> None:
    asked = read_options(
        __doc__, problem="mnist5k", epsilons=[1.0], repeats=3, threads=2, cache=Path
    )
    arena = with_units(load(asked.problem, asked.cache, asked.threads, 0))
    print_head("sampling rate", *(f"total ε = {epsilon:g}" for epsilon in asked.epsilons))
    for rate in RATES:
        cells = []
        for epsilon in asked.epsilons:
            tried = [accuracies(arena, rate, epsilon, around, asked.repeats) for around in AROUND]
            cells.append(mean_and_sd(max(tried, key=np.mean)))
        print_row(f"{rate:g}", *cells)


if __name__ == "__main__":
    main()
