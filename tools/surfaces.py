"""How good one training is, over kappa and over its strength n0 * mu, on public data: what the
prior in kappa, the price of looking and the choice of centring are fitted to (tools/fit_prior.py).

python tools/surfaces.py [DATA ...] [--cache FOLDER] [--out surfaces.csv] [--learner dp_gd]
[--kappas 0.01 0.03 ...] [--mus 0.003 0.006 ...] [--records 4000]

Research, seeded. A line is one cell: correct predictions on the training records (what a trial's
score counts) and on the test records, their means and spreads over the repeats.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from arena import FITTED, load
from terminal import read_options

from dpladder.config.learners import Learner, learner_of
from dpladder.config.sweep_sections import Search
from dpladder.learn.counts import right_counts
from dpladder.learn.data import Data
from dpladder.learn.scorers import ClassScorer
from dpladder.research.contest import Arena, bench_of
from dpladder.search.bench import NamedAsk, answers
from dpladder.search.protocol import Ask
from dpladder.search.space import Space

KAPPAS = (0.16, 0.3, 0.6, 1.1, 1.7, 2.7, 4.5, 7.5, 12.0)
MUS = tuple(0.003 * 2.0**power for power in range(10))
MOST = 4000  # training records


@dataclass(frozen=True)
class Cell:
    data: str
    centre: str
    n0: int
    mu: float
    kappa: float
    train: float
    train_sd: float
    test: float
    test_sd: float


def main() -> None:
    asked = read_options(
        __doc__,
        problems=[*FITTED],
        centre=["none", "public"],
        learner="dp_gd",
        kappas=KAPPAS,
        mus=MUS,
        records=MOST,
        repeats=6,
        threads=2,
        cache=Path,
        out=Path("surfaces.csv"),
    )
    for name in asked.problems:
        for centre in asked.centre:
            arena = few(load(name, asked.cache, asked.threads, 0, centre), asked.records)
            learner = learner_of({"name": asked.learner})
            cells = measured(name, centre, arena, learner, asked.kappas, asked.repeats, asked.mus)
            new = not asked.out.exists()
            with asked.out.open("a", newline="") as file:
                table = csv.DictWriter(file, [*asdict(cells[0])], lineterminator="\n")
                if new:
                    table.writeheader()
                table.writerows(asdict(cell) for cell in cells)
            print(name, centre, "done", flush=True)


def few(arena: Arena, records: int = MOST) -> Arena:
    """No more training records than need be: what counts is their number times mu."""
    part = Data(arena.train.features[:records], arena.train.labels[:records])
    return replace(arena, train=part, constants=replace(arena.constants, n0=len(part.labels)))


def measured(
    name: str,
    centre: str,
    arena: Arena,
    learner: Learner,
    kappas: Sequence[float],
    repeats: int,
    mus: Sequence[float] = MUS,
) -> list[Cell]:
    n0, space = arena.constants.n0, Space(Search(), learner, arena.constants)
    places = [(mu, space.r(kappa, mu)) for mu in mus for kappa in kappas]
    asks = [
        NamedAsk(f"{mu} {r} {again}", Ask(r, mu), learner, space.search)
        for mu, r in places
        for again in range(repeats)
    ]
    found, _ = answers(bench_of(arena), asks)
    test = right_counts(ClassScorer(), [one.weights for one in found], arena.test) / len(
        arena.test.labels
    )
    train = np.array([one.correct for one in found]) / n0
    tests, trains = test.reshape(len(places), repeats), train.reshape(len(places), repeats)
    return [
        Cell(name, centre, n0, mu, space.kappa(r, mu), *(round(float(f), 5) for f in figures))
        for (mu, r), own, other in zip(places, trains, tests, strict=True)
        for figures in [(own.mean(), own.std(ddof=1), other.mean(), other.std(ddof=1))]
    ]


if __name__ == "__main__":
    main()
