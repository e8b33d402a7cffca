"""What is a public head worth to a private training that starts from it? Public data, seeded.

python tools/public_start.py [digits mixture ...] [--sample 200] [--epsilons 0.1 0.5 1 4] [--repeats
5] [--cache FOLDER]

The sample is a part of the test records, which no longer count as such; it centres the features
too. No search: one training with the whole total, from zero at the prior's kappa, and from the
public head at shares of it. The first line is the head itself.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from arena import DATA, DELTA, PUBLIC, load

from dpladder.config.learner_sections import Descent
from dpladder.config.model import Search
from dpladder.learn import public_head
from dpladder.learn.interface import Data, plain
from dpladder.learn.registry import method
from dpladder.learn.score import correct_count
from dpladder.privacy.accounting import gdp
from dpladder.research.contest import Arena, bench_of
from dpladder.search.asking import Ask
from dpladder.search.bench import NamedAsk, answers, correct
from dpladder.search.prior import of_learner
from dpladder.search.space import Space

SHARES = (1.0, 0.3, 0.1)  # of the prior's kappa


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("problems", nargs="*", default=["digits", "mixture"], choices=DATA)
    parser.add_argument("--sample", type=int, default=PUBLIC, help=f"records, at most {PUBLIC}")
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 0.5, 1.0, 4.0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cache", type=Path, help="where extracted features stay between runs")
    asked = parser.parse_args()
    print(f"| data | start | {' | '.join(f'ε = {epsilon:g}' for epsilon in asked.epsilons)} |")
    print(f"|---|---|{'---|' * len(asked.epsilons)}", flush=True)
    for problem in asked.problems:
        arena = load(problem, asked.cache, asked.threads, 0, centre="public")
        whole = Data(plain(arena.test.features), arena.test.labels)
        arena = replace(arena, test=Data(whole.features[PUBLIC:], whole.labels[PUBLIC:]))
        sample = Data(whole.features[: asked.sample], whole.labels[: asked.sample])
        seen = method("dp_gd").seen_by_head(Descent(init="public"), arena.constants)
        head = public_head.fitted(sample, arena.constants.classes, seen)
        alone = correct_count((head,), arena.test.features, arena.test.labels) / len(
            arena.test.labels
        )
        print(
            f"| {problem} | the head itself, ε = 0 | "
            f"{' | '.join([f'{alone:.3f}'] * len(asked.epsilons))} |"
        )
        show(problem, "zero", arena, 1.0, asked.epsilons, asked.repeats)
        started = replace(arena, train=replace(arena.train, start=head))
        for share in SHARES:
            show(
                problem, f"public head, {share:g} κ", started, share, asked.epsilons, asked.repeats
            )


def show(
    problem: str, about: str, arena: Arena, share: float, epsilons: list[float], repeats: int
) -> None:
    learner = Descent(init="zero" if arena.train.start is None else "public")
    space, cells = Space(Search(), learner, arena.constants), []
    for epsilon in epsilons:
        mu = gdp.mu(epsilon, DELTA)
        r = space.clamp(space.r(share * of_learner("dp_gd", centred=True).median, mu))
        asks = [
            NamedAsk(f"{about} {epsilon} {again}", Ask(r, mu), learner, space.search)
            for again in range(repeats)
        ]
        found = correct([one.weights for one in answers(bench_of(arena), asks)[0]], arena.test)
        cells.append(f"{float(np.mean(found)) / len(arena.test.labels):.3f}")
    print(f"| {problem} | {about} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
