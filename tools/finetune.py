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
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
from arena import encoded, load, with_units
from numpy.typing import NDArray
from terminal import print_head, print_row, read_options
from trainings import accuracy, mean_and_sd, trained, training_for

from dpladder.config.features_sections import Features
from dpladder.config.learner_sections import Head
from dpladder.config.learners import Learner, learner_of
from dpladder.config.sweep_sections import Search
from dpladder.data.backbones import encoder
from dpladder.data.datasets import open_source
from dpladder.learn import public_head
from dpladder.learn.data import Data
from dpladder.learn.trainings import weights_of
from dpladder.methods.dp_finetune.section import FineTune
from dpladder.methods.dp_gd.section import Descent
from dpladder.network.cut import network_of
from dpladder.privacy.accounting import booking, gdp
from dpladder.privacy.accounting.booking import Entry
from dpladder.research.contest import Arena, PublicMeter
from dpladder.search.first_head import head_of, training_of_head, worth_of
from dpladder.search.prior import AFTER_HEAD, prior_of_learner
from dpladder.search.space import Space
from dpladder.search.training import training_of

NETWORK, SIZE, UNTIL = "efficientnet_lite0", 96, "blocks.5"
TUNED = {"name": "dp_finetune", "trains": "last_block", "bias": True, "sampling_rate": 0.25}
BOUGHT = Head(epsilon=1.0)  # a training does not ask what it cost
FEW = Search(steps=(20, 500))  # passes through a network are dear


def main() -> None:
    asked = read_options(
        __doc__,
        epsilons=[1.0, 2.0, 4.0, 8.0],
        repeats=2,
        kappas=[0.0],
        learner=json.loads,
        shares=list[float],
        public=0,
        until=UNTIL,
        threads=1,
        cache=Path,
    )
    head = with_units(load("mnist5k", asked.cache, asked.threads, 0))
    cut = beside(activations(head, asked.until, asked.cache), asked.public)
    own = asked.learner or {}
    if asked.public:
        own["public"] = "gradient"
    print_head("learner", "kappa", "total", "test accuracy, mean and sd", "CPU seconds", "steps")
    for epsilon in asked.epsilons:
        compared("head", head, Descent(), Search(), epsilon, 0.0, asked.repeats)
        learner = learner_of(TUNED | own)
        for kappa in asked.kappas:
            if not asked.shares:
                compared("network", cut, learner, FEW, epsilon, kappa, asked.repeats)
            for share in asked.shares:
                after_head(cut, learner, FEW, epsilon, kappa, asked.repeats, share)


def activations(head: Arena, until: str, cache: Path | None) -> Arena:
    """The same records where the frozen part of the network ends."""
    rows, labels = kept(until, cache)
    network = network_of(NETWORK, until, SIZE, "bundled")
    order, count = np.random.default_rng(0).permutation(len(labels)), len(head.train.labels)
    train = Data(rows[order[:count]], labels[order[:count]], head.train.units)
    test = Data(rows[order[count:]], labels[order[count:]])
    assert np.array_equal(train.labels, head.train.labels), "arena.py cuts the data in another way"
    constants = replace(head.constants, dimension=math.prod(network.shape), network=network)
    return replace(head, train=train, test=test, constants=constants)


def beside(arena: Arena, count: int) -> Arena:
    """The arena without its first records, which are public, and the head that they train."""
    if not count:
        return arena
    train, constants = arena.train, replace(arena.constants, n0=arena.constants.n0 - count)
    sample = Data(train.features[:count], train.labels[:count])
    seen = weights_of(FineTune(trains="head", bias=True)).seen_by_head(
        FineTune(trains="head", bias=True), constants
    )
    head, claim = public_head.fit_public_head(sample, constants.classes, seen)
    assert train.units is not None
    private = Data(train.features[count:], train.labels[count:], train.units[count:])
    private = replace(private, sample=sample, start=head, claim=claim)
    return replace(arena, train=private, constants=constants)


def kept(until: str, cache: Path | None) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    file = None if cache is None else cache / f"mnist5k-{until}-{SIZE}.npz"
    if file is None or not file.exists():
        source = open_source("mnist5k")
        network = encoder(Features(image_size=SIZE, batch_size=50, until=until), source, threads=2)
        records = [network.load(source.read(index), 0) for index in range(len(source.labels))]
        rows, labels = (
            encoded(network, records).astype(np.float32),
            np.asarray(source.labels, np.int64),
        )
        if file is None:
            return rows, labels
        np.savez(file, features=rows, labels=labels)
    with np.load(file) as arrays:
        return arrays["features"], arrays["labels"]


def compared(
    name: str,
    arena: Arena,
    learner: Learner,
    search: Search,
    epsilon: float,
    kappa: float,
    repeats: int,
) -> None:
    kappa = kappa or prior_of_learner(learner.name, centred=arena.constants.network is None).median
    training = training_for(arena, learner, epsilon, kappa, search)
    found, seconds = [], []
    for repeat in range(repeats):
        start = time.process_time()
        weights = trained(arena, training, f"{name} {kappa} {epsilon} {repeat}")
        seconds.append(time.process_time() - start)
        found.append(accuracy(arena, weights, learner))
    at = "–" if learner.searches is None else f"{kappa:g}"
    cost = f"{np.median(seconds):.0f}"
    print_row(name, at, f"{epsilon:g}", mean_and_sd(found), cost, training.hyper.steps)


def after_head(
    arena: Arena,
    learner: Learner,
    search: Search,
    epsilon: float,
    kappa: float,
    repeats: int,
    share: float,
) -> None:
    """A head for this share of mu^2, and the network from there on for what is left."""
    assert isinstance(learner, FineTune)
    delta = arena.constants.delta
    delta0 = booking.delta0_of(delta, booking.FINAL, booking.SAMPLED_SHARE) if share < 1.0 else 0.0
    mu = booking.largest_mu(epsilon, delta, Entry(delta0=delta0))
    public: Literal["gradient", "none"] = "gradient" if learner.uses_public_gradient else "none"
    head = training_of_head(
        head_of(learner.bias, learner.link, learner.augment, public, learner.look),
        Entry(share**0.5 * mu),
        arena.constants,
    )
    network = head
    if share < 1.0:
        space = Space(search, learner.model_copy(update={"head": BOUGHT}), arena.constants)
        left = gdp.remaining(mu, [share**0.5 * mu])
        r = space.r(kappa or AFTER_HEAD.median, left)
        network = training_of(space, r, Entry(left, delta0=delta0))
    found, seconds = [], []
    for repeat in range(repeats):
        name, data = f"after a head {share} {kappa} {epsilon} {repeat}", arena.train
        start = time.process_time()
        for place, training in enumerate((head, network)[: 1 + (share < 1.0)]):
            meter = PublicMeter(training.declared.draws, arena, f"{name} {place}")
            if isinstance(training.learner, FineTune) and training.learner.uses_public_gradient:
                worth = worth_of(training, data, meter, arena.resources)
                data = replace(data, worth=worth)
            weights = training.run(data, meter, arena.resources)
            data = replace(data, start=weights[-1])
        seconds.append(time.process_time() - start)
        found.append(accuracy(arena, weights, network.learner))
    cost = f"{np.median(seconds):.0f}"
    print_row(f"head for {share:g}", f"{kappa:g}", f"{epsilon:g}", mean_and_sd(found), cost, "")


if __name__ == "__main__":
    main()
