"""Training on one domain, on another, or on both: each domain's accuracy, in one process. What
groups.yaml asks, on digits.

python tools/domains.py [--epsilons 1 4] [--repeats 5]

MNIST's 5,000 digits and scikit-learn's 1,797, all of 8 by 8 pixels, a domain each. One training by
the prior's kappa with the whole total; infinity is the same learner without noise at the best r of
a grid. Public data, seeded.
"""

from __future__ import annotations

from math import inf

import numpy as np
from arena import DELTA
from PIL import Image
from shift import tested
from terminal import print_head, print_row, read_options

from dpladder.config.model import Resources
from dpladder.data.centre import Map
from dpladder.data.datasets import open_source
from dpladder.learn.data import Data
from dpladder.learn.interface import Constants
from dpladder.privacy.ledger.state import Terms
from dpladder.research.contest import Arena

DOMAINS = {"mnist": "mnist5k", "digits": "digits"}
LENGTH = 32.0


def halves(source: str) -> tuple[Data, Data]:
    """Four fifths to train on, and the rest."""
    found = open_source(source)
    images = [
        Image.fromarray(found.read(index)).resize((8, 8)) for index in range(len(found.labels))
    ]
    rows = np.stack([np.asarray(image, np.float32).ravel() for image in images]) / 128 - 1
    order = np.random.default_rng(0).permutation(len(rows))
    cut = len(rows) * 4 // 5
    seen, labels = Map(length=LENGTH)(rows), np.asarray(found.labels, np.int64)
    train, test = (Data(seen[part], labels[part]) for part in (order[:cut], order[cut:]))
    return train, test


def arena(train: list[Data], test: Data) -> Arena:
    features = np.concatenate([one.features for one in train])
    labels = np.concatenate([one.labels for one in train])
    count, width = features.shape
    constants = Constants(n0=count, classes=10, dimension=width, delta=DELTA, length=LENGTH)
    terms = Terms("digits-of-both", "add_remove", "record", 1, DELTA, "given", mode="research")
    order = np.random.default_rng(1).permutation(count)
    return Arena(
        Data(features[order], labels[order]), test, constants, terms, Resources(threads=1), 0
    )


def main() -> None:
    asked = read_options(__doc__, epsilons=[1.0, 4.0], repeats=5)
    found = {name: halves(source) for name, source in DOMAINS.items()}
    first, *others = (test for _, test in found.values())
    print_head("trained on", "total ε", *DOMAINS)
    for names in (["mnist"], ["digits"], [*DOMAINS]):
        both = arena([found[name][0] for name in names], first)
        for epsilon in (*asked.epsilons, inf):
            row = tested(both, others, epsilon, asked.repeats)
            total = "∞" if epsilon == inf else f"{epsilon:g}"
            print_row(" and ".join(names), total, *row)


if __name__ == "__main__":
    main()
