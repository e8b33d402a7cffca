"""How good is what Ding & Wu's tests choose, by the number of parts and a round's epsilon? Public
data, seeded.

python tools/simulate_tests.py [digits] [--candidates 8] [--parts 10 30 100] [--repeats 500]
[--cache FOLDER]

As in their simulations Train is not private: every candidate is trained on every part without noise
worth its name, and only the tests are noised, by the search's own rule. A cell is the mean utility
of what is chosen; beside it, the best and the mean of the candidates.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from arena import load
from terminal import print_head, print_row, read_options

from dpladder.config.sweep_sections import Search
from dpladder.methods.dp_gd import Descent
from dpladder.privacy.arrays import Floats
from dpladder.research.arena import Arena, bench_of
from dpladder.research.without_noise import OPEN
from dpladder.search.bench import NamedAsk, answers
from dpladder.search.protocol import Ask
from dpladder.search.space import Space
from dpladder_papers.searches.propose_test import ProposeTest
from dpladder_papers.searches.propose_test.search import last_above_threshold

EPSILONS = (0.1, 0.5, 1.0, 5.0, 20.0)
ROUNDS = 20
ASIDE = 5  # one record in so many


def main() -> None:
    options = read_options(
        __doc__, problem="digits", candidates=8, parts=[10, 30, 100], repeats=500, cache=Path
    )
    arena = load(options.problem, options.cache, "public")
    random, start = np.random.default_rng(0), 1 / arena.constants.classes
    print_head("parts", "best", "mean", *(f"ε₀ = {epsilon:g}" for epsilon in EPSILONS))
    for parts in options.parts:
        worth = utilities(arena, parts, options.candidates)
        moves = max(1 / parts, ASIDE / arena.constants.n0)
        cells = [
            np.mean([chosen(worth, moves / one, start, random) for _ in range(options.repeats)])
            for one in EPSILONS
        ]
        print_row(parts, *map(float, (worth.max(), worth.mean(), *cells)))


def utilities(arena: Arena, parts: int, candidates: int) -> Floats:
    """Mean accuracy over the parts' models on records set aside, for r spread evenly over all that
    the search may reach."""
    space, rows = Space(Search(), Descent(), arena.constants), np.arange(len(arena.train.labels))
    aside, share = rows % ASIDE == 0, (1 - 1 / ASIDE) / parts
    places = [space.clamp(r) for r in np.geomspace(*space.reach(), candidates).tolist()]
    asks = [
        Ask(r, OPEN, ~aside & (rows // ASIDE % parts == part), aside, share)
        for part in range(parts)
        for r in places
    ]
    named = [
        NamedAsk(f"{parts} {place}", ask, space.learner, space.search)
        for place, ask in enumerate(asks)
    ]
    correct = [answer.correct for answer in answers(bench_of(arena), named)[0]]
    means: Floats = np.reshape(correct, (parts, candidates)).mean(axis=0) / aside.sum()
    return means


def chosen(worth: Floats, scale: float, start: float, random: np.random.Generator) -> float:
    """What the search's own rule chooses (search/propose_test.py), with its noise; the candidates
    in any order."""
    order = random.permutation(len(worth))
    noised = worth[order] + random.laplace(scale=4 * scale, size=(ROUNDS, len(worth)))
    levels = random.laplace(scale=2 * scale, size=ROUNDS)
    return float(worth[order[last_above_threshold(noised, levels, start, ProposeTest().step)]])


if __name__ == "__main__":
    main()
