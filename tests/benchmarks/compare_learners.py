"""Which learner is best at which total, its own sweep paid for inside the total?

python tests/benchmarks/compare_learners.py [mnist5k] [--repeats 5] [--learners dp_gd dp_adam ...] [--out FOLDER]

Research on public data, seeded. Writes learners.csv, learners.md and learners.svg. For data of your own, list the
learners as experiments of a config in research mode and ask for the rule: snakemake compare_learners --configfile ...
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from pathlib import Path

from quality_search import DELTA, load

from dpladder.config.learners import learner_of
from dpladder.config.model import Fit, Resources, Search, Sweep
from dpladder.learn.registry import LEARNERS
from dpladder.privacy.ledger import Terms
from dpladder.report.learners import plot_learners, write_csv, write_markdown
from dpladder.rules.contest import EPSILONS, Arena, Contestant, contest

# Those whose single training takes a second, not a minute, on 4,000 records of 1,280 features and two cores.
QUICK = ("dp_gd", "dp_adam", "dp_adam_wosm", "dp_prodigy", "hyfree_dp", "one_step", "dp_zo")
# Adam's steps are in units of each weight's own noise; directions of length 1 take many long steps.
RANGES = {
    "dp_adam": Search(eta=(0.001, 0.5)),
    "dp_adam_wosm": Search(eta=(0.001, 0.5)),
    "dp_zo": Search(eta=(2.0, 50.0), steps=(25, 100)),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("problem", nargs="?", default="mnist5k", choices=["mnist5k", "digits", "mixture"])
    parser.add_argument("--learners", nargs="+", default=QUICK, choices=[*LEARNERS])
    parser.add_argument("--epsilons", type=float, nargs="+", default=EPSILONS)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cache", type=Path, help="where extracted features stay between runs")
    parser.add_argument("--out", type=Path, default=Path("results/compare_learners"))
    asked = parser.parse_args()
    problem = load(asked.problem, asked.cache)
    terms = Terms(problem.name, "add_remove", "record", 1, DELTA, "given", mode="research")
    resources = Resources(threads=asked.threads)
    arena = Arena(problem.train, problem.test, problem.constants, terms, resources, asked.seed)
    contestants = [
        Contestant(name, learner_of({"name": name}), Sweep(search=RANGES.get(name, Search())), Fit(), 1.0)
        for name in asked.learners
    ]
    began, rows = time.perf_counter(), []
    for row in contest(arena, contestants, asked.repeats, asked.epsilons):
        rows.append(dataclasses.asdict(row))
        print(f"{row.learner:14s} epsilon {row.epsilon:<4g} {row.mean:.3f} ± {row.sd:.3f}", flush=True)
    about = f"{problem.name}, δ = {DELTA:g}, {asked.repeats} repeats, seed {asked.seed}"
    asked.out.mkdir(parents=True, exist_ok=True)
    write_csv(rows, asked.out / "learners.csv")
    write_markdown(rows, about, asked.out / "learners.md")
    plot_learners(rows, about, asked.out / "learners.svg")
    print(
        (asked.out / "learners.md").read_text("utf-8"),
        f"{time.perf_counter() - began:.0f} s in all",
        sep="\n",
    )


if __name__ == "__main__":
    main()
