"""One part of dp_gd changed at a time: momentum, averages, free step, bias, clip, clipping,
schedule. Public data, seeded.

python tools/parts.py [mnist5k ...] [--epsilons 0.5 1 4] [--repeats 10] [--cache FOLDER]

The whole total in one training at the prior's kappa, which a change of momentum, clip or schedule
leaves as it is: r moves with it. Mean and deviation over repeats, whose noise differs and whose
records are the same.
"""

from __future__ import annotations

from pathlib import Path

from arena import DELTA, centred, load
from terminal import print_head, print_row, read_options, totals
from trainings import accuracies, mean_and_sd

from dpladder.config.sweep_sections import Search
from dpladder.methods.dp_gd.section import Descent
from dpladder.privacy.accounting import gdp
from dpladder.research.contest import Arena, bench_of
from dpladder.search.bench import NamedAsk, answers
from dpladder.search.prior import belief, with_prior
from dpladder.search.protocol import Ask
from dpladder.search.space import Space

CHANGED = {
    "the default": Descent(),
    "momentum 0": Descent(momentum=0.0),
    "momentum 0.5": Descent(momentum=0.5),
    "momentum 0.98": Descent(momentum=0.98),
    "average: ema": Descent(average="ema"),
    "average: swa": Descent(average="swa"),
    "no free step": Descent(free_step=False),
    "bias": Descent(bias=True),
    "clip 0.3": Descent(clip=0.3),
    "clip 10": Descent(clip=10.0),
    "clip 50": Descent(clip=50.0),
    "clipping: automatic": Descent(clipping="automatic"),
    "schedule: cosine": Descent(schedule="cosine"),
    "schedule: linear": Descent(schedule="linear"),
}


def main() -> None:
    asked = read_options(
        __doc__, problems=["mnist5k"], epsilons=[0.5, 1.0, 4.0], repeats=10, threads=1, cache=Path
    )
    print_head("data", "changed", *totals(asked.epsilons))
    for problem in asked.problems:
        arena = load(problem, asked.cache, asked.threads, 0)
        known = centred(problem, "auto")
        for about, learner in CHANGED.items():
            cells = [
                cell(arena, learner, epsilon, known, asked.repeats) for epsilon in asked.epsilons
            ]
            print_row(problem, about, *cells)


def cell(arena: Arena, learner: Descent, epsilon: float, known: bool, repeats: int) -> str:
    search, mu = with_prior(Search(), learner, known), gdp.mu_from_epsilon(epsilon, DELTA)
    space = Space(search, learner, arena.constants)
    kappa = belief(learner.name, search).median
    r = space.r(kappa, mu)
    asks = [NamedAsk(f"{epsilon} {again}", Ask(r, mu), learner, search) for again in range(repeats)]
    heads = [one.weights for one in answers(bench_of(arena), asks)[0]]
    limited = "" if abs(space.kappa(r, mu) / kappa - 1) < 0.05 else f" (κ {space.kappa(r, mu):.2f})"
    return f"{mean_and_sd(accuracies(arena, heads, repeats)[0])}{limited}"


if __name__ == "__main__":
    main()
