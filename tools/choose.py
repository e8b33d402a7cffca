"""What is a private choice among features worth? Designs of trials (`sweep.choose`) beside the free
default, a random candidate and the best one in hindsight, on public data.

python tools/choose.py [mnist5k digits clothes objects bible] [--repeats 10] [--cache FOLDER]
[--totals 0.3 1 4 8] [--designs "5 x 0.02" "5 x 0.01 + 3 x 0.02"] [--share 0.25] [--among networks]

Candidates are depths of the bundled network; of mnist5k or digits also three networks, or two input
sizes. Everything is charged: noised means for 5 % of mu^2, one that all depths of a network share
or one for each network, trials with their noised scores, and the final training with what is left,
at kappa by the prior. The default and each candidate alone have a mean of their own; their final
trainings draw the same noise as those after a choice, so that differences show sooner. Prints mean
test accuracy; each training stands for 50 draws of the scores' noise. Objects are as
tools/depths.py has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import trainings
from arena import DELTA, IMAGES_96, LENGTH, all_depths, mapped
from numpy.typing import NDArray
from terminal import print_head, print_row, read_options

from dpladder.config.depths import resolve_layers
from dpladder.config.features_sections import LAST, Features, Layers
from dpladder.config.sources import Takes
from dpladder.config.sweep_sections import Search
from dpladder.data.centre import Map, Mapped, shrink_mean
from dpladder.data.depths import Depths, Known, depths_by_name, joined_depths
from dpladder.learn import counts
from dpladder.learn.queries import UnitMean
from dpladder.methods.dp_gd.section import Descent
from dpladder.plan.resolve import MEAN
from dpladder.privacy.accounting import gdp
from dpladder.privacy.release.meter import Meter
from dpladder.privacy.release.noise import ResearchNoise
from dpladder.research.contest import Arena, bench_of
from dpladder.search.bench import NamedAsk, answers
from dpladder.search.prior import belief, with_prior
from dpladder.search.protocol import Ask
from dpladder.search.space import Space
from dpladder.search.sweep_value import CHOICE_SHARE, Look, rungs

DATA = ("mnist5k", "digits-1280", "clothes", "objects", "bible")
TOTALS = (0.3, 1.0, 4.0, 8.0)
DRAWS = 50
B3, B4, B5, B6 = (f"blocks.{stage}" for stage in range(3, 7))
IMAGES: tuple[Layers, ...] = ("auto", (B3, B4, B5), (B4, B6), (B5,), "last")
TEXTS: tuple[Layers, ...] = ("auto", ("embeddings",), ("layer.3", LAST), ("layer.4", LAST), "last")


NETWORKS: dict[str, tuple[Features, ...]] = {
    "depths": (IMAGES_96,),
    "networks": tuple(
        IMAGES_96.model_copy(update={"model": f"efficientnet_lite{number}"}) for number in range(3)
    ),
    "sizes": tuple(IMAGES_96.model_copy(update={"image_size": size}) for size in (96, 64)),
}


@dataclass(frozen=True)
class Candidate:
    """Depths of one of the networks that are tried, by its place."""

    network: int
    depths: Depths


@dataclass(frozen=True)
class Design:
    """Rungs of trials, and the part of each trial's mu^2 that buys its score."""

    rungs: tuple[Look, ...]
    share: float

    @property
    def left(self) -> float:
        """Of mu^2, for the final training."""
        return 1 - MEAN - sum(rung.trials * rung.part for rung in self.rungs)


def main() -> None:
    asked = read_options(
        __doc__,
        choices={"among": [*NETWORKS]},
        among="depths",
        problems=[*DATA],
        totals=TOTALS,
        designs=["5 x 0.02"],
        share=CHOICE_SHARE,
        repeats=10,
        threads=2,
        cache=Path,
    )
    designs = [Design(rungs(text), asked.share) for text in asked.designs]
    print_head("data", "total", "default", "random", "hindsight", *asked.designs)
    for name in asked.problems:
        several = [
            all_depths(name, asked.cache, asked.threads, one) for one in NETWORKS[asked.among]
        ]
        candidates = candidates_of([known for _, known in several])
        for total in asked.totals:
            found = [
                one_repeat(
                    [replace(arena, seed=seed) for arena, _ in several], candidates, total, designs
                )
                for seed in range(asked.repeats)
            ]
            alone = np.mean([one for one, _ in found], axis=0)
            chosen = np.mean([one for _, one in found], axis=0)
            figures = [alone[0], alone.mean(), alone.max(), *chosen]
            print_row(name, f"{total:g}", *map(float, figures))


