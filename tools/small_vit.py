"""A vision transformer of timm's from random weights: what of it is trained, and by whose steps.
Public data, seeded.

python tools/small_vit.py [--epsilons 8] [--repeats 2] [--records 400]

Scikit-learn's digits at 32 pixels through timm's smallest vision transformer (0.37 million
weights), whose upper half may be trained. The whole total goes into one full-batch training of 20
steps: by dp_finetune at a kappa of 0.7, or, with nothing to choose, by hyfree_finetune, as
published too, and prodigy_finetune with Prodigy's or D-Adaptation's step sizes. It shows that these
networks train, and at which price; it says nothing of pretrained ones.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from arena import arena_of, cut, encoded
from terminal import print_head, print_row, read_options, totals
from trainings import accuracy, ask_for, mean_and_sd, trained, training_for

from dpladder.config.features_sections import Features
from dpladder.config.learners import learner_of
from dpladder.config.sweep_sections import Search
from dpladder.data.backbones import encoder
from dpladder.data.datasets import open_source
from dpladder.network.cut import network_of
from dpladder.research.arena import Arena

NETWORK, SIZE, UNTIL = "test_vit", 32, "blocks.2"
SHORT = Search(steps=(20, 20))
KAPPA = 0.7  # what did best on the one network that was tried (docs/measurements/learners.md)
HYFREE: dict[str, object] = {"name": "hyfree_finetune", "steps": 20}
PUBLISHED: dict[str, object] = {
    "steering": "published",
    "optimizer": "adamw",
    "eta": 1e-4,
    "weight_decay": 0.01,
    "points": 5,
}
PRODIGY = HYFREE | {"name": "prodigy_finetune"}
BY: dict[str, dict[str, object]] = {
    "dp_finetune": {"name": "dp_finetune"},
    "hyfree_finetune": HYFREE,
    "hyfree_finetune, as published": HYFREE | PUBLISHED,
    "prodigy_finetune": PRODIGY,
    "prodigy_finetune, d_adaptation": PRODIGY | {"step_sizes": "d_adaptation"},
}


def main() -> None:
    options = read_options(__doc__, epsilons=[8.0], repeats=2, records=400)
    arena = activations(options.records)
    print_head("trained", "by", *totals(options.epsilons))
    for trains in ("head", "norm_and_bias", "all"):
        for name, keys in BY.items():
            learner, cells = learner_of(keys | {"trains": trains, "bias": True}), []
            for epsilon in options.epsilons:
                training = training_for(arena, ask_for("", arena, learner, epsilon, KAPPA, SHORT))
                names = [f"{learner} {epsilon} {repeat}" for repeat in range(options.repeats)]
                weights = [trained(arena, training, name) for name in names]
                cells.append(mean_and_sd([accuracy(arena, one, learner) for one in weights]))
            print_row(trains, name, *cells)


def activations(records: int) -> Arena:
    """Records where the frozen part of the network ends; a fifth of them to test on."""
    source = open_source("digits")
    features = Features(model=NETWORK, weights="random", image_size=SIZE, until=UNTIL)
    order = np.random.default_rng(0).permutation(len(source.labels))[:records]
    images = [source.read(int(index)) for index in order]
    rows = encoded(encoder(features, source, threads=1), images).astype(np.float32)
    network = network_of(NETWORK, UNTIL, SIZE, "random")
    parts = cut(rows, np.asarray(source.labels, np.int64)[order], records * 4 // 5)
    facts: dict[str, Any] = {"network": network, "dimension": math.prod(network.shape)}
    arena = arena_of("digits", *parts, length=1.0, **facts)
    units = np.arange(2 * len(parts[0].labels), dtype=np.uint64).reshape(-1, 2).view(np.uint8)
    return replace(arena, train=replace(arena.train, units=units))


if __name__ == "__main__":
    main()
