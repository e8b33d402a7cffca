"""What is a public sample worth to a private training? Public data, seeded.

python tools/public_sample.py [digits mixture ...] [--samples 50 200 1000] [--epsilons 0.1 0.5 1 4]
[--repeats 5] [--labels right|half|random|shifted] [--elsewhere] [--unlabelled 1000]
[--cache FOLDER]

The sample is the first so many of the training records, which are no longer private; it centres
the features too. No search: one training with the whole total at the prior's kappa, alone and
guided by the sample. The first line is the public head itself; standard error tells how many
directions features take up. With `--labels` half of the sample's labels are drawn at random, all of
them, or each is moved on by one class. With `--elsewhere` the sample is of another data set with
the same classes, and a line more has features as they are without any sample. With `--unlabelled`
so many more records are public without their labels, and each training has a student that learns
the labels which it gives them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import trainings
from arena import DELTA, KIN, centred, load, stored
from numpy.typing import NDArray
from terminal import print_head, print_row, read_options, totals
from trainings import accuracies

from dpladder.config.features_sections import Features
from dpladder.config.sweep_sections import Search
from dpladder.data.centre import Map, plain_mean
from dpladder.learn import linear, public_head, student
from dpladder.learn.data import Data
from dpladder.learn.interface import Weights
from dpladder.learn.trainings import weights_of
from dpladder.methods.dp_gd.section import Descent
from dpladder.privacy.accounting import gdp
from dpladder.research.contest import Arena, bench_of
from dpladder.search.bench import NamedAsk, answers
from dpladder.search.prior import prior_of_learner
from dpladder.search.protocol import Ask
from dpladder.search.space import Space

FIVE = ["digits", "mixture", "mnist5k-112", "mnist5k", "bible"]
LENGTH = 32.0
ALONE, GUIDED = Descent(public="none"), Descent(public="gradient")


@dataclass(frozen=True)
class Asked:
    epsilons: list[float]
    repeats: int
    unlabelled: int


def main() -> None:
    given = read_options(
        __doc__,
        choices={"labels": ["right", "half", "random", "shifted"]},
        problems=list[str],
        samples=[50, 200, 1000],
        epsilons=[0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0],
        repeats=5,
        labels="right",
        elsewhere=False,
        unlabelled=0,
        threads=2,
        cache=Path,
    )
    asked = Asked(given.epsilons, given.repeats, given.unlabelled)
    print_head("data", "public", "", *totals(asked.epsilons))
    for problem in given.problems or FIVE:
        whole = stored(problem, given.cache, given.threads, 0)
        public = stored(KIN[problem], given.cache, given.threads, 0) if given.elsewhere else whole
        for count in given.samples:
            arena = beside(whole, count, given.labels, public)
            print(f"{problem}, {count} public: {directions(arena)}", file=sys.stderr)
            found = [*lines(arena, asked)]
            if given.elsewhere:
                alone, _ = without(load(problem, given.cache, given.threads, 0), count)
                mean = centred(problem, "auto")
                found.append(
                    ("no sample", accuracy(trained(alone, ALONE, asked, mean), alone, asked))
                )
            for name, cells in found:
                print_row(problem, count, name, *cells)


def beside(arena: Arena, count: int, labels: str, public: Arena | None = None) -> Arena:
    """The arena without its first records, which are public, or those of `public` in their place,
    and the head that they train."""
    features, own = np.asarray(arena.train.features), arena.train.labels
    sample = (public or arena).train
    shown = np.asarray(sample.features)[:count]
    seen = Map(plain_mean(shown), None, LENGTH, Features().constant)

    def mapped(rows: NDArray[np.float32], own: NDArray[np.int64]) -> Data:
        return Data(seen(rows), own)

    classes = arena.constants.classes
    sample = mapped(shown, relabelled(sample.labels[:count], classes, labels))
    test = mapped(np.asarray(arena.test.features), arena.test.labels)
    dimension = seen.width(arena.constants.dimension)
    constants = replace(arena.constants, n0=len(own) - count, dimension=dimension, length=LENGTH)
    seen_by_head = weights_of(GUIDED).seen_by_head(GUIDED, constants)
    head, claim = public_head.fit_public_head(sample, classes, seen_by_head)
    train = replace(
        mapped(features[count:], own[count:]),
        sample=sample,
        start=head,
        claim=claim,
    )
    return replace(arena, train=train, test=test, constants=constants)


def directions(arena: Arena) -> str:
    assert arena.train.sample is not None
    records = linear.resident(arena.train.sample, arena.constants, arena.resources)
    found, width = linear.directions(records), arena.constants.dimension
    return f"features take up {found:.0f} of {width} directions"


def relabelled(labels: NDArray[np.int64], classes: int, how: str) -> NDArray[np.int64]:
    random = np.random.default_rng(5)
    drawn = random.integers(0, classes, len(labels))
    wrong = {"right": labels, "random": drawn, "shifted": (labels + 1) % classes}
    return wrong.get(how, np.where(random.random(len(labels)) < 0.5, drawn, labels))


def lines(arena: Arena, asked: Asked) -> Iterator[tuple[str, list[float]]]:
    assert arena.train.start is not None
    alone = trainings.accuracy(arena, (arena.train.start,))
    yield "the public head", [alone] * len(asked.epsilons)
    arena, shown = without(arena, asked.unlabelled)
    for name, learner in {"private alone": ALONE, "guided": GUIDED}.items():
        found = trained(arena, learner, asked)
        yield name, accuracy(found, arena, asked)
        if asked.unlabelled:
            classes = arena.constants.classes
            students = [(student.taught(one, shown, classes)[0],) for one in found]
            yield f"{name}, student", accuracy(students, arena, asked)


def without(arena: Arena, count: int) -> tuple[Arena, Data]:
    """The arena without the first so many private records, and those, which are public."""
    train = arena.train
    private = replace(train, features=train.features[count:], labels=train.labels[count:])
    constants = replace(arena.constants, n0=len(private.labels))
    shown = Data(train.features[:count], np.full(count, -1))
    return replace(arena, train=private, constants=constants), shown


def trained(arena: Arena, learner: Descent, asked: Asked, mean: bool = True) -> list[Weights]:
    space, asks = Space(Search(), learner, arena.constants), []
    median = prior_of_learner("dp_gd", centred=mean).median
    for epsilon in asked.epsilons:
        mu = gdp.mu_from_epsilon(epsilon, DELTA)
        r = space.clamp(space.r(median, mu))
        asks += [
            NamedAsk(f"{learner.public} {epsilon} {again}", Ask(r, mu), learner, space.search)
            for again in range(asked.repeats)
        ]
    return [one.weights for one in answers(bench_of(arena), asks)[0]]


def accuracy(found: Sequence[Weights], arena: Arena, asked: Asked) -> list[float]:
    return [float(row.mean()) for row in accuracies(arena, found, asked.repeats)]


if __name__ == "__main__":
    main()
