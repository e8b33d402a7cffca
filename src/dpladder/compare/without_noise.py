"""The same learner without noise, on public data: what a search could reach if privacy cost nothing."""

from __future__ import annotations

import numpy as np

from dpladder.compare.contest import GRID, Arena, bench_of
from dpladder.search.asking import Ask
from dpladder.search.bench import NamedAsk, answers
from dpladder.search.space import Space

OPEN = 1e6  # mu in place of infinity: noise of a millionth of what one record may move
HELD_OUT = 5  # one record in so many chooses r


def best(arena: Arena, space: Space) -> float:
    """The r, of a grid over all that the search may reach, that does best on records held out of the training part."""
    rows = np.arange(len(arena.train.labels))  # in the order of keyed ids, so every fifth is any fifth
    held = rows % HELD_OUT == 0
    grid = [space.clamp(r) for r in np.geomspace(*space.reach(), GRID).tolist()]
    asks = [Ask(r, OPEN, ~held, held, 1.0 - 1.0 / HELD_OUT) for r in grid]
    named = [NamedAsk(f"open {place}", ask, space.learner, space.search) for place, ask in enumerate(asks)]
    found, _ = answers(bench_of(arena), named)
    return grid[int(np.argmax([answer.correct for answer in found]))]
