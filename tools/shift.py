"""In distribution and off it, network by network, in one process: what grid.yaml and shift.yaml
ask, without the workflow.

python tools/shift.py [mnist5k | cifar10] [--networks efficientnet_lite0 efficientnet_lite1
    efficientnet_lite2] [--epsilons 0.5 1 4 inf] [--records 5000] [--size 96] [--repeats 5]
    [--cache FOLDER]

Trains on the last output of each network, less the network's own mean, and tests on records of the
same kind and of another: mnist5k on its own fifth and on scikit-learn's digits, cifar10 (see
arena.py; EfficientNet-Lite0 at 128 pixels, whatever the options) on its own test images and on
`--records` of them. Of the other kind also with Gaussian blur and noise. One training by the
prior's kappa with the whole total; inf is the same learner without noise, at the best r.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from pathlib import Path

import numpy as np
from arena import DELTA, PUBLISHED, chosen_depths, encoded, load
from terminal import print_head, print_row, read_options

from dpladder.config.features_sections import Features
from dpladder.config.learners import Learner
from dpladder.config.model import Resources
from dpladder.config.shift import Corruption
from dpladder.config.sweep_sections import Search
from dpladder.data.backbones import encoder
from dpladder.data.centre import Map, network_mean
from dpladder.data.datasets import open_source
from dpladder.data.shift import corrupt_image
from dpladder.learn.counts import right_counts
from dpladder.learn.data import Data
from dpladder.learn.interface import Constants, Weights
from dpladder.learn.scorers import ClassScorer
from dpladder.methods.dp_gd.section import Descent
from dpladder.privacy.accounting import gdp
from dpladder.privacy.ledger.state import Terms
from dpladder.research.contest import Arena, bench_of
from dpladder.research.without_noise import OPEN, best
from dpladder.search.bench import NamedAsk, answers
from dpladder.search.prior import belief, with_prior
from dpladder.search.protocol import Ask
from dpladder.search.space import Space

LENGTH = 32.0
OTHERS = {"mnist5k": "digits", "cifar10": PUBLISHED["cifar10"].sources[-1]}
TESTS: dict[str, Corruption | None] = {
    "as they are": None,
    **{
        f"{kind} {severity}": Corruption(kind, severity)
        for kind in ("blur", "noise")
        for severity in (1, 3, 5)
    },
}


def main() -> None:
    asked = read_options(
        __doc__,
        choices={"problem": [*OTHERS]},
        problem="mnist5k",
        networks=[f"efficientnet_lite{size}" for size in range(3)],
        epsilons=[0.5, 1.0, 4.0, inf],
        records=5000,
        size=96,
        repeats=5,
        cache=Path,
    )
    published = PUBLISHED.get(asked.problem)
    networks = [Features(model=name, image_size=asked.size) for name in asked.networks]
    print_head("network", "total ε", asked.problem, *TESTS)
    for features in [published.features] if published else networks:
        seen = seen_by(features)
        arena = (
            load(asked.problem, asked.cache, 1, 0)
            if published
            else arena_of(features, seen, asked.records)
        )
        others = [
            data_of(OTHERS[asked.problem], features, seen, asked.records, how)
            for how in TESTS.values()
        ]
        for epsilon in asked.epsilons:
            found = tested(arena, others, epsilon, asked.repeats)
            print_row(features.model, f"{epsilon:g}", *found)


def seen_by(features: Features) -> Map:
    """What a training sees of the last output: itself less the network's own mean."""
    mean = network_mean(features.model_copy(update={"layers": "last"}))
    return Map(mean, None, LENGTH, Features().constant)


def arena_of(features: Features, seen: Map, records: int) -> Arena:
    """MNIST's images as a training sees them."""
    own = data_of("mnist5k", features, seen, records)
    cut = len(own.labels) * 4 // 5
    train, test = (
        Data(own.features[part], own.labels[part]) for part in (slice(cut), slice(cut, None))
    )
    width = own.features.shape[1]
    constants = Constants(n0=cut, classes=10, dimension=width, delta=DELTA, length=LENGTH)
    terms = Terms("mnist5k", "add_remove", "record", 1, DELTA, "given", mode="research")
    return Arena(train, test, constants, terms, Resources(threads=1), 0)


def data_of(
    name: str, features: Features, seen: Map, records: int, how: Corruption | None = None
) -> Data:
    source = open_source(name)
    network = encoder(features, source, threads=1)
    order = np.random.default_rng(0).permutation(len(source.labels))[:records]
    images = [network.load(source.read(int(index)), 0) for index in order]
    if how is not None:
        images = [corrupt_image(image, how) for image in images]
    rows = chosen_depths(encoded(network, images), str(network.facts["depths"]), "last")
    _, labels = np.unique(source.labels, return_inverse=True)
    return Data(seen(rows), labels[order])


def tested(arena: Arena, others: Sequence[Data], epsilon: float, repeats: int) -> list[float]:
    """Mean accuracy over repeats, on the arena's own test and on the others."""
    found = heads(arena, Descent(), epsilon, repeats)
    return [
        float(right_counts(ClassScorer(), found, data).mean()) / len(data.labels)
        for data in (arena.test, *others)
    ]


def heads(
    arena: Arena, learner: Learner, epsilon: float, repeats: int, known: bool = True
) -> list[Weights]:
    """The whole total in one training each, at the prior's kappa; without noise at the best r.
    `known`: the records are centred."""
    space, mu, r = place(arena, learner, epsilon, known)
    asks = [
        NamedAsk(f"{epsilon} {repeat}", Ask(r, mu), learner, space.search)
        for repeat in range(repeats)
    ]
    return [one.weights for one in answers(bench_of(arena), asks)[0]]


def place(
    arena: Arena, learner: Learner, epsilon: float, known: bool
) -> tuple[Space, float, float]:
    """The space, mu and r."""
    search = with_prior(Search(), learner, known)
    space = Space(search, learner, arena.constants)
    if epsilon == inf:
        r, search = best(arena, space)
        return Space(search, learner, arena.constants), OPEN, r
    mu = gdp.mu_from_epsilon(epsilon, DELTA)
    return space, mu, space.r(belief(learner.name, search).median, mu)


if __name__ == "__main__":
    main()
