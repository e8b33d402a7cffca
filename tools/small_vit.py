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

import numpy as np
from arena import DELTA, encoded
from terminal import print_head, print_row, read_options, totals
from trainings import accuracy, mean_and_sd, trained, training_for

from dpladder.config.features_sections import Features
from dpladder.config.learners import Learner, learner_of
from dpladder.config.model import Resources
from dpladder.config.sweep_sections import Search
from dpladder.data.backbones import encoder
from dpladder.data.datasets import open_source
from dpladder.learn.data import Data
from dpladder.learn.interface import Constants
from dpladder.network.cut import network_of
from dpladder.privacy.ledger.state import Terms
from dpladder.research.contest import Arena

NETWORK, SIZE, UNTIL = "test_vit", 32, "blocks.2"
SHORT = Search(steps=(20, 20))
KAPPA = 0.7  # what did best on the one network that was tried (docs/measurements/learners.md)
FREE: dict[str, object] = {"name": "hyfree_finetune", "steps": 20, "bias": True}
PUBLISHED: dict[str, object] = {
    "steering": "published",
    "optimizer": "adamw",
    "eta": 1e-4,
    "weight_decay": 0.01,
    "points": 5,
}
BY: dict[str, dict[str, object]] = {
    "dp_finetune": {"name": "dp_finetune", "bias": True},
    "hyfree_finetune": FREE,
    "hyfree_finetune, as published": FREE | PUBLISHED,
    "prodigy_finetune": FREE | {"name": "prodigy_finetune"},
    "prodigy_finetune, d_adaptation": FREE
    | {"name": "prodigy_finetune", "step_sizes": "d_adaptation"},
}


def main() -> None:
    asked = read_options(__doc__, epsilons=[8.0], repeats=2, records=400)
    arena = activations(asked.records)
    print_head("trained", "by", *totals(asked.epsilons))
    for trains in ("head", "norm_and_bias", "all"):
        for name, own in BY.items():
            learner = learner_of(own | {"trains": trains})
            cells = [cell(arena, learner, epsilon, asked.repeats) for epsilon in asked.epsilons]
            print_row(trains, name, *cells)


def cell(arena: Arena, learner: Learner, epsilon: float, repeats: int) -> str:
    training = training_for(arena, learner, epsilon, KAPPA, SHORT)
    names = [f"{learner} {epsilon} {repeat}" for repeat in range(repeats)]
    return mean_and_sd([accuracy(arena, trained(arena, training, name), learner) for name in names])


def activations(records: int) -> Arena:
    """Records where the frozen part of the network ends; a fifth of them to test on."""
    source, features = (
        open_source("digits"),
        Features(model=NETWORK, weights="random", image_size=SIZE, until=UNTIL),
    )
    network = encoder(features, source, threads=1)
    order = np.random.default_rng(0).permutation(len(source.labels))[:records]
    images = [network.load(source.read(int(index)), 0) for index in order]
    rows = encoded(network, images).astype(np.float32)
    labels, cut = np.asarray(source.labels, np.int64)[order], records * 4 // 5
    units = np.arange(2 * cut, dtype=np.uint64).reshape(cut, 2).view(np.uint8)
    cut_at = network_of(NETWORK, UNTIL, SIZE, "random")
    width = math.prod(cut_at.shape)
    constants = Constants(n0=cut, classes=10, dimension=width, delta=DELTA, network=cut_at)
    terms = Terms("digits", "add_remove", "record", 1, DELTA, "given", mode="research")
    train = Data(rows[:cut], labels[:cut], units)
    return Arena(train, Data(rows[cut:], labels[cut:]), constants, terms, Resources(threads=1), 0)


if __name__ == "__main__":
    main()
