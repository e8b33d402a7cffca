"""Several images of a person: one record of their mean, or several records of a share each?

python tools/pool_or_cap.py [--images 2 4 8] [--epsilons 0.5 1 4] [--repeats 3] [--cache FOLDER]

MNIST's digits through the bundled network; a person has so many images of one digit. 4,000 images
train and 1,000 are kept apart. Each cell is a whole run of the workflow, search included, with keys
of its own, and the mean over repeats of how many of the people kept apart its model names rightly:
by one of their images, and by all of them. For the capped model all means the mean of its
probabilities.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from arena import features_of
from numpy.typing import NDArray
from terminal import print_head, print_row, read_options, totals

import dpladder
from dpladder.use.model import Model

ROOT = Path(__file__).parents[1]
TRAINED = 4000
UNITS: dict[str, dict[str, Any]] = {
    "pool: mean": {"by": "user", "pool": "mean"},
    "cap": {"by": "user"},
}


def main() -> None:
    options = read_options(
        __doc__, images=[2, 4, 8], epsilons=[0.5, 1.0, 4.0], repeats=3, cache=Path
    )
    features, labels = features_of("mnist5k", options.cache)
    order = np.random.default_rng(0).permutation(len(labels))
    print_head("images", "unit", "told by", *totals(options.epsilons))
    for images in options.images:
        private = people(order[:TRAINED], labels, images)
        new = people(order[TRAINED:], labels, images)
        for name, keys in UNITS.items():
            unit = keys if "pool" in keys else keys | {"cap": images}
            cells = []
            for epsilon in options.epsilons:
                models = [
                    trained(features, labels, private, unit, epsilon)
                    for _ in range(options.repeats)
                ]
                right = [shares_right(one, features[new], labels[new[:, 0]]) for one in models]
                cells.append(np.mean(right, axis=0))
            for by, row in zip(("one image", "all images"), np.transpose(cells), strict=True):
                print_row(images, name, by, *map(float, row))


def people(indices: NDArray[Any], labels: NDArray[Any], images: int) -> NDArray[Any]:
    """A row for each person: so many of these images, all of one digit."""
    by_digit = [indices[labels[indices] == digit] for digit in range(10)]
    rows = [one[: len(one) // images * images].reshape(-1, images) for one in by_digit]
    return np.concatenate(rows)


def shares_right(model: Model, seen: NDArray[Any], digits: NDArray[Any]) -> tuple[float, float]:
    """The share of people who are named rightly, by one image and by all of them. `seen`: people x
    images x features."""
    count, images, width = seen.shape
    rows, names = seen.reshape(-1, width), digits.astype(str)
    each = model.predict(rows)
    if model.pooled:
        every = model.predict(rows, users=[str(one) for one in np.repeat(range(count), images)])
        by_all = np.array(every.labels)
    else:
        odds = each.probabilities.reshape(count, images, -1).mean(axis=1)
        by_all = np.array(model.classes)[odds.argmax(axis=1)]
    by_one = np.array(each.labels[::images])
    return float(np.mean(by_one == names)), float(np.mean(by_all == names))


def trained(
    features: NDArray[Any],
    labels: NDArray[Any],
    private: NDArray[Any],
    unit: dict[str, Any],
    epsilon: float,
) -> Model:
    """The final model of a whole run."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        users = np.repeat(np.arange(len(private)), private.shape[1])
        np.savez(
            folder / "data.npz",
            features=features[private.ravel()],
            labels=labels[private.ravel()],
            users=users,
        )
        config = {
            "dataset": {
                "lineage": "people",
                "source": "npz:data.npz",
                "nominal_size": round(0.9 * len(private)),
                "classes": 10,
                "unit": unit,
                "split": {"test": 0.1},
            },
            "features": {"model": "none", "normalize": True},
            "privacy": {"epsilon": epsilon, "delta": 1e-5, "lifetime": {"epsilon": 8.0}},
        }
        (folder / "config.yaml").write_text(yaml.safe_dump(config))
        command = [sys.executable, "-m", "snakemake", "-s", str(ROOT / "Snakefile"), "--cores", "2"]
        command += ["--workflow-profile", str(ROOT / "profiles/default")]
        command += ["--configfile", "config.yaml"]
        env = os.environ | {"DPLADDER_HOME": str(folder / "home")}
        run = subprocess.run(
            command, cwd=folder, env=env, capture_output=True, text=True, check=False
        )
        if run.returncode:
            sys.exit(run.stderr)
        [weights] = (folder / "results").rglob("final/*/weights.safetensors")
        return dpladder.load(weights)


if __name__ == "__main__":
    main()
