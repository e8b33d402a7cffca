"""The trainings that searches ask for: many over one pass of the features, each with the noise that
it declares."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from dpladder.config.learners import Learner
from dpladder.config.model import Resources
from dpladder.config.sweep_sections import Search
from dpladder.learn.counts import right_counts
from dpladder.learn.data import Data
from dpladder.learn.interface import MAX_BATCHED_TRAININGS, Constants, Hyper
from dpladder.learn.trainings import declare, scorer_of, train_many
from dpladder.privacy.arrays import Floats
from dpladder.privacy.release.meter import Draw, Meter
from dpladder.search.protocol import Answer, Ask, Mask
from dpladder.search.space import hyper_of


@dataclass(frozen=True, eq=False)
class NamedAsk:
    """What a search asks for, under a name that no other training of its bench has.

    Attributes:
        name: of the streams that its noise comes from.
        ask: the training.
        learner: its section in the config.
        search: how r falls into eta and steps.
    """

    name: str
    ask: Ask
    learner: Learner
    search: Search

    @property
    def hyper(self) -> Hyper:
        """The training's hyperparameters."""
        r = None if self.learner.searches is None else self.ask.r
        return hyper_of(self.learner, self.search, r, self.ask.mu, self.ask.delta0)


@dataclass(frozen=True)
class Bench:
    """What all trainings share.

    Attributes:
        data: private features and labels.
        constants: public sizes and bounds.
        resources: threads and memory of the whole job.
        meter: gives each training a meter of its own for the draws that it declares.
    """

    data: Data
    constants: Constants
    resources: Resources
    meter: Callable[[NamedAsk, Sequence[Draw]], Meter]


def answers(bench: Bench, trainings: Sequence[NamedAsk]) -> tuple[list[Answer], Floats]:
    """Weights and counts of right answers, of each training. Private.

    Every core has a batch of its own.

    Args:
        bench: the data, and what makes meters.
        trainings: in any order.

    Returns:
        An answer for each, in the order of `trainings`; and the seconds that each took, its share
        of its batch's.
    """
    batches = [*_batches(trainings, bench.resources.threads)]
    by_number: dict[int, Answer] = {}
    seconds = np.empty(len(trainings))
    with ThreadPoolExecutor(bench.resources.threads) as pool:
        together = pool.map(
            partial(_train_together, bench), ([trainings[i] for i in batch] for batch in batches)
        )
        for batch, (answers_of_batch, spent) in zip(batches, together, strict=True):
            by_number |= zip(batch, answers_of_batch, strict=True)
            steps = np.array([trainings[i].hyper.steps for i in batch])
            seconds[batch] = spent * steps / steps.sum()
    return [by_number[i] for i in range(len(trainings))], seconds


def _batches(trainings: Sequence[NamedAsk], cores: int) -> Iterator[list[int]]:
    """Places of those that read the same records. A batch is as long as its longest, so like
    lengths go together; the longest first, so that cores end together."""
    wide = min(MAX_BATCHED_TRAININGS, math.ceil(len(trainings) / cores))
    groups: dict[Hashable, list[int]] = {}
    for place, training in enumerate(trainings):
        ask = training.ask
        groups.setdefault(
            (id(ask.trained), id(ask.counted), ask.share, training.learner), []
        ).append(place)
    for group in groups.values():
        group.sort(key=lambda place: -trainings[place].hyper.steps)
        yield from (group[start : start + wide] for start in range(0, len(group), wide))


def _train_together(bench: Bench, trainings: Sequence[NamedAsk]) -> tuple[list[Answer], float]:
    """Trained as a release would be, each with the noise that it declares, and on one core."""
    began = time.perf_counter()
    ask, learner = trainings[0].ask, trainings[0].learner
    hypers = [training.hyper for training in trainings]
    constants = replace(bench.constants, n0=max(1, round(ask.share * bench.constants.n0)))
    data = _select_units(bench.data, ask.trained)
    share = {"threads": 1, "mem_mb": max(1, bench.resources.mem_mb // bench.resources.threads)}
    resources = bench.resources.model_copy(update=share)
    meters = [
        bench.meter(training, declare(learner, hyper, constants).draws)
        for hyper, training in zip(hypers, trainings, strict=True)
    ]
    heads = train_many(data, hypers, learner, constants, meters, resources)
    for meter in meters:
        meter.close()
    counted = _select_units(bench.data, ask.counted)
    counts = right_counts(scorer_of(learner, constants), heads, counted)
    answers_found = [Answer(head, int(count)) for head, count in zip(heads, counts, strict=True)]
    return answers_found, time.perf_counter() - began


def _select_units(data: Data, mask: Mask | None) -> Data:
    """The records that a mask names, all where there is none."""
    if mask is None:
        return data
    units = None if data.units is None else data.units[mask]
    return replace(data, features=data.features[mask], labels=data.labels[mask], units=units)
