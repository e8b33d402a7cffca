"""Folders as sources: files below one folder per class.

Links are followed only where the config allows them, and only as far as they stay inside. A link
that leads anywhere else would make records of files that the config does not name.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from dpladder.config.dataset_sections import Links
from dpladder.config.images_with_table import HOLE, Apart
from dpladder.config.level_texts import level_as_text
from dpladder.data import bags
from dpladder.data.layout import PLAIN, Layout
from dpladder.data.sources import (
    SEE_CHECK,
    SUFFIXES,
    TEXT_SUFFIX,
    Files,
    Source,
    bytes_of,
    check_held,
    missing_source_error,
    names_found_text,
    record_columns,
    text,
)
from dpladder.data.tables import TableColumns, columns_in
from dpladder.errors import BadInput


def from_folder(path: Path, layout: Layout = PLAIN) -> Source:
    """One folder of images per class. A file's class is the first folder on its way, or, where its
    group is, the second. Files of other suffixes are no records.

    Raises:
        BadInput: there is no such folder, one below it cannot be opened, or it has links that the
            config does not allow.
        Tangled: a link leads out of the source, in a loop, or where another one leads too.
    """
    return _folder("files", path, "images", SUFFIXES, layout)


def from_texts(path: Path, layout: Layout = PLAIN) -> Source:
    """One folder of text files per class, as `from_folder` reads images. It is a source of another
    name, because no file in a folder may decide what the others are."""
    return _folder("texts", path, f"{TEXT_SUFFIX} files", (TEXT_SUFFIX,), layout)


def _folder(
    kind: Files, path: Path, wanted: str, suffixes: Collection[str], layout: Layout
) -> Source:
    if not path.is_dir():
        raise missing_source_error(path, f"a folder with one subfolder of {wanted} per class")
    tree, level = Tree(path, suffixes, layout.links), layout.level
    files = tree.visible_files
    shut = frozenset(tree.shut)
    ways = [file.relative_to(path).parts for file in files]
    labels = [
        way[1] if level == 1 and len(way) > 2 else way[0] if level != 1 else "" for way in ways
    ]
    groups = (
        None if level is None else [way[level - 1] if len(way) > level else None for way in ways]
    )

    def read(index: int) -> bytes:
        return b"" if files[index] in shut else bytes_of(files[index])

    def line(index: int) -> bytes:
        return "/".join(ways[index][:-1]).encode("utf-8", "surrogateescape")

    return Source(
        kind,
        read,
        labels,
        files=files,
        groups=groups,
        shut=tree.shut,
        line=line,
        skipped=tree.skipped,
    )


def from_images_and_table(says: Apart, layout: Layout = PLAIN) -> Source:
    """Images, or bags of features, below a folder, and a table elsewhere that says what they show.

    A record is an image with a row that is about it, and an image's id is its path below the
    folder. So an image of which two rows say different things counts as nothing. A row without an
    image is a record that is missing; an image without a row is none.

    Args:
        says: the config's mapping: where both lie, and how a row names its images.
        layout: which column of the table has which role.

    Raises:
        BadInput: the folder, the table, or a column of it is missing.
        Tangled: a link may not be followed.
    """
    root, table = Path(says.folder).expanduser(), Path(says.table).expanduser()
    if not root.is_dir():
        raise missing_source_error(root, f"a folder of {says.what}")
    read_table = _table_of(table, says, layout)
    table_columns = read_table.columns
    tree = Tree(root, SUFFIXES if says.bags is None else bags.SUFFIXES, layout.links)
    files, shut = tree.visible_files, frozenset(tree.shut)
    ways = [file.relative_to(root).parts for file in files]
    images: dict[str, list[int]] = {}
    for place, way in enumerate(ways):
        for name in _names(way, says):
            images.setdefault(name, []).append(place)
    keys = _keys(table_columns, says)
    pairs: list[tuple[int, int | None]] = [
        (row, place) for row, key in enumerate(keys) for place in images.get(key, [None])
    ]
    about = [None if place is None else files[place] for _, place in pairs]
    columns = {
        role: [table_columns[name][row] for row, _ in pairs]
        for role, name in layout.columns_present(table_columns).items()
        if role != "id"
    }
    if layout.number and read_table.numbers is not None:
        columns["label"] = [read_table.numbers[row] for row, _ in pairs]
    columns["id"] = [
        keys[row] if place is None else text("/".join(ways[place])) for row, place in pairs
    ]
    if says.patient is not None:
        columns["user"] = [
            None if place is None else _folder_of(ways[place], says.patient) for _, place in pairs
        ]
    places = {place for _, place in pairs}
    width = says.width or 0

    # Names by which rows call images of several folders: one person's row is then about another's
    # image. Whether a name is meant so is the operator's word, for no unit by itself can tell.
    end = says.names if isinstance(says.names, int) else -1
    shared = [
        key
        for key in dict.fromkeys(keys)
        if len({tuple(ways[place][:end]) for place in images.get(key, ())}) > 1
    ]

    def read(index: int) -> Any:
        file = about[index]
        if file is None or file in shut:
            return b""
        return bytes_of(file) if says.bags is None else bags.bag_of(file, width)

    return Source(
        "files" if says.bags is None else "features",
        read,
        **record_columns(columns, table, len(pairs)),
        # a row is found by its line, of which the first is the header
        files=[
            file or f"{table}:{read_table.first[row] if read_table.first else row + 2}"
            for (row, _), file in zip(pairs, about, strict=True)
        ],
        shut=tree.shut,
        skipped=tree.skipped,
        unnamed=[file for place, file in enumerate(files) if place not in places],
        shared=shared,
        width=width,
        unread=read_table.unread,
        spread=read_table.spread,
        bags=says.bags is not None,
    )


def _table_of(table: Path, says: Apart, layout: Layout) -> TableColumns:
    """The columns of the table beside images, and where the rows of a CSV stand."""
    if not table.is_file():
        raise missing_source_error(
            table, f"a table with the columns {', '.join(says.columns)} and label"
        )
    read = columns_in(table, layout.name("label") if layout.number else None)
    missing = [name for name in says.columns if name not in read.columns]
    if missing:
        raise BadInput(
            f"{table} has no column {', '.join(missing)}. Name the one that says which images a "
            f"row is about in dataset.source.key; {SEE_CHECK}.",
            names_found_text(read.columns),
        )
    check_held(table, read.columns, layout)
    return read


def _keys(columns: Mapping[str, Sequence[Any]], says: Apart) -> list[str]:
    """What each row is about, by its name."""
    rows = zip(*(columns[name] for name in says.columns), strict=True)
    pattern = says.key if HOLE.search(says.key) else f"{{{says.key}}}"
    return [_key(pattern, dict(zip(says.columns, row, strict=True))) for row in rows]


def _key(pattern: str, row: Mapping[str, Any]) -> str:
    """What one row is about: the pattern with the row's cells in its holes, as a plain path."""

    def cell(hole: re.Match[str]) -> str:
        value = row[hole[1]]
        return "" if value is None else level_as_text(value)

    key = HOLE.sub(cell, pattern).replace("\\", "/")
    return text(posixpath.normpath(key)) if key else ""


