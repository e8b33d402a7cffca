"""Where records may come from, one entry each: what stands in the config, who reads it, and what it
can be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dpladder.config.images_with_table import FORMS as MAPPINGS
from dpladder.config.images_with_table import NAMES, apart_of

Takes = Literal["features", "images", "texts"]
GENRES = ("law", "history", "wisdom", "prophets", "gospels", "acts", "letters", "apocalypse")


@dataclass(frozen=True)
class SourceKind:
    """What one form of a source is, known before anything is read.

    Attributes:
        reader: a module of `data` and its function.
        after: what the config writes after the name and a colon; a count may be left out. A
            `<mapping>` is of images, or bags, and labels apart (config/images_with_table.py).
        classes: what the public knows of them: how many, or their names.
        folder: whether its path is a folder's; else a file's.
        by_folders: whether folders below it say what class and group a record is of.
        holds: what its records may be; of a table, its columns tell.
        columns: whether some of them may be named.
        called: the operator's own files in words, for public pages, which name no path.
        suffixes: of files that `dpladder predict` reads in the same way.
    """

    reader: str
    after: Literal["", "<path>", "<Name>", "<count>", "<mapping>"] = "<path>"
    classes: int | tuple[str, ...] | None = None
    folder: bool = False
    by_folders: bool = False
    holds: tuple[Takes, ...] = ("images",)
    columns: bool = False
    called: str = "files"
    suffixes: tuple[str, ...] = ()

    @property
    def form(self) -> str:
        """What follows the name, in words."""
        return "[:<count>]" if self.after == "<count>" else f":{self.after}" if self.after else ""

    def fits(self, colon: str, rest: str) -> bool:
        """Whether a config may write this after the name.

        Args:
            colon: the colon, or nothing where there is none.
            rest: all behind it. A path is not looked up.
        """
        if self.after == "<count>":
            return rest.isdecimal() or not colon
        if self.after == "<mapping>":
            return any(apart_of(f"{name}:{rest}") for name in NAMES)
        return bool(rest) if self.after else not colon

    @property
    def is_private_file(self) -> bool:
        """The operator's own files, about which nothing is published."""
        return self.after in ("<path>", "<mapping>")

    @property
    def reads_folder(self) -> bool:
        """Whether it reads files below a folder, so that links among them matter."""
        return self.folder or self.after == "<mapping>"

    @property
    def by_columns(self) -> bool:
        """Whether columns of a table, or arrays, say what a record's class, group, id and user are,
        and the config may name them."""
        return self.is_private_file and not self.by_folders


SOURCES: Mapping[str, SourceKind] = {
    "mnist5k": SourceKind("datasets.from_mnist5k", after="", classes=10),
    "digits": SourceKind("datasets.from_digits", after="", classes=10),
    "torchvision": SourceKind("datasets.from_torchvision", after="<Name>"),
    "kjv": SourceKind("verses.from_kjv", after="<count>", classes=GENRES, holds=("texts",)),
    "web": SourceKind("verses.from_web", after="<count>", classes=GENRES, holds=("texts",)),
    "folder": SourceKind(
        "folders.from_folder", folder=True, by_folders=True, called="a folder of images"
    ),
    "texts": SourceKind(
        "folders.from_texts",
        folder=True,
        by_folders=True,
        holds=("texts",),
        called="a folder of texts",
    ),
    "images": SourceKind(
        "folders.from_images_and_table", after="<mapping>", called="a folder of images, and a table"
    ),
    "bags": SourceKind(
        "folders.from_images_and_table",
        after="<mapping>",
        holds=("features",),
        called="a folder of bags of features, and a table",
    ),
    "csv": SourceKind(
        "tables.from_csv",
        holds=("images", "texts", "features"),
        columns=True,
        called="a table",
        suffixes=(".csv",),
    ),
    "jsonl": SourceKind(
        "tables.from_jsonl",
        holds=("texts",),
        columns=True,
        called="lines of text",
        suffixes=(".jsonl",),
    ),
    "hdf5": SourceKind(
        "arrays.from_hdf5",
        holds=("features", "images"),
        called="arrays",
        suffixes=(".h5", ".hdf5"),
    ),
    "npz": SourceKind(
        "arrays.from_npz", holds=("features", "images"), called="arrays", suffixes=(".npz",)
    ),
    "parquet": SourceKind(
        "tables.from_parquet",
        holds=("features", "texts"),
        columns=True,
        called="a table",
        suffixes=(".parquet",),
    ),
    "frame": SourceKind(
        "tables.from_frame", holds=("features",), columns=True, called="a DataFrame"
    ),
}
FORMS = tuple(MAPPINGS.get(name, f"{name}{kind.form}") for name, kind in SOURCES.items())

