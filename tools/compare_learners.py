"""Which learner is best at which total, its own sweep paid for inside the total?

python tools/compare_learners.py [mnist5k | mnist5k-112] [--repeats 5] [--learners dp_gd dp_adam
...] [--out FOLDER]

Research on public data, seeded. Writes learners.csv, learners.md and learners.svg. For data of your
own, list the learners as experiments of a config in research mode and ask for the rule: snakemake
compare_learners --configfile ...
"""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path

from arena import DELTA, centred, load
from terminal import read_options

from dpladder.config.learners import METHODS, learner_of
from dpladder.config.sweep_sections import Fit, Search, Sweep
from dpladder.jobs.compare_learners import EPSILONS, entries
from dpladder.research.comparison_table import write_csv
from dpladder.research.contest import contest
from dpladder.research.learners_figure import plot_learners, write_markdown

# Those that hold no d x d matrices: with 1,280 features a training of the others takes up to a
# minute on two cores.
FIRST_ORDER = (
    "dp_gd",
    "dp_adam",
    "dp_adam_wosm",
    "dp_prodigy",
    "d_adaptation",
    "hyfree_dp",
    "one_step",
    "dp_prototypes",
    "dp_zo",
)
SECOND_ORDER = ("dp_fc", "dp_ls", "dp_newton")
# Adam's steps are in units of each weight's own noise; directions of length 1 take many long steps.
VARIANTS = {"d_adaptation": {"name": "dp_prodigy", "step_sizes": "d_adaptation"}}
RANGES = {
    "dp_adam": Search(eta=(0.001, 0.5)),
    "dp_adam_wosm": Search(eta=(0.001, 0.5)),
    "dp_zo": Search(eta=(2.0, 50.0), steps=(25, 100)),
}


def main() -> None:
    asked = read_options(
        __doc__,
        choices={"learners": [*METHODS, *VARIANTS]},
        problem="mnist5k",
        learners=list[str],
        epsilons=EPSILONS,
        repeats=5,
        seed=0,
        threads=2,
        cache=Path,
        out=Path,
    )
    arena = load(asked.problem, asked.cache, asked.threads, asked.seed)
    began, rows = time.perf_counter(), []
    few = arena.constants.dimension < 200
    for name in asked.learners or (FIRST_ORDER + SECOND_ORDER if few else FIRST_ORDER):
        sweep = Sweep(search=RANGES.get(name, Search()))
        learner = learner_of(VARIANTS.get(name, {"name": name}))
        taken = centred(asked.problem, "auto")
        entered = entries(name, learner, sweep, Fit(), 1.0, arena.constants, asked.epsilons, taken)
        rows += [asdict(row) for row in contest(arena, entered, asked.repeats)]
        print(f"{name} after {time.perf_counter() - began:.0f} s", flush=True)
    about = f"{asked.problem}, δ = {DELTA:g}, {asked.repeats} repeats, seed {asked.seed}"
    out = asked.out or Path("results/compare_learners") / asked.problem
    out.mkdir(parents=True, exist_ok=True)
    write_csv(rows, out / "learners.csv")
    write_markdown(rows, about, out / "learners.md")
    plot_learners(rows, about, out / "learners.svg")
    print((out / "learners.md").read_text("utf-8"))


if __name__ == "__main__":
    main()
