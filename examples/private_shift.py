"""A released model on other people's private data: its accuracy there, noised and booked on a
lineage of their own.

python examples/private_shift.py results/main/final/1/weights.safetensors other.npz --lineage
other-hospital
"""

import argparse
import math
from pathlib import Path

import numpy as np
from dp_accounting import GaussianDpEvent

import dpladder

SIGMA = 10.0  # noise on each count; a record is in one of two


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("data", type=Path, help="an .npz with features (or images) and labels")
    parser.add_argument(
        "--lineage", required=True, help="these people's data, by its name for life"
    )
    given = parser.parse_args()
    model = dpladder.load(given.model)  # a release: to use it costs the people behind it nothing
    # The limit is these people's own, and so is the statement.
    ledger = dpladder.Ledger(
        given.lineage, epsilon=1.0, delta=1e-5, results=f"results-{given.lineage}"
    )
    with ledger.spend("accuracy-of-one-model", GaussianDpEvent(SIGMA)) as charge:
        labels = np.load(given.data)["labels"].astype(str)
        hits = np.array(model.predict(given.data).labels, str) == labels
        counts = charge.noise(np.array([hits.sum(), (~hits).sum()], float), sensitivity=1.0)
        charge.finish(counts)
    ledger.statement()
    right, total = counts[0], max(counts.sum(), 1.0)
    share = min(max(right / total, 0.0), 1.0)
    sd = SIGMA * math.hypot(1 - share, share) / total
    print(
        f"accuracy {share:.3f} +- {sd:.3f} at epsilon = {ledger.spent:.2f} of lineage "
        f"{given.lineage}"
    )


if __name__ == "__main__":
    main()
