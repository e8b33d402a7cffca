"""The public network trained above a cut, next to a linear head on its pooled features, at equal
totals, on public data.

python tools/finetune.py [--epsilons 1 2 4 8] [--repeats 2] [--kappas 0.5 1 2] [--shares 1 0.6]
[--public 200] [--until blocks.3] [--learner '{"trains": "lora"}'] [--cache FOLDER]
python tools/finetune.py --learner '{"name": "hyfree_finetune"}'

The 5,000 images of mnist5k at 96 pixels through EfficientNet-Lite0. The whole total goes into one
training, at the kappa that the learner's prior expects, or at each of those given, where the
learner has one; noise is seeded and accounted as in a release. Each line is printed when it is
measured, with the CPU seconds of one training. With `--shares` such a part of mu^2 buys a head
first, from which the network starts; 1: the head alone, on what the network puts out as it is.
With `--public` the first so many records are public with their labels, and guide head and network.
"""

from __future__ import annotations

import json
import math
import time
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Literal

import numpy as np
from arena import IMAGES_96, cut, encoded, first, load, with_units
from numpy.typing import NDArray
from terminal import print_head, print_row, read_options
from trainings import accuracy, ask_for, mean_and_sd, training_for

from dpladder.config.learner_sections import Head
from dpladder.config.learners import Learner, learner_of
from dpladder.config.sweep_sections import Search
from dpladder.data.backbones import encoder
from dpladder.data.datasets import open_source
from dpladder.learn import public_head
from dpladder.learn.data import Data
from dpladder.learn.trainings import weights_of
from dpladder.methods.dp_finetune import FineTune
from dpladder.methods.dp_gd import Descent
from dpladder.network.cut import network_of
from dpladder.privacy.accounting import booking, gdp
from dpladder.privacy.accounting.booking import Entry
from dpladder.research.arena import Arena, PublicMeter
from dpladder.search.first_head import head_of, training_of_head, worth_of
from dpladder.search.prior import AFTER_HEAD, prior_of_learner
from dpladder.search.training import Training

UNTIL = "blocks.5"
TUNED = {"name": "dp_finetune", "trains": "last_block", "bias": True, "sampling_rate": 0.25}
BOUGHT = Head(epsilon=1.0)  # a training does not ask what it cost
SHORT_SEARCH = Search(steps=(20, 500))  # passes through a network are dear
COLUMNS = ("learner", "kappa", "total", "test accuracy, mean and sd", "CPU seconds", "steps")


def main() -> None:
    options = read_options(
        __doc__,
        epsilons=[1.0, 2.0, 4.0, 8.0],
        repeats=2,
        kappas=[0.0],
        learner=json.loads,
        shares=list[float],
        public=0,
        until=UNTIL,
        cache=Path,
    )
    head = with_units(load("mnist5k", options.cache, threads=1))
    arena = beside(activations(head, options.until, options.cache), options.public)
    public = {"public": "gradient"} if options.public else {}
    learner = learner_of(TUNED | (options.learner or {}) | public)
    print_head(*COLUMNS)
    for epsilon in options.epsilons:
        compare("head", head, Descent(), Search(), epsilon, 0.0, options.repeats)
        compare_each(arena, "network", learner, SHORT_SEARCH, epsilon, options)


def compare_each(
    arena: Arena, name: str, learner: Learner, search: Search, epsilon: float, options: Namespace
) -> None:
    """At each kappa of the options, after a head for each share, or with the whole total."""
    for kappa, share in product(options.kappas, options.shares or [0.0]):
        compare(name, arena, learner, search, epsilon, kappa, options.repeats, share)


