"""A learner trained without noise on public data: what a search could reach if privacy cost
nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpladder.config.learners import Learner
from dpladder.config.sweep_sections import Search
from dpladder.research.arena import Arena, bench_of
from dpladder.search.bench import NamedAsk, answers
from dpladder.search.protocol import Ask
from dpladder.search.space import Space

GRID = 13  # places of r, spread evenly by ratio over what a search reaches
OPEN = 1e6  # mu in place of infinity: noise of a millionth of what one record may move
HELD_OUT = 5  # one record in so many chooses r
DOUBLINGS = 3  # of r, by twice as many steps each time


def best(arena: Arena, space: Space) -> tuple[float, Search]:
    """The r that does best on records held out of the training part, and the search that reaches
    it.

    First over a grid of all that the search may reach. Steps are limited there for the noise that
    each of them brings. Without it they cost time alone, so where the largest r is best, more are
    tried.

    Args:
        arena: the data. One record in HELD_OUT of its training part chooses r; the test part is not
            looked at.
        space: the learner, its search and the public facts.

    Returns:
        r, and the section `sweep.search` with as many steps as that r takes.
    """
    grid = [space.clamp(r) for r in np.geomspace(*space.reach(), GRID).tolist()]
    counts = _right_counts(arena, space.learner, space.search, grid)
    place = int(np.argmax(counts))
    if place < GRID - 1:
        return grid[place], space.search
    # Twice the steps at the same learning rate is twice the r.
    fewest, most = space.search.steps
    beyond = [
        (grid[-1] * factor, space.search.model_copy(update={"steps": (fewest, factor * most)}))
        for factor in (2**times for times in range(1, DOUBLINGS + 1))
    ]
    further = [_right_counts(arena, space.learner, search, [r])[0] for r, search in beyond]
    return [(grid[-1], space.search), *beyond][int(np.argmax([counts[-1], *further]))]


def _right_counts(
    arena: Arena, learner: Learner, search: Search, each: Sequence[float]
) -> list[int]:
    """How many of the records held out each r gets right."""
    # in the order of keyed ids, so every fifth is any fifth
    rows = np.arange(len(arena.train.labels))
    held_out = rows % HELD_OUT == 0
    asks = [Ask(r, OPEN, ~held_out, held_out, 1.0 - 1.0 / HELD_OUT) for r in each]
    asks_named = [NamedAsk(f"open {place}", ask, learner, search) for place, ask in enumerate(asks)]
    return [answer.correct for answer in answers(bench_of(arena), asks_named)[0]]
