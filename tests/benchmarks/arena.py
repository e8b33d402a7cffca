"""Public data for comparisons, cut once into what is trained on and what is tested on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpladder.config.model import Features, Resources
from dpladder.learn.interface import Constants, Data
from dpladder.privacy.ledger import Terms
from dpladder.rules.contest import Arena

DATA = ("mnist5k", "mnist5k-112", "digits", "mixture")
DELTA = 1e-5


def load(name: str, cache: Path | None, threads: int, seed: int) -> Arena:
    """`mixture`: 5 Gaussian classes in 64 dimensions, off the origin."""
    features, labels = mixture() if name == "mixture" else kept(name, cache)
    order = np.random.default_rng(0).permutation(len(labels))
    count = 3000 if name == "mixture" else len(labels) * 4 // 5
    train, test = (
        Data(features[part], labels[part].astype(np.int64)) for part in (order[:count], order[count:])
    )
    constants = Constants(n0=count, classes=int(labels.max()) + 1, dimension=features.shape[1], delta=DELTA)
    terms = Terms(name, "add_remove", "record", 1, DELTA, "given", mode="research")
    return Arena(train, test, constants, terms, Resources(threads=threads), seed)


def mixture() -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    random = np.random.default_rng(1)
    means = random.normal(size=(5, 64))
    means *= 2.1 / np.linalg.norm(means, axis=1, keepdims=True)
    labels = random.integers(5, size=5000)
    return (means[labels] + random.normal(size=(5000, 64)) + 0.5).astype(np.float32), labels


def kept(name: str, cache: Path | None) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    file = None if cache is None else cache / f"{name}.npz"
    if file is not None and file.exists():
        with np.load(file) as arrays:
            return arrays["features"], arrays["labels"]
    features, labels = extract(name)
    if file is not None:
        np.savez(file, features=features, labels=labels)
    return features, labels


def extract(name: str) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """mnist5k through the bundled network at 96 pixels, all of it or as far as its 112 channels; digits as raw pixels."""
    from dpladder.data.backbones import encoder
    from dpladder.data.datasets import open_source

    source = open_source(name.removesuffix("-112"))
    layers = ("blocks.4",) if name.endswith("-112") else ()
    features = Features(image_size=96, batch_size=50, layers=layers)
    if name == "digits":
        features = Features(model="none")
    network = encoder(features, source, threads=2)
    records = [network.load(source.read(index)) for index in range(len(source.labels))]
    if name == "digits":
        rows = np.stack(records)
    else:
        batches = (np.stack(records[start : start + 50]) for start in range(0, len(records), 50))
        rows = np.concatenate(list(network.encode(batches)))
    return rows.astype(np.float32), np.asarray(source.labels, dtype=np.int64)
