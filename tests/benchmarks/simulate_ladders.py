"""How good ladders of many designs are on public data: the table behind `dpladder plan --suggest`.

python tests/benchmarks/simulate_ladders.py [--cache FOLDER]

Research on digits (raw pixels) and mnist5k (bundled network), seeded. What a design is worth hangs on how much signal
the total leaves beside the noise of a sum: its strength, n0 times mu. Each line says how far below the best r, tuned for
free, a design's models were, on average and at the 10th percentile.
"""

from __future__ import annotations

import argparse
import csv
from dataclasses import asdict
from itertools import product
from pathlib import Path

from arena import load

from dpladder.config.learners import Descent
from dpladder.config.model import Search
from dpladder.rules.contest import Entry, contest, oracle
from dpladder.search import suggest
from dpladder.search.hpo import Setting
from dpladder.search.ladder import Ladder

DATA = {"digits": 40, "mnist5k": 8}  # repeats
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
RUNGS = ((0.05, 0.1), (0.1, 0.2), (0.15, 0.3))
TRIALS = (2, 3)  # one compares nothing: it guesses the middle of the range
SHARES = (0.05, 0.2)
SEED = 0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, help="instead of 40 on digits and 8 on mnist5k")
    parser.add_argument("--cache", type=Path, help="where extracted features stay between runs")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path(suggest.__file__).with_name(suggest.TABLE))
    asked = parser.parse_args()
    rows = []
    for name, repeats in DATA.items():
        arena = load(name, asked.cache, asked.threads, SEED)
        for epsilon in EPSILONS:
            setting = Setting(epsilon, Search(), arena.constants)
            top = oracle(arena, setting, Descent())
            designs = [
                Ladder(((cheap, trials), (dear, trials)), share=share)
                for (cheap, dear), trials, share in product(RUNGS, TRIALS, SHARES)
            ]
            entries = [Entry(repr(design), design, setting, Descent()) for design in designs]
            found = contest(arena, entries, asked.repeats or repeats)
            for design, row in zip(designs, found, strict=True):
                ((cheap, trials), (dear, _)) = design.rungs
                strength = arena.constants.n0 * setting.mu
                rows.append(
                    suggest.Measured(
                        name,
                        round(strength, 1),
                        cheap,
                        dear,
                        trials,
                        design.share,
                        round(top - row.mean, 4),
                        round(top - row.p10, 4),
                    )
                )
            print(f"{name} {epsilon:g} done", flush=True)
    with asked.out.open("w", newline="") as file:
        table = csv.DictWriter(file, [*asdict(rows[0])], lineterminator="\n")
        table.writeheader()
        table.writerows(asdict(row) for row in rows)


if __name__ == "__main__":
    main()
