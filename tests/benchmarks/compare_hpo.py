"""Every way to search hyperparameters at the same totals: what does the ladder buy, and where does it lose?

python tests/benchmarks/compare_hpo.py [mnist5k] [--repeats 50] [--seed 0] [--cache FOLDER] [--out FOLDER]

Research on public data, seeded. All methods search the same range of r on the same features and pay for everything that
they do. Writes tables and figures of the methods, and of the ladder's ablations. For data of your own, in research mode:
snakemake compare_hpo --configfile ...
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from arena import DATA, DELTA, load

from dpladder.config.learners import Descent
from dpladder.config.model import Search
from dpladder.report.hpo import publish
from dpladder.rules.compare_hpo import CONTESTANTS, compare
from dpladder.search.hpo import Setting

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
ABLATED = 1.0  # the total at which the ladder's parts are varied


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("problem", nargs="?", default="mnist5k", choices=DATA)
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epsilons", type=float, nargs="+", default=EPSILONS)
    parser.add_argument("--methods", nargs="+", default=[*CONTESTANTS], choices=[*CONTESTANTS])
    parser.add_argument("--ablations", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cache", type=Path, help="where extracted features stay between runs")
    parser.add_argument("--out", type=Path, default=Path("results/compare_hpo"))
    asked = parser.parse_args()
    arena = load(asked.problem, asked.cache, asked.threads, asked.seed)
    about = f"{asked.problem}, δ = {DELTA:g}, {asked.repeats} repeats, seed {asked.seed}"
    asked.out.mkdir(parents=True, exist_ok=True)
    began, rows = time.perf_counter(), []
    for epsilon in asked.epsilons:
        setting = Setting(epsilon, Search(), arena.constants)
        ablated = asked.ablations and epsilon == ABLATED
        own, varied = compare(arena, setting, Descent(), asked.repeats, asked.methods, ablated)
        rows += own
        for name, lines in (("hpo", rows), ("ablations", varied)):
            if lines:
                path = asked.out / name
                publish(lines, about, *(path.with_suffix(kind) for kind in (".csv", ".md", ".svg")))
        print(f"ε = {epsilon:g} after {time.perf_counter() - began:.0f} s", flush=True)
    print((asked.out / "hpo.md").read_text("utf-8"))


if __name__ == "__main__":
    main()
