"""Variants side by side, a row each, with a total in each column. Public data, seeded.

python tools/variants.py TABLE [DATA ...] [--epsilons 0.5 1 4] [--repeats 10] [--only NAME ...]
[--rate 0.25] [--cache FOLDER]

Each is one training with the whole total and no search, at the prior's kappa or at the best of
three about it, by the mean over repeats. Repeats differ in their noise.

parts      one part of dp_gd changed at a time. A change of momentum, clip or schedule leaves kappa
           as it is: r moves with it.
hyfree     HyFreeDP as published, as dpladder has it, and what each change is worth: 50 steps that
           look at the losses at every fifth, each at the same price; `--rate`: on Poisson samples.
links      softmax against a sigmoid for each class, whose bias starts at -log(m - 1), at -10
           (Mehta et al.) or at zero; the best of three r.
batches    the full batch against Poisson samples, each at the best of three r: the rule of
           config/examples/batch_size.yaml in one process.
squares    DP-LS at ever larger totals against least squares without privacy. inf: as
           `final.without_noise` trains it, with a noise of a millionth, at the best r by a fifth of
           the training part. "least squares": numpy's, of the classes' indicators.
subsets    fewer records, and models of disjoint parts. Those cost together what the dearest of them
           costs (parallel composition), so each has the whole total; their weights are averaged.
reach      more steps or larger ones than the default's, which keep kappa below the prior's from
           n0 mu of 49,000 on.
minority   prototypes against descent where the first class has 20 times the records of the last:
           mean accuracy over classes, then over the smaller half alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from pathlib import Path
from types import MappingProxyType
from unittest.mock import patch

import numpy as np
import trainings
from arena import centred, load, with_units
from shift import heads, place
from terminal import print_head, print_row, read_options, totals
from trainings import accuracies, mean_and_sd, trained, training_for

from dpladder.config.learners import Learner, learner_of
from dpladder.config.sweep_sections import Search
from dpladder.learn.data import Data
from dpladder.learn.interface import Weights
from dpladder.learn.links import Link
from dpladder.learn.score import logits
from dpladder.methods.dp_gd.section import Descent
from dpladder.methods.dp_ls.section import LeastSquares
from dpladder.methods.hyfree_dp import train as hyfree
from dpladder.methods.hyfree_dp.section import HyperparameterFree
from dpladder.research.contest import Arena
from dpladder.search.prior import belief, prior_of_learner
from dpladder.search.space import Space

AROUND = (0.5, 1.0, 2.0)  # the prior's median
THINNED = 20.0  # the first class's records, by the last one's
Cell = str | float
Measure = Callable[[Arena, Weights], float]
Way = Callable[[Arena, float, int], Cell]  # of an arena, a total and so many repeats


def repeated(
    arena: Arena,
    learner: Learner,
    epsilon: float,
    repeats: int,
    kappa: float | None = None,
    name: str = "",
    measure: Measure = trainings.accuracy,
) -> list[float]:
    training = training_for(arena, learner, epsilon, kappa)
    names = [f"{name}{epsilon} {repeat}" for repeat in range(repeats)]
    return [measure(arena, trained(arena, training, one)) for one in names]


def best_accuracies(
    arena: Arena,
    learner: Learner,
    epsilon: float,
    repeats: int,
    name: str = "",
    measure: Measure = trainings.accuracy,
) -> list[float]:
    """Those of the best of three r."""
    found = []
    for around in AROUND if learner.searches else AROUND[:1]:
        kappa = around * prior_of_learner(learner.name, centred=True).median
        training = training_for(arena, learner, epsilon, kappa)
        names = [f"{name}{epsilon} {around} {repeat}" for repeat in range(repeats)]
        found.append([measure(arena, trained(arena, training, one)) for one in names])
    return max(found, key=np.mean)


def changed(learner: Descent) -> Way:
    def cell(arena: Arena, epsilon: float, repeats: int) -> Cell:
        known = centred(arena.terms.lineage, "auto")
        space, mu, r = place(arena, learner, epsilon, known)
        kappa = belief(learner.name, space.search).median
        found = heads(arena, learner, epsilon, repeats, known)
        limited = abs(space.kappa(r, mu) / kappa - 1) >= 0.05
        told = f" (κ {space.kappa(r, mu):.2f})" if limited else ""
        return mean_and_sd(accuracies(arena, found, repeats)[0]) + told

    return cell


def free_of_choice(
    rate: float, values: dict[str, object], guards: Mapping[str, float] = MappingProxyType({})
) -> Way:
    """`guards`: those that are taken away."""
    learner = HyperparameterFree.model_validate(values | {"sampling_rate": rate})

    def cell(arena: Arena, epsilon: float, repeats: int) -> Cell:
        with patch.dict(vars(hyfree), guards):
            return mean_and_sd(repeated(arena, learner, epsilon, repeats))

    return cell


def linked(learner: Learner, start: float | None = None) -> Way:
    """`start`: where the bias starts, if not where dpladder has it."""

    def cell(arena: Arena, epsilon: float, repeats: int) -> Cell:
        with nullcontext() if start is None else patch.object(Link, "bias", start):
            return float(np.mean(best_accuracies(arena, learner, epsilon, repeats)))

    return cell


def sampled(rate: float) -> Way:
    def cell(arena: Arena, epsilon: float, repeats: int) -> Cell:
        learner = Descent(sampling_rate=rate)
        return mean_and_sd(best_accuracies(arena, learner, epsilon, repeats, f"{rate} "))

    return cell


def within_reach(steps: int, eta: float) -> Way:
    search = Search(steps=(30, steps), eta=(1e-6, eta))

    def cell(arena: Arena, epsilon: float, repeats: int) -> Cell:
        training = training_for(arena, Descent(), epsilon, search=search)
        names = [f"{steps} {eta} {epsilon} {again}" for again in range(repeats)]
        found = [trainings.accuracy(arena, trained(arena, training, one)) for one in names]
        hyper, space = training.hyper, Space(search, Descent(), arena.constants)
        return f"{mean_and_sd(found)} (κ {space.kappa(hyper.eta * hyper.steps, hyper.mu):.2f})"

    return cell


def at_any_total(learner: Learner) -> Way:
    def cell(arena: Arena, epsilon: float, repeats: int) -> Cell:
        many, known = 1 if epsilon == inf else repeats, centred(arena.terms.lineage, "auto")
        return float(accuracies(arena, heads(arena, learner, epsilon, many, known), many).mean())

    return cell


def least_squares(arena: Arena, epsilon: float, _: int) -> Cell:
    """Of each class's indicator, by all records, with nothing held back."""
    if epsilon < inf:
        return ""
    x, labels = np.asarray(arena.train.features, np.float64), arena.train.labels
    weights = np.linalg.lstsq(x, np.eye(arena.constants.classes)[labels], rcond=None)[0]
    return float(np.mean((arena.test.features @ weights).argmax(1) == arena.test.labels))