DIGITS = tuple("0123456789")
LABELS: Mapping[str, tuple[str, ...]] = {
    "mnist5k": DIGITS,
    "digits": DIGITS,
    "kjv": GENRES,
    "web": GENRES,
    "torchvision:CIFAR10": (
        *("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
    ),
    "torchvision:FashionMNIST": (
        *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
        *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
    ),
    "torchvision:MNIST": DIGITS,
    "torchvision:QMNIST": DIGITS,
    "torchvision:STL10": (
        *("airplane", "bird", "car", "cat", "deer", "dog", "horse", "monkey", "ship", "truck"),
    ),
    "torchvision:SVHN": DIGITS,
    "torchvision:USPS": DIGITS,
}
"""What the labels 0, 1, ... of published data are called, by their authors: two sources may count
the same classes in another order."""


def labels_of(source: str) -> tuple[str, ...] | None:
    """The names of a source's labels, where they are published and known here.

    Args:
        source: as the config keeps it; a split behind a slash has the labels of the whole.
    """
    name, _, rest = source.partition(":")
    return LABELS.get(name) or LABELS.get(f"{name}:{rest.partition('/')[0]}")


def kind_of(source: str) -> SourceKind | None:
    """What a config's source is of; None where it is written as none of the forms."""
    name, colon, rest = source.partition(":")
    kind = SOURCES.get(name)
    return kind if kind is not None and kind.fits(colon, rest) else None


def count_of_classes(source: str, declared: int | tuple[str, ...] | None) -> int | None:
    """How many classes there are, where that is known before the source is read.

    Args:
        source: as the config keeps it.
        declared: by `dataset.classes`, which wins over what is published.
    """
    kind = kind_of(source)
    known = declared or (kind.classes if kind else None)
    return len(known) if isinstance(known, tuple) else known


def paths_of(source: str) -> tuple[Path, ...]:
    """Where one's own files lie; of images and labels apart the folder comes first.

    Args:
        source: one of the operator's own files. Their paths are private, and no public page names
            them.
    """
    apart = apart_of(source)
    rest = (source.partition(":")[2],) if apart is None else (apart.folder, apart.table)
    return tuple(Path(path).expanduser() for path in rest)


def overlap(one: str, other: str) -> bool:
    """Whether two sources hold the same records by their names. Either they are one, or one is all
    splits of a published data set and the other is one of these.

    Two paths to one file are not seen here: names alone are compared, and nothing is opened.

    Args:
        one: a source as the config keeps it, whose kind decides how names are read.
        other: likewise.
    """
    kind = kind_of(one)
    # only published data have splits behind a slash; in a path a slash is a folder
    if kind is None or kind.after != "<Name>":
        return one == other
    (name, _, split), (other_name, _, other_split) = one.partition("/"), other.partition("/")
    return name == other_name and (not split or not other_split or split == other_split)


def names_of(source: str, classes: int | tuple[str, ...] | None) -> tuple[str, ...] | None:
    """The names of a data set's classes: those that the config lists, or that are published of as
    many.

    Args:
        source: as the config keeps it.
        classes: `dataset.classes`: names, a number, or None.

    Returns:
        Names in the order of the labels; None where classes are known by number alone.
    """
    if isinstance(classes, tuple):
        return classes
    known = labels_of(source)
    return known if known is not None and classes in (None, len(known)) else None
