"""In distribution and off it, network by network, in one process: what grid.yaml and shift.yaml
ask, without the workflow.

python tools/shift.py [mnist5k | cifar10 | cifar100] [--networks efficientnet_lite0
    efficientnet_lite1 efficientnet_lite2] [--epsilons 0.5 1 4 inf] [--records 5000] [--size 96]
    [--repeats 5] [--cache FOLDER]

Trains on the last output of each network, less the network's own mean, and tests on records of the
same kind and of another: mnist5k on its own fifth and on scikit-learn's digits, the others (see
arena.py; EfficientNet-Lite0 at 128 pixels, whatever the options) on its own test images and on
`--records` of them. Of the other kind also with Gaussian blur and noise. One training by the
prior's kappa with the whole total; inf is the same learner without noise, at the best r.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path

import numpy as np
from arena import LENGTH, PUBLISHED, arena_of, chosen_depths, cut, encoded, load
from terminal import print_head, print_row, read_options
from trainings import ask_for, heads, shares_right

from dpladder.config.features_sections import Features
from dpladder.config.records import Corruption
from dpladder.data.backbones import encoder
from dpladder.data.centre import Map, network_mean
from dpladder.data.datasets import open_source
from dpladder.data.shift import corrupt_image
from dpladder.learn.data import Data
from dpladder.methods.dp_gd import Descent
from dpladder.research.arena import Arena

OTHERS = {"mnist5k": "digits"} | {
    name: PUBLISHED[name].sources[-1] for name in ("cifar10", "cifar100")
}
TESTS: dict[str, Corruption | None] = {
    "as they are": None,
    **{
        f"{kind} {severity}": Corruption(kind, severity)
        for kind in ("blur", "noise")
        for severity in (1, 3, 5)
    },
}


def main() -> None:
    options = read_options(
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
    published = PUBLISHED.get(options.problem)
    networks = [Features(model=name, image_size=options.size) for name in options.networks]
    print_head("network", "total ε", options.problem, *TESTS)
    for features in [published.features] if published else networks:
        read = partial(data_of, features=features, records=options.records)
        if published:
            arena = load(options.problem, options.cache, threads=1)
        else:
            whole = read("mnist5k")
            count = len(whole.labels) * 4 // 5
            arena = arena_of("mnist5k", *cut(whole.features, whole.labels, count))
        others = [read(OTHERS[options.problem], how=how) for how in TESTS.values()]
        for epsilon in options.epsilons:
            cells = mean_accuracies(arena, others, epsilon, options.repeats)
            print_row(features.model, f"{epsilon:g}", *cells)


def data_of(name: str, features: Features, records: int, how: Corruption | None = None) -> Data:
    """What a training sees of the last output: itself less the network's own mean."""
    source = open_source(name)
    network = encoder(features, source, threads=1)
    order = np.random.default_rng(0).permutation(len(source.labels))[:records]
    images = [source.read(int(index)) for index in order]
    change = partial(corrupt_image, how=how) if how else lambda image: image
    rows = encoded(network, images, change)
    mean = network_mean(features.model_copy(update={"layers": "last"}))
    seen = Map(mean, None, LENGTH, Features().constant)
    _, labels = np.unique(source.labels, return_inverse=True)
    return Data(seen(chosen_depths(rows, str(network.facts["depths"]), "last")), labels[order])


def mean_accuracies(
    arena: Arena, others: Sequence[Data], epsilon: float, repeats: int
) -> list[float]:
    """Over repeats, on the arena's own test and on the others: the whole total in one training
    each, at the prior's kappa; without noise at the best r."""
    names = [f"{epsilon} {repeat}" for repeat in range(repeats)]
    ask = ask_for("", arena, Descent(), epsilon)
    weights = heads(arena, [replace(ask, name=name) for name in names])
    return [float(shares_right(arena, weights, data).mean()) for data in (arena.test, *others)]


if __name__ == "__main__":
    main()
