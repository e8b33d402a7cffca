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
from pathlib import Path

from arena import DELTA, centred, less_own_mean, load, stored
from terminal import read_options

from dpladder.config.sweep_sections import Search
from dpladder.jobs.compare_hpo import compare
from dpladder.methods.dp_gd.section import Descent
from dpladder.plan.resolve import MEAN, PAYS, PAYS_AGAIN
from dpladder.privacy.accounting import gdp
from dpladder.research.contest import Arena
from dpladder.research.contestants import METHODS
from dpladder.research.searches_figure import write_results
from dpladder.search.prior import with_prior
from dpladder.search.protocol import Setting

EPSILONS = (0.1, 0.3, 0.5, 1.0, 2.0, 4.0, 8.0)
ABLATED = 1.0  # the total at which the ladder's parts are varied


def main() -> None:
    asked = read_options(
        __doc__,
        choices={"methods": [*METHODS], "centre": ["auto", "public", "none", "bought"]},
        problem="mnist5k",
        repeats=50,
        seed=0,
        epsilons=EPSILONS,
        methods=[*METHODS],
        ablations=True,
        threads=2,
        cache=Path,
        centre="auto",
        out=Path("results/compare_hpo"),
    )
    about = f"{asked.problem}, δ = {DELTA:g}, {asked.repeats} repeats, seed {asked.seed}"
    asked.out.mkdir(parents=True, exist_ok=True)
    began, rows = time.perf_counter(), []
    for epsilon in asked.epsilons:
        arena, left, taken = arena_at(asked, epsilon)
        setting = Setting(
            left, with_prior(Search(), Descent(), taken), arena.constants, centred=taken
        )
        ablated = asked.ablations and epsilon == ABLATED
        own, varied = compare(arena, setting, Descent(), asked.repeats, asked.methods, ablated)
        rows += [{**row, "epsilon": epsilon} for row in own]
        for name, lines in (("hpo", rows), ("ablations", varied)):
            if lines:
                path = asked.out / name
                write_results(
                    lines, about, *(path.with_suffix(kind) for kind in (".csv", ".md", ".svg"))
                )
        print(f"ε = {epsilon:g} after {time.perf_counter() - began:.0f} s", flush=True)
    print((asked.out / "hpo.md").read_text("utf-8"))


def arena_at(asked: Namespace, epsilon: float) -> tuple[Arena, float, bool]:
    """The data as this total sees it, what the total has left for the search, and whether the
    features are centred."""
    plain = (asked.problem, asked.cache, asked.threads, asked.seed)
    if asked.centre != "bought":
        return load(*plain, asked.centre), epsilon, centred(asked.problem, asked.centre)
    arena, mu = stored(*plain), gdp.mu_from_epsilon(epsilon, DELTA)
    known = centred(asked.problem, "auto")
    if arena.constants.n0 * mu < (PAYS_AGAIN if known else PAYS):
        return load(*plain, "auto"), epsilon, known
    return less_own_mean(arena, mu, MEAN), gdp.epsilon(mu * (1 - MEAN) ** 0.5, DELTA), True


if __name__ == "__main__":
    main()
