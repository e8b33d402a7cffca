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
from arena import LENGTH, arena_of, cut
from PIL import Image
from shift import mean_accuracies
from terminal import print_head, print_row, read_options

from dpladder.data.centre import Map
from dpladder.data.datasets import open_source
from dpladder.learn.data import Data

DOMAINS = {"mnist": "mnist5k", "digits": "digits"}


def parts_of(name: str) -> tuple[Data, Data]:
    """Four fifths to train on, and the rest."""
    source = open_source(name)
    images = [Image.fromarray(source.read(i)).resize((8, 8)) for i in range(len(source.labels))]
    rows = np.stack([np.asarray(image, np.float32).ravel() for image in images]) / 128 - 1
    order = np.random.default_rng(0).permutation(len(rows))
    labels = np.asarray(source.labels, np.int64)[order]
    return cut(np.asarray(Map(length=LENGTH)(rows))[order], labels, len(rows) * 4 // 5)


def main() -> None:
    options = read_options(__doc__, epsilons=[1.0, 4.0], repeats=5)
    domains = {name: parts_of(source) for name, source in DOMAINS.items()}
    first, *others = (test for _, test in domains.values())
    print_head("trained on", "total ε", *DOMAINS)
    for names in (["mnist"], ["digits"], [*DOMAINS]):
        features = np.concatenate([domains[name][0].features for name in names])
        labels = np.concatenate([domains[name][0].labels for name in names])
        order = np.random.default_rng(1).permutation(len(labels))
        arena = arena_of("digits-of-both", Data(features[order], labels[order]), first)
        for epsilon in (*options.epsilons, inf):
            cells = mean_accuracies(arena, others, epsilon, options.repeats)
            total = "∞" if epsilon == inf else f"{epsilon:g}"
            print_row(" and ".join(names), total, *cells)


if __name__ == "__main__":
    main()
