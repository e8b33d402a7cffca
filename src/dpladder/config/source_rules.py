"""Rules for whatever key names a source: its form, its path and its groups."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path

from dpladder.config.dataset_sections import Group
from dpladder.config.images_with_table import apart_of
from dpladder.config.rules import Messages, Table
from dpladder.config.sources import FORMS, SourceKind, kind_of
from dpladder.wording import did_you_mean, value_as_text

_TO_COME: ContextVar[bool] = ContextVar("sources that are yet to be written", default=False)


@contextlib.contextmanager
def sources_to_come() -> Iterator[None]:
    """Inside, a source may be missing: a rule of an outer workflow writes it before a job reads it.

    Only a path that is not there is let pass. One that cannot be reached, or is of the wrong kind,
    is still refused.
    """
    token = _TO_COME.set(True)
    try:
        yield
    finally:
        _TO_COME.reset(token)


def wrong_with_source(source: str | None) -> Messages:
    """What is wrong with a source by its form and its paths, if anything.

    Args:
        source: as the config keeps it; None of a key that is left out, with which nothing is wrong.

    Yields:
        Clauses for a message, at most one for each path.
    """
    kind = None if source is None else kind_of(source)
    if source is not None and kind is None:
        yield f"{did_you_mean(source, FORMS)}allowed: {', '.join(FORMS)}"
    elif source is not None and (apart := apart_of(source)) is not None:
        for key, path, folder in ((apart.what, apart.folder, True), ("table", apart.table, False)):
            yield from (f"{key}: {why}" for why in wrong_with_path(path, folder))
    elif source is not None and kind is not None and kind.is_private_file:
        yield from wrong_with_path(source.partition(":")[2], kind.folder)


def wrong_with_path(path: str, folder: bool = False) -> Messages:
    """Why a path cannot be used, if so. Nothing inside it is read here.

    Args:
        path: as it was given, relative to the working directory.
        folder: whether a folder is wanted; else a file.
    """
    try:
        found_folder = stat.S_ISDIR(os.stat(path).st_mode)
    except FileNotFoundError:
        if _TO_COME.get():
            return
        start = "check the path" if os.path.isabs(path) else f"paths are relative to {Path.cwd()}"
        yield f"nothing is there; {start}"
        return
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        yield f"it cannot be reached ({reason}); check the path and its permissions"
        return
    if found_folder != folder:
        yield f"a {'folder' if folder else 'file'} is wanted there"
    elif not os.access(path, os.R_OK):
        yield "it cannot be read; check its permissions"


def overlapping_source(source: str, private: str) -> str:
    """A source that holds the private one's records, and what it is of that one.

    Args:
        source: which `overlap` says shares records with the other.
        private: the private source.
    """
    if source == private:
        return f"given {value_as_text(source)}, the private source itself"
    return (
        f"given {value_as_text(source)}, which holds records of {value_as_text(private)}, the "
        "private source: name one split there and another here"
    )


def group_rules(key: str, of: Callable[..., tuple[str | None, Group | None]]) -> Table:
    """Groups stand where their source has room for them.

    Args:
        key: the section of the groups; empty where only the rules themselves are wanted.
        of: tells the source and its groups, of all that a rule sees.

    Returns:
        Rules for the section, its column and its level.
    """

    def source_and_kind(*seen: object) -> tuple[str, Group | None, SourceKind | None]:
        source, group = of(*seen)
        return source or "", group, kind_of(source or "")

    def published(*seen: object) -> Messages:
        source, group, kind = source_and_kind(*seen)
        if group and kind and not kind.is_private_file:
            yield (
                f"{value_as_text(source)} is published without groups; they are for your own "
                "files: leave it out"
            )

    def column(*seen: object) -> Messages:
        source, group, kind = source_and_kind(*seen)
        if group and kind and kind.by_folders and group.level is None:
            yield f"{value_as_text(source)} is a folder, which has a level: 1 or 2"

    def level(*seen: object) -> Messages:
        source, group, kind = source_and_kind(*seen)
        if group and kind and kind.by_columns and group.column is None:
            yield (
                f"{value_as_text(source)} has no folders of groups: give the column that holds the "
                "group"
            )

    return {key: published, f"{key}.column": column, f"{key}.level": level}
