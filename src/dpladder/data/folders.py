"""The files in a folder, by way of links only where the config allows them and only as far as they
stay inside."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from dpladder.config.model import Links
from dpladder.errors import BadInput


class Tangled(BadInput):
    """A link that no reader may follow. `where` names it, for the operator's eyes alone."""

    def __init__(self, message: str, where: str) -> None:
        super().__init__(message)
        self.where = where


@dataclass
class Tree:
    """All files of these suffixes under a folder, and the links among them and on the way that were
    not followed."""

    root: Path
    suffixes: Collection[str]
    links: Links
    files: list[Path] = field(default_factory=list)
    shut: list[Path] = field(default_factory=list)
    _entered: dict[Path, Path] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.links == "none" and any(
            child.is_symlink() and child.is_dir() for child in self.root.iterdir()
        ):
            raise BadInput(
                f"{self.root} has links to folders, and none is followed: what they show may lie "
                "anywhere. Set dataset.links: inside, "
                "where they lead to folders of the source itself, or put the folders themselves "
                "there; cp -rl makes one whose "
                "files take no second place on the disk."
            )
        self._walk(self.root, ())

    def _walk(self, folder: Path, way: tuple[Path, ...]) -> None:
        """`way`: the folders, as they really lie, in which the links stand by which this one was
        reached."""
        for here, folders, names in os.walk(folder, onerror=_unreadable):
            for file in (Path(here, name) for name in sorted(names)):
                if file.suffix.lower() in self.suffixes:
                    self.files.append(file)
                    self.shut += (
                        [file] if file.is_symlink() and not self._leads_inside(file) else []
                    )
            for link in (Path(here, name) for name in sorted(folders)):
                if link.is_symlink():
                    self._follow(link, (*way, Path(here).resolve()))

    def _follow(self, link: Path, way: tuple[Path, ...]) -> None:
        if self.links == "none":
            self.shut.append(link)
            return
        target = link.resolve()
        if not self._leads_inside(link):
            _refuse("that leads out of it", link, target)
        if any(folder.is_relative_to(target) for folder in way):
            _refuse("that leads in a loop, back to a folder on its own way", link, target)
        if (other := self._entered.setdefault(target, link)) != link:
            _refuse(
                "to a folder that another link leads to as well", link, target, f", as does {other}"
            )
        self._walk(link, way)

    def _leads_inside(self, link: Path) -> bool:
        return self.links == "inside" and link.resolve().is_relative_to(self.root.resolve())


def _refuse(what: str, link: Path, target: Path, more: str = "") -> NoReturn:
    raise Tangled(
        f"dataset.source has a link {what}. Only links to other folders of the source are "
        "followed, each folder once: take the "
        "link out, or set dataset.links: none. `dpladder check` names it.",
        f"{link} leads to {target}{more}",
    )


def _unreadable(error: OSError) -> NoReturn:
    raise BadInput(
        "a folder of the source cannot be opened. Give yourself permission to read all of it."
    ) from None
