"""Records to predict: the same readers as for training, without labels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dpladder.config.sources import SOURCES
from dpladder.data import bags
from dpladder.data.datasets import reader_of
from dpladder.data.layout import Layout
from dpladder.data.sources import SUFFIXES, TEXT_SUFFIX, Files, Source, bytes_of
from dpladder.errors import BadInput

UNLABELLED = Layout(labelled=False)
TABLES = {suffix: kind for kind in SOURCES.values() for suffix in kind.suffixes}


def open_inputs(
    path: Path, layout: Layout = UNLABELLED, texts: bool = False, bag: int = 0
) -> Source:
    """The records of a file, of a folder with files anywhere in it, or of a table. Whose they are
    says a table's column, or the first folder on their way.

    Args:
        path: of an image, a text or a bag, of a folder with them, or of a table.
        layout: which column of a table has which role.
        texts: whether a folder's records are texts, and not images.
        bag: how wide rows of a bag are, where records are bags: files of HDF5. 0 where they are
            not.

    Raises:
        BadInput: nothing is there, it is of no known kind, or a folder holds none of what is looked
            for.
    """
    if not path.exists():
        raise BadInput(f"{path} does not exist. Give a file, a folder of files, or a table.")
    if path.is_dir():
        return _folder(path, texts, bag)
    kind = path.suffix.lower()
    if bag and kind in bags.SUFFIXES:
        return _files([path], False, bag)
    if kind in SUFFIXES or kind == TEXT_SUFFIX:
        return _files([path], kind == TEXT_SUFFIX)
    if kind in TABLES:
        return reader_of(TABLES[kind])(path, layout)
    known = ", ".join([*sorted(TABLES), TEXT_SUFFIX, *sorted(SUFFIXES)])
    raise BadInput(f"{path} is of no kind that is known here. Give a folder, or one of {known}.")


def _folder(folder: Path, texts: bool, bag: int) -> Source:
    suffixes = bags.SUFFIXES if bag else [TEXT_SUFFIX] if texts else sorted(SUFFIXES)
    what = "bags" if bag else "texts" if texts else "images"
    files = [path for path in sorted(folder.rglob("*")) if path.suffix.lower() in suffixes]
    if not files:
        raise BadInput(f"{folder} holds no {what}. Known suffixes: {', '.join(suffixes)}.")
    ways = [path.relative_to(folder).parts for path in files]
    return replace(
        _files(files, texts, bag), users=[way[0] if len(way) > 1 else None for way in ways]
    )


def _files(paths: list[Path], texts: bool, bag: int = 0) -> Source:
    if bag:
        return Source(
            "features",
            lambda index: bags.bag_of(paths[index], bag),
            [None] * len(paths),
            files=paths,
            width=bag,
            bags=True,
        )
    kind: Files = "texts" if texts else "files"
    return Source(kind, lambda index: bytes_of(paths[index]), [None] * len(paths), files=paths)
