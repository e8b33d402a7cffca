"""Every way to search hyperparameters at the same totals: what does the ladder buy, and where does
it lose?

python tools/compare_hpo.py [mnist5k] [--repeats 50] [--seed 0] [--centre bought] [--cache FOLDER]
[--out FOLDER]

Research on public data, seeded. All methods search the same range of r on the same features and pay
for everything that they do. With `--centre bought` the data's own noised mean is paid for first, as
the plan does where nothing centres for free and it pays; one mean for all repeats of a total.
Writes tables and figures of the methods, and of the ladder's ablations. For data of your own, in
research mode: snakemake compare_hpo --configfile ...
"""

from __future__ import annotations

import time
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

from arena import DELTA, centred, less_own_mean, load, load_raw
from terminal import read_options

from dpladder.config.sweep_sections import Search
from dpladder.methods.dp_gd import Descent
from dpladder.plan.resolve import MEAN, PAYS, PAYS_AGAIN
from dpladder.privacy.accounting import gdp
from dpladder.research.arena import Arena
from dpladder.search.prior import with_prior
from dpladder.search.protocol import Setting
from dpladder_papers.jobs.compare_hpo import compare
from dpladder_papers.research.contestants import METHODS
from dpladder_papers.research.searches_figure import write_results

EPSILONS = (0.1, 0.3, 0.5, 1.0, 2.0, 4.0, 8.0)
ABLATED = 1.0  # the total at which the ladder's parts are varied


def main() -> None:
    options = read_options(
        __doc__,
        choices={"methods": [*METHODS], "centre": ["auto", "public", "none", "bought"]},
        problem="mnist5k",
        repeats=50,
        seed=0,
        epsilons=EPSILONS,
        methods=[*METHODS],
        ablations=True,
        cache=Path,
        centre="auto",
        out=Path("results/compare_hpo"),
    )
    about = f"{options.problem}, δ = {DELTA:g}, {options.repeats} repeats, seed {options.seed}"
    options.out.mkdir(parents=True, exist_ok=True)
    began, rows = time.perf_counter(), []
    for epsilon in options.epsilons:
        arena, left, taken = arena_at(options, epsilon)
        setting = Setting(
            left, with_prior(Search(), Descent(), taken), arena.constants, centred=taken
        )
        ablated = options.ablations and epsilon == ABLATED
        standings, varied = compare(
            arena, setting, Descent(), options.repeats, options.methods, ablated
        )
        rows += [{**row, "epsilon": epsilon} for row in standings]
        for name, lines in (("hpo", rows), ("ablations", varied)):
            if lines:
                path = options.out / name
                write_results(
                    lines, about, *(path.with_suffix(kind) for kind in (".csv", ".md", ".svg"))
                )
        print(f"ε = {epsilon:g} after {time.perf_counter() - began:.0f} s", flush=True)
    print((options.out / "hpo.md").read_text("utf-8"))


def arena_at(options: Namespace, epsilon: float) -> tuple[Arena, float, bool]:
    """The data as this total sees it, what the total has left for the search, and whether the
    features are centred."""
    name, bought = options.problem, options.centre == "bought"
    centre = "auto" if bought else options.centre
    known, mu = centred(name, centre), gdp.mu_from_epsilon(epsilon, DELTA)
    arena = load_raw(name, options.cache, seed=options.seed)
    if bought and arena.constants.n0 * mu >= (PAYS_AGAIN if known else PAYS):
        return less_own_mean(arena, mu, MEAN), gdp.epsilon(mu * (1 - MEAN) ** 0.5, DELTA), True
    return replace(load(name, options.cache, centre), seed=options.seed), epsilon, known


if __name__ == "__main__":
    main()
