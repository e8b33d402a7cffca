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
from dpladder.methods.dp_gd.section import Descent
from dpladder.privacy.arrays import Floats
from dpladder.research.contest import Arena, bench_of
from dpladder.research.without_noise import OPEN
from dpladder.search.bench import NamedAsk, answers
from dpladder.search.protocol import Ask
from dpladder.search.space import Space
from dpladder.searches.propose_test.search import last_above_threshold
from dpladder.searches.propose_test.section import ProposeTest

EPSILONS = (0.1, 0.5, 1.0, 5.0, 20.0)
ROUNDS = 20
ASIDE = 0.2


def main() -> None:
    asked = read_options(
        __doc__,
        problem="digits",
        candidates=8,
        parts=[10, 30, 100],
        repeats=500,
        threads=2,
        cache=Path,
    )
    arena, random = (
        load(asked.problem, asked.cache, asked.threads, 0, centre="public"),
        np.random.default_rng(0),
    )
    rounds = [f"ε₀ = {epsilon:g}" for epsilon in EPSILONS]
    print_head("parts", "best", "mean", *rounds)
    for parts in asked.parts:
        found = utilities(arena, parts, asked.candidates)
        moves = max(1 / parts, 1 / (ASIDE * arena.constants.n0))
        cells = [
            np.mean(
                [found[chosen(found, moves, epsilon, arena, random)] for _ in range(asked.repeats)]
            )
            for epsilon in EPSILONS
        ]
        print_row(parts, *(f"{cell:.3f}" for cell in (found.max(), found.mean(), *cells)))


def utilities(arena: Arena, parts: int, candidates: int) -> Floats:
    """Mean accuracy over the parts' models on records set aside, for r spread evenly over all that
    the search may reach."""
    space, rows = Space(Search(), Descent(), arena.constants), np.arange(len(arena.train.labels))
    aside = rows % round(1 / ASIDE) == 0
    places = [space.clamp(r) for r in np.geomspace(*space.reach(), candidates).tolist()]
    asks = [
        Ask(
            r, OPEN, ~aside & (rows // round(1 / ASIDE) % parts == part), aside, (1 - ASIDE) / parts
        )
        for part in range(parts)
        for r in places
    ]
    named = [
        NamedAsk(f"{parts} {place}", ask, space.learner, space.search)
        for place, ask in enumerate(asks)
    ]
    correct = [answer.correct for answer in answers(bench_of(arena), named)[0]]
    found: Floats = np.reshape(correct, (parts, candidates)).mean(axis=0) / aside.sum()
    return found


def chosen(
    found: Floats, moves: float, epsilon: float, arena: Arena, random: np.random.Generator
) -> int:
    """By the search's own rule (search/propose_test.py), with its noise; the candidates in any
    order."""
    order = random.permutation(len(found))
    noised = found[order] + random.laplace(scale=4 * moves / epsilon, size=(ROUNDS, len(found)))
    levels = random.laplace(scale=2 * moves / epsilon, size=ROUNDS)
    return int(
        order[last_above_threshold(noised, levels, 1 / arena.constants.classes, ProposeTest().step)]
    )


if __name__ == "__main__":
    main()