def averaged(about: str, selections: Callable[[int], Sequence[range]]) -> Way:
    """Of models that are trained on these records each."""

    def cell(arena: Arena, epsilon: float, repeats: int) -> Cell:
        found = []
        for again in range(repeats):
            each = [
                trained(
                    part, training_for(part, Descent(), epsilon), f"{about} {epsilon} {again}{own}"
                )
                for own, part in parts_of(arena, selections(arena.constants.n0))
            ]
            mean = tuple(np.mean(layers, axis=0) for layers in zip(*each, strict=True))
            found.append(trainings.accuracy(arena, mean))
        return float(np.mean(found))

    return cell


def parts_of(arena: Arena, selections: Sequence[range]) -> Iterator[tuple[str, Arena]]:
    """Their number is public here, and by declaration in a run."""
    for number, rows in enumerate(selections):
        train = Data(np.asarray(arena.train.features)[rows], arena.train.labels[rows])
        constants = replace(arena.constants, n0=len(train.labels))
        own = "" if len(selections) == 1 else f" {number}"
        yield own, replace(arena, train=train, constants=constants)


def share_of(share: float) -> Callable[[int], Sequence[range]]:
    return lambda count: [range(round(share * count))]


def disjoint(parts: int) -> Callable[[int], Sequence[range]]:
    return lambda count: [range(place, count, parts) for place in range(parts)]


def thinned(arena: Arena) -> Arena:
    """Class c keeps THINNED^(-c / (C - 1)) of the records that the first one has."""
    data = arena.train
    counts = np.bincount(data.labels)
    keep = counts.min() * THINNED ** (-np.arange(len(counts)) / (len(counts) - 1))
    rows = np.concatenate(
        [np.flatnonzero(data.labels == label)[: round(kept)] for label, kept in enumerate(keep)]
    )
    rows.sort()
    train = replace(
        data, features=np.asarray(data.features)[rows], labels=data.labels[rows], units=None
    )
    constants = replace(arena.constants, n0=len(train.labels))
    return with_units(replace(arena, train=train, constants=constants))


def by_class(name: str) -> Way:
    """Mean accuracy over all classes, and over the smaller half."""

    def of_classes(arena: Arena, weights: Weights) -> list[float]:
        labels = arena.test.labels
        right = logits(weights, arena.test.features).argmax(axis=1) == labels
        return [right[labels == label].mean() for label in range(int(labels.max()) + 1)]

    def cell(arena: Arena, epsilon: float, repeats: int) -> Cell:
        learner = learner_of({"name": name})
        training = training_for(arena, learner, epsilon)
        names = [f"{name} {epsilon} {again}" for again in range(repeats)]
        found = np.array([of_classes(arena, trained(arena, training, one)) for one in names])
        return f"{found.mean():.3f}, {found[:, found.shape[1] // 2 :].mean():.3f}"

    return cell


ADAMW: dict[str, object] = {"optimizer": "adamw", "weight_decay": 0.01}
FIVE: dict[str, object] = {"points": 5}
LOW: dict[str, object] = {"eta": 1e-4}
PUBLISHED: dict[str, object] = {"steering": "published"}
TOTALS = (0.5, 1.0, 4.0)


