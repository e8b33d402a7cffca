"""A contest of searches for a network: kappa alone, or kappa, clip and batch together, against
random search, at equal totals. Public data, seeded.

python tools/joint.py [--epsilons 8] [--repeats 4] [--records 400] [--trials 3]

Scikit-learn's digits at 32 pixels through timm's smallest vision transformer from random weights,
whose upper half dp_finetune trains in 20 steps, as in small_vit.py. Everything that a search trains
and counts is paid for inside its total, but the last line's: a grid of learning rates, each with
the whole total, whose best one nobody may know.
"""

from __future__ import annotations

from collections.abc import Sequence

from arena import DELTA
from small_vit import activations
from terminal import print_head, print_row, read_options

from dpladder.config.sweep_sections import Search
from dpladder.methods.dp_finetune import FineTune
from dpladder.research.arena import Arena
from dpladder.search.protocol import Searcher, Setting, searcher_of
from dpladder_papers.research.contest import Competitor, contest, oracle
from dpladder_papers.research.joint import Joint, learner_variants, total_beside
from dpladder_papers.searches.papernot_steinke import PapernotSteinke

PLAIN = FineTune(trains="all", bias=True)
CLIPS, RATES = (0.1, 1.0, 10.0), (0.25, 1.0)
SEARCH = Search(eta=(1e-5, 1e4), steps=(20, 20), kappa=(0.1, 10.0))
GRID, AGAIN = 5, 2


def main() -> None:
    options = read_options(__doc__, epsilons=[8.0], repeats=4, records=400, trials=3)
    arena = activations(options.records)
    print_head("total ε", "search", "test accuracy", "trainings", "CPU s")
    for epsilon in options.epsilons:
        for one in contest(arena, entries(arena, epsilon, options.trials), options.repeats):
            cells = f"{one.mean:.3f} ± {one.sd:.3f}", f"{one.trainings:.1f}", f"{one.seconds:.0f}"
            print_row(f"{epsilon:g}", one.name, *cells)
        best = oracle(arena, setting_of(arena, epsilon), PLAIN, GRID, AGAIN)
        print_row(f"{epsilon:g}", f"the best of {GRID} rates, for nothing", best, "", "")


def entries(arena: Arena, epsilon: float, trials: int) -> Sequence[Competitor]:
    together = tuple(learner_variants(PLAIN, CLIPS, RATES))
    ways = {
        "one training, κ random": Joint((PLAIN,), 0),
        "one training, κ, clip and batch random": Joint(together, 0),
        f"{trials} trials of κ": Joint((PLAIN,), trials),
        f"{trials} trials of κ, clip and batch": Joint(together, trials),
    }
    searches: dict[str, tuple[Searcher, float]] = {
        name: (way, total_beside(epsilon, DELTA, way.number + 1)) for name, way in ways.items()
    }
    secret = searcher_of(PapernotSteinke(mean=4.0, padded=False))
    searches["Papernot & Steinke, κ"] = (secret, epsilon)
    return [
        Competitor(name, way, setting_of(arena, total), PLAIN)
        for name, (way, total) in searches.items()
    ]


def setting_of(arena: Arena, epsilon: float) -> Setting:
    return Setting(epsilon, SEARCH, arena.constants, learner=PLAIN)


if __name__ == "__main__":
    main()
