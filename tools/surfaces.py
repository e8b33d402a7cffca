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
from arena import FITTED, first, load
from terminal import read_options
from trainings import ask_for, shares_right

from dpladder.config.learners import Learner, learner_of
from dpladder.config.sweep_sections import Search
from dpladder.privacy.accounting.booking import Entry
from dpladder.research.arena import Arena, bench_of
from dpladder.search.bench import answers
from dpladder.search.space import Space

KAPPAS = (0.16, 0.3, 0.6, 1.1, 1.7, 2.7, 4.5, 7.5, 12.0)
MUS = tuple(0.003 * 2.0**power for power in range(10))
MOST_RECORDS = 4000  # training records: what counts is their number times mu


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
    options = read_options(
        __doc__,
        problems=[*FITTED],
        centre=["none", "public"],
        learner="dp_gd",
        kappas=KAPPAS,
        mus=MUS,
        records=MOST_RECORDS,
        repeats=6,
        cache=Path,
        out=Path("surfaces.csv"),
    )
    learner = learner_of({"name": options.learner})
    for name in options.problems:
        for centre in options.centre:
            arena = first(load(name, options.cache, centre), slice(options.records))
            cells = measured(
                name, centre, arena, learner, options.kappas, options.repeats, options.mus
            )
            new = not options.out.exists()
            with options.out.open("a", newline="") as file:
                table = csv.DictWriter(file, [*asdict(cells[0])], lineterminator="\n")
                if new:
                    table.writeheader()
                table.writerows(asdict(cell) for cell in cells)
            print(name, centre, "done", flush=True)


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
    places = [ask_for("", arena, learner, Entry(mu), kappa) for mu in mus for kappa in kappas]
    asks = [
        replace(one, name=f"{one.ask.mu} {one.ask.r} {again}")
        for one in places
        for again in range(repeats)
    ]
    trainings, _ = answers(bench_of(arena), asks)
    test = shares_right(arena, [one.weights for one in trainings]).reshape(-1, repeats)
    train = np.reshape([one.correct for one in trainings], (-1, repeats)) / n0
    return [
        Cell(name, centre, n0, mu, space.kappa(r, mu), *(round(float(f), 5) for f in figures))
        for one, over, beside in zip(places, train, test, strict=True)
        for r, mu in [(one.ask.r, one.ask.mu)]
        for figures in [(over.mean(), over.std(ddof=1), beside.mean(), beside.std(ddof=1))]
    ]


if __name__ == "__main__":
    main()
