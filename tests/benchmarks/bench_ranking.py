"""How wide is the interval of an AUC, against the best binning in hindsight, and does it hold?

python tests/benchmarks/bench_ranking.py [--draws 40]

Made-up scores of a model that is too sure, by the share of the rarer class, the records of a test
and its epsilon. `told` is the share of draws that state an AUC; `held` of these, those whose
interval holds the truth; `width` the median interval over that of a histogram of both classes on
the best number of equally filled bins, at the whole price. Nobody can know those bins.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import logit
from sklearn.metrics import roc_auc_score

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

from coverage_of_intervals.worlds import DELTA, World, of_classes
from terminal import print_head, print_row, read_options

from dpladder.privacy.accounting.gdp import mu_from_epsilon

SHARES, RECORDS, EPSILONS = (0.01, 0.05, 0.12, 0.5), (500, 2000, 10_000), (0.3, 1.0, 4.0)
DISTANCE = 1.5  # of both classes' scores, in deviations
BINS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 64)


def population(share: float) -> tuple[Any, Any]:
    """Margins and classes of 200,000 records."""
    random = np.random.default_rng(1)
    labels = (random.random(200_000) < share).astype(int)
    x = random.normal(size=len(labels)) + DISTANCE * labels
    return 1.5 * (DISTANCE * x - DISTANCE**2 / 2 + logit(share)), labels


def best_width(margins: Any, labels: Any, records: int, sd: float) -> float:
    """Of a 95 % interval of the area that the best histogram of both classes gives."""
    random, truth = np.random.default_rng(2), roc_auc_score(labels, margins)
    found = []
    for bins in BINS:
        edges = np.quantile(margins, np.linspace(0, 1, bins + 1)[1:-1])
        cells = np.searchsorted(edges, margins)
        exact = np.stack([np.bincount(cells[labels == one], minlength=bins) for one in (0, 1)])
        law = (exact / len(labels)).ravel()
        drawn = random.multinomial(records, law, 4000).reshape(-1, 2, bins)
        noised = drawn + random.normal(0.0, sd, drawn.shape)
        below = np.cumsum(noised[:, 0], axis=1) - noised[:, 0] / 2
        sizes = np.maximum(noised.sum(axis=2), 1.0)
        areas = (below * noised[:, 1]).sum(axis=1) / sizes.prod(axis=1)
        found.append(math.sqrt(np.mean((np.clip(areas, 0, 1) - truth) ** 2)))
    return min(1.0, 2 * 1.96 * min(found))


def main() -> None:
    draws = read_options(__doc__, draws=40).draws
    print_head("share", "records", "ε", "told", "held", "width")
    for share in SHARES:
        margins, labels = population(share)
        model, everybody = of_classes(np.stack([0 * margins, margins], axis=1), labels)
        truth = roc_auc_score(labels, margins)
        for records in RECORDS:
            for epsilon in EPSILONS:
                world = World("", ("auc",), model, everybody, records, epsilon, lambda _: {}, {})
                found = [told.figures["auc"] for told in world.draws(draws)]
                shown = [one for one in found if one is not None]
                held = [one.interval[0] <= truth <= one.interval[1] for one in shown]
                widths = [np.subtract(*one.interval[::-1]) for one in shown]
                best = best_width(margins, labels, records, 1.0 / mu_from_epsilon(epsilon, DELTA))
                cells = [f"{len(shown) / draws:.0%}"]
                if shown:
                    width = float(np.median(widths))
                    cells += [f"{np.mean(held):.1%}", f"{width:.3f}, {width / best:.2f} times"]
                print_row(f"{share:.0%}", f"{records:,}", f"{epsilon:g}", *cells)


if __name__ == "__main__":
    main()
