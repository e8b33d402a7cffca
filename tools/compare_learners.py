"""Which learner is best at which total, its own sweep paid for inside the total?

python tools/compare_learners.py [mnist5k | mnist5k-112] [--repeats 5] [--learners dp_gd dp_adam
...] [--out FOLDER]

Research on public data, seeded. Writes learners.csv, learners.md and learners.svg. For data of your
own, list the learners as experiments of a config in research mode and ask for the rule: snakemake
compare_learners --configfile ...
"""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from pathlib import Path

from arena import DELTA, centred, load
from terminal import read_options

from dpladder.config.learners import METHODS, learner_of
from dpladder.config.sweep_sections import Fit, Search, Sweep
from dpladder_papers.jobs.compare_learners import EPSILONS, entries
from dpladder_papers.research.comparison_table import write_csv
from dpladder_papers.research.contest import contest
from dpladder_papers.research.learners_figure import plot_learners, write_markdown

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
    options = read_options(
        __doc__,
        choices={"learners": [*METHODS, *VARIANTS]},
        problem="mnist5k",
        learners=list[str],
        epsilons=EPSILONS,
        repeats=5,
        seed=0,
        cache=Path,
        out=Path,
    )
    arena = replace(load(options.problem, options.cache), seed=options.seed)
    began, rows = time.perf_counter(), []
    few = arena.constants.dimension < 200
    for name in options.learners or (FIRST_ORDER + SECOND_ORDER if few else FIRST_ORDER):
        sweep = Sweep(search=RANGES.get(name, Search()))
        learner = learner_of(VARIANTS.get(name, {"name": name}))
        taken = centred(options.problem)
        entered = entries(
            name, learner, sweep, Fit(), 1.0, arena.constants, options.epsilons, taken
        )
        rows += [asdict(row) for row in contest(arena, entered, options.repeats)]
        print(f"{name} after {time.perf_counter() - began:.0f} s", flush=True)
    about = f"{options.problem}, δ = {DELTA:g}, {options.repeats} repeats, seed {options.seed}"
    out = options.out or Path("results/compare_learners") / options.problem
    out.mkdir(parents=True, exist_ok=True)
    write_csv(rows, out / "learners.csv")
    write_markdown(rows, about, out / "learners.md")
    plot_learners(rows, about, out / "learners.svg")
    print((out / "learners.md").read_text("utf-8"))


if __name__ == "__main__":
    main()