def candidates_of(several: Sequence[Known]) -> list[Candidate]:
    """Depths of one network, the default first; of several the default depths of each."""
    candidates = []
    for network, known in enumerate(several):
        takes: Takes = "texts" if known[0][0] == "embeddings" else "images"
        names, layers = [name for name, _ in known], TEXTS if takes == "texts" else IMAGES
        for one in layers if len(several) == 1 else layers[:1]:
            depths = resolve_layers(one, names, takes, "the network")
            candidates.append(Candidate(network, depths_by_name(depths, known, LENGTH)))
    return candidates


def one_repeat(
    arenas: Sequence[Arena],
    candidates: Sequence[Candidate],
    total: float,
    designs: Sequence[Design],
) -> tuple[list[float], list[float]]:
    """Test accuracy of each candidate alone, and of each design."""
    mu = gdp.mu_from_epsilon(total, DELTA)
    finals = [mu * design.left**0.5 for design in designs]
    looks = [(design, rung) for design in designs for rung in design.rungs]
    trials = [mu * (rung.part * (1 - design.share)) ** 0.5 for design, rung in looks]
    unions = [
        joined_depths([one.depths for one in candidates if one.network == network])
        for network in range(len(arenas))
    ]
    shared = [
        mean_of(arena, union, mu, MEAN / len(arenas))
        for arena, union in zip(arenas, unions, strict=True)
    ]
    alone, final, score = [], [], []
    for candidate in candidates:
        arena, union = arenas[candidate.network], unions[candidate.network]
        depths, own = candidate.depths, mean_of(arena, candidate.depths, mu, MEAN)
        last = f"{depths.names} final"
        [(_, accuracy)] = trained(seen(arena, depths, *own), last, [mu * (1 - MEAN) ** 0.5])
        alone.append(accuracy)
        part = seen(arena, depths, *union.mean_of(depths, *shared[candidate.network]))
        final.append([trained(part, last, [left])[0][1] for left in finals])
        score.append([count for count, _ in trained(part, depths.names, trials)])
    random = np.random.default_rng(arenas[0].seed)
    chosen = []
    for number, design in enumerate(designs):
        rows = [row for row, (other, _) in enumerate(looks) if other is design]
        scores = np.array(score)[:, rows]
        winners = [winner(design, scores, mu, random) for _ in range(DRAWS)]
        chosen.append(float(np.mean([final[one][number] for one in winners])))
    return alone, chosen


def winner(
    design: Design, scores: NDArray[np.float64], mu: float, random: np.random.Generator
) -> int:
    """The candidate that the noised scores choose."""
    left = list(range(len(scores)))
    for rung, look in enumerate(design.rungs):
        sd = 1 / (mu * (look.part * design.share) ** 0.5)
        noised = {one: scores[one, rung] + sd * random.normal() for one in left[: look.trials]}
        left = sorted(noised, key=lambda one: -noised[one])
    return left[0]


def mean_of(
    arena: Arena, depths: Depths, mu: float, part: float
) -> tuple[NDArray[np.float64], float]:
    """Their noised mean for this part of mu^2, and the deviation of its noise."""
    source = ResearchNoise(arena.terms, f"mean {depths.names}", arena.seed)
    sigma, n0 = gdp.sigma(mu * part**0.5, 1), arena.constants.n0
    query = UnitMean(name="mean", multiplier=sigma, radius=LENGTH, width=depths.width, exact=True)
    meter = Meter([query.draw(arena.constants)], source)
    rows = Mapped(np.asarray(arena.train.features), Map(depths=depths))
    total = counts.ask(query.at(), replace(arena.train, features=rows), arena.constants, meter)
    return total / n0, sigma * LENGTH / n0


def seen(arena: Arena, depths: Depths, mean: NDArray[np.float64], noise: float) -> Arena:
    """The records as trainings see them at these depths."""
    limited = Map(
        shrink_mean(mean, noise), LENGTH, LENGTH, Features().constant, exact=True, depths=depths
    )
    return mapped(arena, limited)


def trained(arena: Arena, name: object, mus: Sequence[float]) -> list[tuple[int, float]]:
    """Right predictions on the training records, and test accuracy, of a training at each mu."""
    learner = Descent()
    search = with_prior(Search(), learner, True)
    space, kappa = Space(search, learner, arena.constants), belief(learner.name, search).median
    asks = [
        NamedAsk(f"{name} {place}", Ask(space.r(kappa, mu), mu), learner, search)
        for place, mu in enumerate(mus)
    ]
    found, _ = answers(bench_of(arena), asks)
    return [(one.correct, trainings.accuracy(arena, one.weights)) for one in found]


if __name__ == "__main__":
    main()