def compare(
    name: str,
    arena: Arena,
    learner: Learner,
    search: Search,
    epsilon: float,
    kappa: float,
    repeats: int,
    share: float = 0.0,
) -> None:
    """A row: one training, or a head for this share of mu^2 and from there on the network."""
    if share:
        trainings = after_head(arena, learner, search, epsilon, kappa, share)
        name, seed = f"head for {share:g}", f"after a head {share} {kappa} {epsilon}"
        words = f"{kappa:g}", ""
    else:
        centred = arena.constants.network is None
        ask = ask_for("", arena, learner, epsilon, kappa or None, search, centred)
        trainings = [training_for(arena, ask)]
        kappa = kappa or prior_of_learner(learner.name, centred).median
        seed = f"{name} {kappa} {epsilon}"
        steps = f"{trainings[0].hyper.steps}"
        words = "–" if learner.searches is None else f"{kappa:g}", steps
    right, seconds = [], []
    for repeat in range(repeats):
        data, began = arena.train, time.process_time()
        for place, training in enumerate(trainings):
            stream = f"{seed} {repeat}" + f" {place}" * bool(share)
            meter = PublicMeter(training.declared.draws, arena, stream)
            if isinstance(training.learner, FineTune) and training.learner.uses_public_gradient:
                worth = worth_of(training, data, meter, arena.resources)
                data = replace(data, worth=worth)
            weights = training.run(data, meter, arena.resources)
            data = replace(data, start=weights[-1])
        seconds.append(time.process_time() - began)
        right.append(accuracy(arena, weights, trainings[-1].learner))
    at, steps = words
    print_row(name, at, f"{epsilon:g}", mean_and_sd(right), f"{np.median(seconds):.0f}", steps)


def after_head(
    arena: Arena, learner: Learner, search: Search, epsilon: float, kappa: float, share: float
) -> Sequence[Training]:
    """A head for this share of mu^2, and the network from there on for what is left."""
    assert isinstance(learner, FineTune)
    delta = arena.constants.delta
    delta0 = booking.delta0_of(delta, booking.FINAL, booking.SAMPLED_SHARE) if share < 1.0 else 0.0
    mu = booking.largest_mu(epsilon, delta, Entry(delta0=delta0))
    public: Literal["gradient", "none"] = "gradient" if learner.uses_public_gradient else "none"
    section = head_of(learner.bias, learner.link, learner.augment, public, learner.look)
    head = training_of_head(section, Entry(share**0.5 * mu), arena.constants)
    if share == 1.0:
        return [head]
    left = Entry(gdp.remaining(mu, [share**0.5 * mu]), delta0=delta0)
    above = learner.model_copy(update={"head": BOUGHT})
    ask = ask_for("", arena, above, left, kappa or AFTER_HEAD.median, search)
    return [head, training_for(arena, ask)]


def activations(head: Arena, until: str, cache: Path | None) -> Arena:
    """The same records where the frozen part of the network ends."""
    rows, labels = extracted(until, cache)
    network = network_of(IMAGES_96.model, until, IMAGES_96.image_size, "bundled")
    order, count = np.random.default_rng(0).permutation(len(labels)), len(head.train.labels)
    train, test = cut(rows[order], labels[order], count)
    assert np.array_equal(train.labels, head.train.labels), "arena.py cuts the data in another way"
    constants = replace(head.constants, dimension=math.prod(network.shape), network=network)
    return replace(
        head, train=replace(train, units=head.train.units), test=test, constants=constants
    )


def extracted(until: str, cache: Path | None) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    file = None if cache is None else cache / f"mnist5k-{until}-{IMAGES_96.image_size}.npz"
    if file is None or not file.exists():
        source = open_source("mnist5k")
        network = encoder(IMAGES_96.model_copy(update={"until": until}), source, threads=2)
        images = [source.read(index) for index in range(len(source.labels))]
        rows = encoded(network, images).astype(np.float32)
        labels = np.asarray(source.labels, np.int64)
        if file is None:
            return rows, labels
        np.savez(file, features=rows, labels=labels)
    with np.load(file) as arrays:
        return arrays["features"], arrays["labels"]


def beside(arena: Arena, count: int) -> Arena:
    """The arena without its first records, which are public, and the head that they train."""
    if not count:
        return arena
    sample = Data(arena.train.features[:count], arena.train.labels[:count])
    private, head = first(arena, slice(count, None)), FineTune(trains="head", bias=True)
    seen = weights_of(head).seen_by_head(head, private.constants)
    start, claim = public_head.fit_public_head(sample, arena.constants.classes, seen)
    return replace(private, train=replace(private.train, sample=sample, start=start, claim=claim))


if __name__ == "__main__":
    main()
