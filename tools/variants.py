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

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path
from types import MappingProxyType
from typing import Any
from unittest.mock import patch

import numpy as np
import trainings
from arena import centred, first, load, with_units
from terminal import print_head, print_row, read_options, totals
from trainings import accuracies, ask_for, heads, mean_and_sd

from dpladder.config.learners import Learner, learner_of
from dpladder.config.sweep_sections import Search
from dpladder.learn.interface import Weights
from dpladder.learn.links import Link
from dpladder.learn.score import logits
from dpladder.methods.dp_gd import Descent
from dpladder.methods.dp_ls import LeastSquares
from dpladder.privacy.arrays import Floats
from dpladder.research.arena import Arena
from dpladder.search.prior import prior_of_learner
from dpladder.search.space import Space
from dpladder_papers.methods.hyfree_dp import HyperparameterFree
from dpladder_papers.methods.hyfree_dp import train as hyfree

AROUND = (0.5, 1.0, 2.0)  # the prior's median
NO_KEYS: Mapping[str, object] = MappingProxyType({})
THINNED = 20.0  # the first class's records, by the last one's
Cell = str | float
Way = Callable[[Arena, float, int], Cell]  # of an arena, a total and so many repeats


def best_accuracies(
    arena: Arena, learner: Learner, epsilon: float, repeats: int, name: str = "", **measure: Any
) -> Floats:
    """By repeat, at the best of three r."""
    median = prior_of_learner(learner.name, kind=True).median
    asks = [
        ask_for(f"{name}{epsilon} {around}", arena, learner, epsilon, around * median)
        for around in (AROUND if learner.searches else AROUND[:1])
    ]
    return max(accuracies(arena, asks, repeats, **measure), key=np.mean)


def changed(**keys: Any) -> Way:
    """A descent of these keys; kappa stands beside it where the range of r moved it."""

    def cell(arena: Arena, epsilon: float, repeats: int) -> Cell:
        learner, known = Descent(**keys), centred(arena.terms.lineage)
        ask = ask_for(f"{epsilon}", arena, learner, epsilon, centred=known)
        kappa = Space(ask.search, learner, arena.constants).kappa(ask.ask.r, ask.ask.mu)
        moved = abs(kappa / prior_of_learner(learner.name, known).median - 1) >= 0.05
        return mean_and_sd(accuracies(arena, [ask], repeats)) + (f" (κ {kappa:.2f})" * moved)

    return cell


def free_of_choice(rate: float, values: Mapping[str, object] = NO_KEYS, **guards: float) -> Way:
    """HyFreeDP with these keys. `guards`: those that are taken away."""
    learner = HyperparameterFree.model_validate({**values, "sampling_rate": rate})

    def cell(arena: Arena, epsilon: float, repeats: int) -> Cell:
        with patch.dict(vars(hyfree), guards):
            ask = ask_for(f"{epsilon}", arena, learner, epsilon)
            return mean_and_sd(accuracies(arena, [ask], repeats))

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
        name = f"{steps} {eta} {epsilon}"
        ask = ask_for(name, arena, Descent(), epsilon, search=search)
        kappa = Space(search, Descent(), arena.constants).kappa(ask.ask.r, ask.ask.mu)
        return f"{mean_and_sd(accuracies(arena, [ask], repeats))} (κ {kappa:.2f})"

    return cell


def at_any_total(learner: Learner) -> Way:
    def cell(arena: Arena, epsilon: float, repeats: int) -> Cell:
        known = centred(arena.terms.lineage)
        ask = ask_for(f"{epsilon}", arena, learner, epsilon, centred=known)
        return float(accuracies(arena, [ask], 1 if epsilon == inf else repeats).mean())

    return cell


def least_squares(arena: Arena, epsilon: float, _: int) -> Cell:
    """Of each class's indicator, by all records, with nothing held back."""
    if epsilon < inf:
        return ""
    x, labels = np.asarray(arena.train.features, np.float64), arena.train.labels
    weights = np.linalg.lstsq(x, np.eye(arena.constants.classes)[labels], rcond=None)[0]
    return float(np.mean((arena.test.features @ weights).argmax(1) == arena.test.labels))


def averaged(about: str, parts: Callable[[int], Sequence[range]]) -> Way:
    """Of models that are trained on these records each."""

    def cell(arena: Arena, epsilon: float, repeats: int) -> Cell:
        selections, of_parts = parts(arena.constants.n0), []
        for number, rows in enumerate(selections):
            part = first(arena, rows)
            which = f" {number}" * (len(selections) > 1)
            names = [f"{about} {epsilon} {again}{which}" for again in range(repeats)]
            of_parts.append(heads(part, [ask_for(n, part, Descent(), epsilon) for n in names]))
        means = [
            tuple(np.mean(layers, axis=0) for layers in zip(*each, strict=True))
            for each in zip(*of_parts, strict=True)
        ]
        return float(np.mean([trainings.accuracy(arena, mean) for mean in means]))

    return cell