@dataclass(frozen=True)
class Table:
    """`ways`: a row each. `seen`: the data as its trainings see them."""

    heading: str
    ways: Mapping[str, Way]
    problems: Sequence[str] = ("mnist5k",)
    epsilons: Sequence[float] = TOTALS
    repeats: int = 5
    centre: str = "auto"
    seen: Callable[[Arena], Arena] = with_units


def tables(rate: float) -> Mapping[str, Table]:
    free = partial(free_of_choice, rate)
    return {
        "parts": Table(
            "changed",
            {
                "the default": changed(Descent()),
                "momentum 0": changed(Descent(momentum=0.0)),
                "momentum 0.5": changed(Descent(momentum=0.5)),
                "momentum 0.98": changed(Descent(momentum=0.98)),
                "average: ema": changed(Descent(average="ema")),
                "average: swa": changed(Descent(average="swa")),
                "no free step": changed(Descent(free_step=False)),
                "bias": changed(Descent(bias=True)),
                "clip 0.3": changed(Descent(clip=0.3)),
                "clip 10": changed(Descent(clip=10.0)),
                "clip 50": changed(Descent(clip=50.0)),
                "clipping: automatic": changed(Descent(clipping="automatic")),
                "schedule: cosine": changed(Descent(schedule="cosine")),
                "schedule: linear": changed(Descent(schedule="linear")),
            },
            repeats=10,
        ),
        "hyfree": Table(
            "what",
            {
                "ours": free({}),
                "the last loss is the bound": free({}, {"ROOM": 1.0}),
                "every look is believed": free({}, {"SURE": 0.0}),
                "a rate moves as far as it likes": free({}, {"FACTOR": 1e12}),
                "steering: published": free(PUBLISHED),
                "Laplace losses": free({"loss_noise": "laplace"}),
                "five points": free(FIVE),
                "a first rate of 1e-4": free(LOW),
                "AdamW, decay 0.01": free(ADAMW),
                "AdamW, decay 0.01, a first rate of 1e-4": free(ADAMW | LOW),
                "as published": free(PUBLISHED | FIVE | ADAMW | LOW),
                "as published, steered as ours": free(FIVE | ADAMW | LOW),
            },
            ("mnist5k-112", "digits"),
            repeats=10,
        ),
        "links": Table(
            "link",
            {
                "softmax": linked(Descent()),
                "sigmoid, its bias from -log(m - 1) on": linked(Descent(link="sigmoid")),
                "sigmoid, its bias from -10 on": linked(Descent(link="sigmoid"), -10.0),
                "sigmoid, its bias from zero on": linked(Descent(link="sigmoid"), 0.0),
            },
            repeats=3,
        ),
        "batches": Table(
            "sampling rate",
            {f"{rate:g}": sampled(rate) for rate in (1.0, 0.5, 0.2, 0.05)},
            epsilons=(1.0,),
            repeats=3,
        ),
        "squares": Table(
            "learner",
            {
                "dp_ls, alpha 0.1": at_any_total(LeastSquares(alpha=0.1)),
                "dp_ls, alpha 1": at_any_total(LeastSquares()),
                "dp_gd": at_any_total(Descent()),
                "least squares": least_squares,
            },
            ("mnist5k-112",),
            (1.0, 4.0, 16.0, 64.0, inf),
        ),
        "subsets": Table(
            "trained on",
            {
                about: averaged(about, selections)
                for about, selections in (
                    *(
                        (f"{share:.0%} of the records", share_of(share))
                        for share in (1, 0.5, 0.25, 0.1)
                    ),
                    *(
                        (f"{parts} disjoint parts, weights averaged", disjoint(parts))
                        for parts in (2, 5, 10)
                    ),
                )
            },
            centre="public",
        ),
        "reach": Table(
            "at most",
            {
                f"{steps} steps at {eta:g}": within_reach(steps, eta)
                for steps, eta in ((500, 0.5), (1000, 0.5), (500, 1.0))
            },
            ("cifar10-auto",),
            (4.0, 8.0),
            3,
            "public",
        ),
        "minority": Table(
            "learner",
            {f"`{name}`": by_class(name) for name in ("dp_gd", "dp_prototypes")},
            ("digits", "mixture"),
            (0.3, 1.0, 4.0),
            10,
            "public",
            thinned,
        ),
    }


def main() -> None:
    known = tables(1.0)
    asked = read_options(
        __doc__,
        choices={"table": [*known], "only": [way for one in known.values() for way in one.ways]},
        table="parts",
        problems=list[str],
        epsilons=list[float],
        repeats=0,
        only=list[str],
        rate=1.0,
        threads=2,
        cache=Path,
    )
    table = tables(asked.rate)[asked.table]
    epsilons = asked.epsilons or table.epsilons
    print_head("data", table.heading, *totals(epsilons))
    for problem in asked.problems or table.problems:
        arena = table.seen(load(problem, asked.cache, asked.threads, 0, table.centre))
        for about in asked.only or table.ways:
            way = table.ways[about]
            cells = [way(arena, one, asked.repeats or table.repeats) for one in epsilons]
            print_row(problem, about, *cells)


if __name__ == "__main__":
    main()
