"""Does the full batch beat Poisson samples at equal epsilon? The rule of
config/examples/batch_size.yaml in one process.

python tools/batch_size.py [mnist5k] [--epsilons 1] [--repeats 3] [--cache FOLDER]

Each rate is booked as in a release; its r is the best of three, by the mean over repeats, so that
no rate suffers from the others' choice. Public data, seeded.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from arena import DATA, DELTA, load

from dpladder.config.sweep_sections import Search
from dpladder.learn.scorers import ClassScorer
from dpladder.methods.dp_gd.section import Descent
from dpladder.privacy.accounting import booking
from dpladder.privacy.accounting.booking import Entry
from dpladder.research.contest import Arena, PublicMeter
from dpladder.search.prior import prior_of_learner
from dpladder.search.space import Space
from dpladder.search.training import training_of

RATES = (1.0, 0.5, 0.2, 0.05)
AROUND = (0.5, 1.0, 2.0)  # the prior's median


def accuracies(
    arena: Arena, rate: float, epsilon: float, around: float, repeats: int
) -> list[float]:
    learner, search = Descent(sampling_rate=rate), Search()
    space = Space(search, learner, arena.constants)
    delta0 = 0.0 if rate == 1.0 else booking.delta0_of(DELTA, booking.FINAL, booking.SAMPLED_SHARE)
    mu = booking.largest_mu(epsilon, DELTA, Entry(delta0=delta0))
    r = space.r(around * prior_of_learner(learner.name, centred=True).median, mu)
    training = training_of(space, r, Entry(mu, delta0=delta0))
    found = []
    for repeat in range(repeats):
        meter = PublicMeter(training.declared.draws, arena, f"{rate} {epsilon} {around} {repeat}")
        weights = training.run(arena.train, meter, arena.resources)
        right = ClassScorer().count(weights, arena.test.features, arena.test.labels)
        found.append(right / len(arena.test.labels))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("problem", nargs="?", default="mnist5k", choices=DATA)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cache", type=Path, help="where extracted features stay between runs")
    asked = parser.parse_args()
    arena = with_units(load(asked.problem, asked.cache, asked.threads, 0))
    print(
        f"| sampling rate | {' | '.join(f'total ε = {epsilon:g}' for epsilon in asked.epsilons)} |"
    )
    print(f"|---|{'---|' * len(asked.epsilons)}", flush=True)
    for rate in RATES:
        cells = []
        for epsilon in asked.epsilons:
            tried = [accuracies(arena, rate, epsilon, around, asked.repeats) for around in AROUND]
            best = max(tried, key=np.mean)
            cells.append(f"{np.mean(best):.3f} ± {np.std(best, ddof=1):.3f}")
        print(f"| {rate:g} | {' | '.join(cells)} |", flush=True)


def with_units(arena: Arena) -> Arena:
    """Each record is a unit."""
    numbers = np.arange(len(arena.train.labels), dtype=np.uint64)
    units = np.stack([numbers, numbers], axis=1).view(np.uint8)
    return replace(arena, train=replace(arena.train, units=units))


if __name__ == "__main__":
    main()