def thinned(arena: Arena) -> Arena:
    """Class c keeps THINNED^(-c / (C - 1)) of the records that the first one has."""
    labels = arena.train.labels
    counts = np.bincount(labels)
    keep = counts.min() * THINNED ** (-np.arange(len(counts)) / (len(counts) - 1))
    rows = [np.flatnonzero(labels == label)[: round(most)] for label, most in enumerate(keep)]
    return with_units(first(arena, np.sort(np.concatenate(rows))))


def by_class(name: str) -> Way:
    """Mean accuracy over all classes, and over the smaller half."""

    def of_classes(arena: Arena, weights: Weights) -> list[float]:
        labels = arena.test.labels
        right = logits(weights, arena.test.features).argmax(axis=1) == labels
        return [right[labels == label].mean() for label in range(int(labels.max()) + 1)]

    def cell(arena: Arena, epsilon: float, repeats: int) -> Cell:
        ask = ask_for(f"{name} {epsilon}", arena, learner_of({"name": name}), epsilon)
        right = accuracies(arena, [ask], repeats, of_classes)[0]
        return f"{right.mean():.3f}, {right[:, right.shape[1] // 2 :].mean():.3f}"

    return cell


ADAMW: dict[str, object] = {"optimizer": "adamw", "weight_decay": 0.01}
FIVE: dict[str, object] = {"points": 5}
LOW: dict[str, object] = {"eta": 1e-4}
PUBLISHED: dict[str, object] = {"steering": "published"}


@dataclass(frozen=True)
class Table:
    """`ways`: a row each. `seen`: the data as its trainings see them."""

    heading: str
    ways: Mapping[str, Way]
    problems: Sequence[str] = ("mnist5k",)
    epsilons: Sequence[float] = (0.5, 1.0, 4.0)
    repeats: int = 5
    centre: str = "auto"
    seen: Callable[[Arena], Arena] = with_units


def subsets() -> Mapping[str, Way]:
    shares = {
        f"{share:.0%} of the records": lambda count, share=share: [range(round(share * count))]
        for share in (1, 0.5, 0.25, 0.1)
    }
    disjoint = {
        f"{parts} disjoint parts, weights averaged": lambda count, parts=parts: [
            range(place, count, parts) for place in range(parts)
        ]
        for parts in (2, 5, 10)
    }
    return {about: averaged(about, parts) for about, parts in (shares | disjoint).items()}


def tables(rate: float) -> Mapping[str, Table]:
    free = partial(free_of_choice, rate)
    return {
        "parts": Table(
            "changed",
            {
                "the default": changed(),
                "momentum 0": changed(momentum=0.0),
                "momentum 0.5": changed(momentum=0.5),
                "momentum 0.98": changed(momentum=0.98),
                "average: ema": changed(average="ema"),
                "average: swa": changed(average="swa"),
                "no free step": changed(free_step=False),
                "bias": changed(bias=True),
                "clip 0.3": changed(clip=0.3),
                "clip 10": changed(clip=10.0),
                "clip 50": changed(clip=50.0),
                "clipping: automatic": changed(clipping="automatic"),
                "schedule: cosine": changed(schedule="cosine"),
                "schedule: linear": changed(schedule="linear"),
            },
            repeats=10,
        ),
        "hyfree": Table(
            "what",
            {
                "ours": free(),
                "the last loss is the bound": free(ROOM=1.0),
                "every look is believed": free(LOSS_GAP_SDS=0.0),
                "a rate moves as far as it likes": free(FACTOR=1e12),
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
        "subsets": Table("trained on", subsets(), centre="public"),
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
    options = read_options(
        __doc__,
        choices={"table": [*known], "only": [way for one in known.values() for way in one.ways]},
        table="parts",
        problems=list[str],
        epsilons=list[float],
        repeats=0,
        only=list[str],
        rate=1.0,
        cache=Path,
    )
    table = tables(options.rate)[options.table]
    epsilons = options.epsilons or table.epsilons
    print_head("data", table.heading, *totals(epsilons))
    for problem in options.problems or table.problems:
        arena = table.seen(load(problem, options.cache, table.centre))
        for about in options.only or table.ways:
            way, repeats = table.ways[about], options.repeats or table.repeats
            print_row(problem, about, *(way(arena, one, repeats) for one in epsilons))


if __name__ == "__main__":
    main()
