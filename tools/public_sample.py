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
from dataclasses import replace
from pathlib import Path

import numpy as np
from arena import KIN, LENGTH, centred, first, load, load_raw, mapped
from numpy.typing import NDArray
from terminal import print_head, print_row, read_options, totals
from trainings import accuracy, ask_for, heads, shares_right

from dpladder.config.features_sections import Features
from dpladder.data.centre import Map, plain_mean
from dpladder.learn import linear, public_head, student
from dpladder.learn.data import Data
from dpladder.learn.interface import Weights
from dpladder.learn.trainings import weights_of
from dpladder.methods.dp_gd import Descent
from dpladder.research.arena import Arena

ALONE, GUIDED = Descent(public="none"), Descent(public="gradient")
Row = tuple[str, list[float]]


def main() -> None:
    options = read_options(
        __doc__,
        choices={"labels": ["right", "half", "random", "shifted"]},
        problems=["digits", "mixture", "mnist5k-112", "mnist5k", "bible"],
        samples=[50, 200, 1000],
        epsilons=[0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0],
        repeats=5,
        labels="right",
        elsewhere=False,
        unlabelled=0,
        cache=Path,
    )
    epsilons, repeats = options.epsilons, options.repeats
    print_head("data", "public", "", *totals(epsilons))
    for problem in options.problems:
        whole = load_raw(problem, options.cache)
        public = load_raw(KIN[problem], options.cache) if options.elsewhere else whole
        for count in options.samples:
            arena = beside(whole, count, options.labels, public)
            assert arena.train.sample is not None
            sample = linear.resident(arena.train.sample, arena.constants, arena.resources)
            directions = linear.directions(sample)
            print(
                f"{problem}, {count} public: features take up {directions:.0f} of "
                f"{arena.constants.dimension} directions",
                file=sys.stderr,
            )
            rows = [*rows_of(arena, epsilons, repeats, options.unlabelled)]
            if options.elsewhere:
                alone = first(load(problem, options.cache), slice(count, None))
                without = trained(alone, ALONE, epsilons, repeats, centred(problem))
                rows.append(("no sample", means(alone, without, repeats)))
            for name, cells in rows:
                print_row(problem, count, name, *cells)


def beside(arena: Arena, count: int, labels: str = "right", public: Arena | None = None) -> Arena:
    """The arena without its first records, which are public, or those of `public` in their place,
    and the head that they train."""
    sample = first(public or arena, slice(count)).train
    seen = Map(plain_mean(sample.features), None, LENGTH, Features().constant)
    classes = arena.constants.classes
    sample = Data(seen(sample.features), relabelled(sample.labels, classes, labels))
    private = mapped(first(arena, slice(count, None)), seen)
    seen_by_head = weights_of(GUIDED).seen_by_head(GUIDED, private.constants)
    head, claim = public_head.fit_public_head(sample, classes, seen_by_head)
    return replace(private, train=replace(private.train, sample=sample, start=head, claim=claim))


def relabelled(labels: NDArray[np.int64], classes: int, how: str) -> NDArray[np.int64]:
    random = np.random.default_rng(5)
    drawn = random.integers(0, classes, len(labels))
    wrong = {"right": labels, "random": drawn, "shifted": (labels + 1) % classes}
    return wrong.get(how, np.where(random.random(len(labels)) < 0.5, drawn, labels))


def rows_of(
    arena: Arena, epsilons: Sequence[float], repeats: int, unlabelled: int
) -> Iterator[Row]:
    """Of the public head, and of each training and its student. The first private records are
    public without their labels."""
    assert arena.train.start is not None
    yield "the public head", [accuracy(arena, (arena.train.start,))] * len(epsilons)
    features, classes = arena.train.features[:unlabelled], arena.constants.classes
    shown, arena = Data(features, np.full(unlabelled, -1)), first(arena, slice(unlabelled, None))
    for name, learner in {"private alone": ALONE, "guided": GUIDED}.items():
        weights = trained(arena, learner, epsilons, repeats)
        yield name, means(arena, weights, repeats)
        if unlabelled:
            students = [(student.taught(one, shown, classes)[0],) for one in weights]
            yield f"{name}, student", means(arena, students, repeats)


def trained(
    arena: Arena, learner: Descent, epsilons: Sequence[float], repeats: int, mean: bool = True
) -> list[Weights]:
    asks = [ask_for(learner.public, arena, learner, one, centred=mean) for one in epsilons]
    return heads(
        arena,
        [
            replace(ask, name=f"{ask.name} {epsilon} {again}")
            for ask, epsilon in zip(asks, epsilons, strict=True)
            for again in range(repeats)
        ],
    )


def means(arena: Arena, weights: Sequence[Weights], repeats: int) -> list[float]:
    return [float(row.mean()) for row in shares_right(arena, weights).reshape(-1, repeats)]


if __name__ == "__main__":
    main()