def _names(way: Sequence[str], says: Apart) -> set[str]:
    """What a row may call an image: its path or name, with or without what says its format, or a
    folder on the way."""
    if isinstance(says.names, int):
        return {folder} if (folder := _folder_of(way, says.names)) else set()
    name = text("/".join(way) if says.names == "path" else way[-1])
    return {name, posixpath.splitext(name)[0]}


def _folder_of(way: Sequence[str], level: int) -> str | None:
    """The folder at this level of a way, of which 1 is the first; None where the way is shorter."""
    return text(way[level - 1]) if len(way) > level else None


def _is_hidden(folder: str) -> bool:
    """Whether a folder was left by a program beside the data: hidden, or by an archiver of
    macOS."""
    return folder.startswith(".") or folder == "__MACOSX"


class Tangled(BadInput):
    """A link that no reader may follow. `where` names it, for the operator's eyes alone."""

    def __init__(self, message: str, where: str) -> None:
        super().__init__(message)
        self.where = where


@dataclass
class Tree:
    """All files of some suffixes under a folder, walked once.

    Attributes:
        root: the folder.
        suffixes: of files that are records, in small letters.
        links: which links may be followed, by the config.
        files: in the order of the walk, hidden ones among them.
        shut: links that were not followed. A file among them counts as missing.
        skipped: how many files there are of other suffixes.
    """

    root: Path
    suffixes: Collection[str]
    links: Links
    files: list[Path] = field(default_factory=list)
    shut: list[Path] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    _entered: dict[Path, Path] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.links == "none" and any(
            child.is_symlink() and child.is_dir() for child in self.root.iterdir()
        ):
            raise BadInput(
                f"{self.root} has links to folders, and none is followed: what they show may lie "
                "anywhere. Set dataset.links: inside, where they lead to folders of the source "
                "itself, or put the folders themselves there; cp -rl makes one whose files take no "
                "second place on the disk."
            )
        self._walk(self.root, ())

    @property
    def visible_files(self) -> list[Path]:
        """The files without those in hidden folders, which programs leave beside data."""
        return [
            file
            for file in self.files
            if not any(map(_is_hidden, file.relative_to(self.root).parts[:-1]))
        ]

    def _walk(self, folder: Path, way: tuple[Path, ...]) -> None:
        """Collect files and follow links.

        Args:
            folder: below which to look.
            way: the folders, as they really lie, that hold the links by which this folder was
                reached.
        """
        for here, folders, names in os.walk(folder, onerror=_unreadable):
            for file in (Path(here, name) for name in sorted(names)):
                if file.suffix.lower() in self.suffixes:
                    self.files.append(file)
                    self.shut += (
                        [file] if file.is_symlink() and not self._is_inside_link(file) else []
                    )
                elif not (
                    _is_hidden(file.name) or any(map(_is_hidden, file.relative_to(self.root).parts))
                ):
                    self.skipped[file.suffix.lower() or "no suffix"] += 1
            for link in (Path(here, name) for name in sorted(folders)):
                if link.is_symlink():
                    self._follow(link, (*way, Path(here).resolve()))

    def _follow(self, link: Path, way: tuple[Path, ...]) -> None:
        """Walk on behind a link to a folder, or refuse it. Each folder is entered once: twice would
        make two records of one file."""
        if self.links == "none":
            self.shut.append(link)
            return
        target = link.resolve()
        if not self._is_inside_link(link):
            _refuse("that leads out of it", link, target)
        if any(folder.is_relative_to(target) for folder in way):
            _refuse("that leads in a loop, back to a folder on its own way", link, target)
        if (other := self._entered.setdefault(target, link)) != link:
            _refuse(
                "to a folder that another link leads to as well", link, target, f", as does {other}"
            )
        self._walk(link, way)

    def _is_inside_link(self, link: Path) -> bool:
        return self.links == "inside" and link.resolve().is_relative_to(self.root.resolve())


def _refuse(what: str, link: Path, target: Path, more: str = "") -> NoReturn:
    raise Tangled(
        f"dataset.source has a link {what}. Only links to other folders of the source are "
        "followed, each folder once: take the link out, or set dataset.links: none. `dpladder "
        "check` names it.",
        f"{link} leads to {target}{more}",
    )


def _unreadable(error: OSError) -> NoReturn:
    """Refuse a folder that cannot be opened. The message leaves out its name, which may tell of a
    person."""
    raise BadInput(
        "a folder of the source cannot be opened. Give yourself permission to read all of it."
    ) from None
