"""Small stand-ins in the formats that data sets are published in: drawings whose classes can be
told apart, and texts whose words do. What they make shows that a config runs, and nothing else."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Bytes = NDArray[np.uint8]

UNCHECKED = '''
import importlib.abc, importlib.util, os, sys

class Unchecked(importlib.abc.MetaPathFinder):
    """torchvision knows a published data set by its files' digests, which stand-ins have not."""

    def find_spec(self, name, path, target=None):
        if name != "torchvision.datasets.utils":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            module.check_integrity = lambda path, md5=None: os.path.isfile(path)

        spec.loader.exec_module = exec_module
        return spec

sys.meta_path.insert(0, Unchecked())
'''
"""A sitecustomize.py: it is read when a Python starts."""


def drawings(labels: NDArray[np.int64], size: int, seed: int = 0) -> Bytes:
    """(count, size, size, 3): each class has colours of its own, under noise."""
    random = np.random.default_rng(seed)
    colours = np.random.default_rng(7).integers(30, 226, (int(labels.max()) + 1, 3))
    noise = random.normal(0.0, 25.0, (len(labels), size, size, 3))
    return np.clip(colours[labels][:, None, None] + noise, 0, 255).astype(np.uint8)


def labels_of(classes: int, count: int) -> NDArray[np.int64]:
    return np.arange(count) % classes


def cifar10(root: Path) -> None:
    folder = root / "cifar-10-batches-py"
    folder.mkdir(parents=True)
    for place, name in enumerate((*(f"data_batch_{i}" for i in range(1, 6)), "test_batch")):
        _batch(folder / name, "labels", 10, 60, place)
    (folder / "batches.meta").write_bytes(pickle.dumps({"label_names": [*map(str, range(10))]}))


def cifar100(root: Path) -> None:
    folder = root / "cifar-100-python"
    folder.mkdir(parents=True)
    _batch(folder / "train", "fine_labels", 100, 400, 0)
    _batch(folder / "test", "fine_labels", 100, 200, 1)
    (folder / "meta").write_bytes(pickle.dumps({"fine_label_names": [*map(str, range(100))]}))


def _batch(path: Path, key: str, classes: int, count: int, seed: int) -> None:
    labels = labels_of(classes, count)
    pixels = drawings(labels, 32, seed).transpose(0, 3, 1, 2).reshape(count, -1)
    path.write_bytes(pickle.dumps({"data": pixels, key: labels.tolist()}))


def stl10(root: Path) -> None:
    """Columns come before rows there, and classes count from 1."""
    folder = root / "stl10_binary"
    folder.mkdir(parents=True)
    labels = labels_of(10, 60)
    for part in ("train", "test"):
        drawn = drawings(labels, 96).transpose(0, 3, 2, 1)
        (folder / f"{part}_X.bin").write_bytes(drawn.tobytes())
        (folder / f"{part}_y.bin").write_bytes((labels + 1).astype(np.uint8).tobytes())
    (folder / "unlabeled_X.bin").write_bytes(b"")
    (folder / "class_names.txt").write_text("\n".join(map(str, range(10))))
    (folder / "fold_indices.txt").write_text("\n".join(["0 1 2"] * 10))


PUBLISHED: Mapping[str, Callable[[Path], None]] = {
    "CIFAR10": cifar10,
    "CIFAR100": cifar100,
    "STL10": stl10,
}


def imagenet(root: Path) -> None:
    _folders(root, [str(number) for number in range(3)], 60)


def hospitals(root: Path) -> None:
    """A folder for each class in a folder for each hospital."""
    for seed, hospital in enumerate(("first", "second", "third", "fourth", "fifth")):
        _folders(root / hospital, ["normal", "tumour"], 30, seed)


def _folders(root: Path, names: list[str], count: int, seed: int = 0) -> None:
    labels = np.repeat(np.arange(len(names)), count)
    for place, (label, image) in enumerate(zip(labels, drawings(labels, 48, seed), strict=True)):
        folder = root / names[label]
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(folder / f"{place}.png")


def reviews(root: Path) -> None:
    for place in range(240):
        kind = ("neg", "pos")[place % 2]
        (root / kind).mkdir(parents=True, exist_ok=True)
        (root / kind / f"{place}_7.txt").write_text(sentence(place % 2, place))


def glue(root: Path) -> None:
    root.mkdir(parents=True)
    tasks = {
        "sst2": ("0", "1"),
        "qnli": ("entailment", "not_entailment"),
        "qqp": ("0", "1"),
        "mnli": ("entailment", "neutral", "contradiction"),
    }
    for task, (name, classes) in enumerate(tasks.items()):
        rows = [
            {
                "id": f"{name}-{place}",
                "text": sentence(place % len(classes), 1000 * task + place),
                "label": classes[place % len(classes)],
                "split": "test" if place >= 160 else "train",
            }
            for place in range(200)
        ]
        (root / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))


WORDS = [f"{first}{second}" for first in "bdfgklmnprst" for second in ("a", "e", "i", "o", "u")]


def sentence(kind: int, seed: int) -> str:
    """Each kind has favourite words."""
    random = np.random.default_rng(seed)
    weights = np.ones(len(WORDS))
    weights[kind * 20 : kind * 20 + 20] = 8.0
    return " ".join(random.choice(WORDS, 9, p=weights / weights.sum()))


BY_HAND: Mapping[str, Callable[[Path], None]] = {
    "imagenet": imagenet,
    "hospitals": hospitals,
    "reviews": reviews,
    "glue": glue,
}
