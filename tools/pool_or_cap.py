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
from arena import kept
from numpy.typing import NDArray
from terminal import print_head, print_row, read_options, totals

import dpladder
from dpladder.use.model import Model

ROOT = Path(__file__).parents[1]
TRAINED = 4000
UNITS = {"pool: mean": {"by": "user", "pool": "mean"}, "cap": {"by": "user"}}


def main() -> None:
    given = read_options(__doc__, images=[2, 4, 8], epsilons=[0.5, 1.0, 4.0], repeats=3, cache=Path)
    features, labels = kept("mnist5k", given.cache)
    order = np.random.default_rng(0).permutation(len(labels))
    train, apart = order[:TRAINED], order[TRAINED:]
    print_head("images", "unit", "told by", *totals(given.epsilons))
    for images in given.images:
        private = people(train, labels, images)
        new = people(apart, labels, images)
        for name, unit in UNITS.items():
            cap = {} if "pool" in unit else {"cap": images}
            cells = [
                np.mean(
                    [
                        right(
                            trained(features, labels, private, unit | cap, epsilon),
                            features[new],
                            labels[new[:, 0]],
                        )
                        for _ in range(given.repeats)
                    ],
                    axis=0,
                )
                for epsilon in given.epsilons
            ]
            for row, by in enumerate(("one image", "all images")):
                print_row(images, name, by, *(float(cell[row]) for cell in cells))


def people(indices: NDArray[Any], labels: NDArray[Any], images: int) -> NDArray[Any]:
    """A row for each person: so many of these images, all of one digit."""
    found = []
    for digit in range(10):
        own = indices[labels[indices] == digit]
        found.append(own[: len(own) // images * images].reshape(-1, images))
    return np.concatenate(found)


def right(model: Model, seen: NDArray[Any], digits: NDArray[Any]) -> tuple[float, float]:
    """The share of people who are named rightly, by one image and by all of them. `seen`: people x
    images x features."""
    count, images, width = seen.shape
    rows, names = seen.reshape(-1, width), [str(digit) for digit in digits]
    each = model.predict(rows)
    first = np.mean([said == name for said, name in zip(each.labels[::images], names, strict=True)])
    if model.pooled:
        every = model.predict(rows, users=[str(one) for one in np.repeat(range(count), images)])
        said = every.labels
    else:
        odds = each.probabilities.reshape(count, images, -1).mean(axis=1)
        said = [model.classes[best] for best in odds.argmax(axis=1)]
    return float(first), float(np.mean([a == b for a, b in zip(said, names, strict=True)]))


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
        home = os.environ | {"DPLADDER_HOME": str(folder / "home")}
        ran = subprocess.run(
            [*command, "--configfile", "config.yaml"],
            cwd=folder,
            env=home,
            capture_output=True,
            text=True,
            check=False,
        )
        if ran.returncode:
            sys.exit(ran.stderr)
        [weights] = (folder / "results").rglob("final/*/weights.safetensors")
        return dpladder.load(weights)


if __name__ == "__main__":
    main()
