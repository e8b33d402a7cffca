"""What a source is: records by index, each as its owner stored it, with what stands beside it."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from dpladder.data.layout import OF_CLASS, Layout
from dpladder.errors import BadInput

Column = Sequence[Any]
Files = Literal["files", "texts"]
PATH, TEXT = "path", "text"
SUFFIXES = frozenset(
    (
        ".bmp",
        ".dcm",
        ".gif",
        ".jp2",
        ".jpeg",
        ".jpg",
        ".png",
        ".ppm",
        ".pgm",
        ".tif",
        ".tiff",
        ".webp",
    )
)
TEXT_SUFFIX = ".txt"
Errors = tuple[type[Exception], ...]
# What libraries say of files that are damaged, or made to be odd.
BROKEN: Errors = (
    OSError,
    ValueError,
    KeyError,
    RuntimeError,
    TypeError,
    OverflowError,
    MemoryError,
)


@dataclass(frozen=True)
class Source:
    """Records by index. Labels, ids, users, parts and groups are as given, not yet checked.

    `read` gives an image file's bytes, a text's, an array of pixels, or one row of features, as
    `kind` says.
    """

    kind: Literal["files", "texts", "pixels", "features"]
    read: Callable[[int], Any]
    labels: Column
    ids: Column | None = None
    users: Column | None = None
    parts: Column | None = None
    groups: Column | None = None
    width: int = 0  # of a row of features or of flattened pixels; 0 for files, whose sizes differ
    files: Column | None = None  # for the private diagnostics: where each record's file lies
    name: str = ""  # as config calls it
    shut: Sequence[Path] = ()  # links that were not followed
    unnamed: Sequence[Path] = ()  # images that no row of a table is about
    skipped: Mapping[str, int] = field(default_factory=dict)  # files of other suffixes, by suffix
    unread: Sequence[int] = ()  # rows of a table that do not parse, and count as nothing
    bags: bool = False  # whether a row of features is the mean of a file's rows
    # all that stands with a record in its table or folder, whatever a config reads of it
    line: Callable[[int], bytes] | None = None
    line_is_all: bool = False  # whether that holds the record itself
    # whether `ids` holds those of some rows alone, and a row without one is known by what it says
    some_have_ids: bool = False
    names: Sequence[str] = ()  # of a table's columns


def text_bytes(value: Any) -> bytes:
    """A text as its owner stored it, in UTF-8. Bytes that were none, or half a surrogate pair, come
    out as none."""
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else b""


def check_held(path: Path, names: Collection[str], layout: Layout, plural: str = "") -> None:
    """Refuse a table or arrays without a column that the config needs or names. Records that are
    to be predicted, and not learned from, need nothing but themselves."""
    if not layout.labelled:
        return
    wanted = {} if layout.has_class_columns else {"label": f"label{plural}"}
    wanted |= dict(layout.named) | ({} if layout.group is None else {"group": layout.group})
    for role, name in wanted.items():
        if name not in names:
            key = "group.column" if role == "group" else role.partition(" ")[0]
            raise BadInput(
                f"{path} has no {name}. Name the one that is the {role} in dataset.{key}; "
                f"{SEE_CHECK}.",
                names_found_text(names),
            )


# A table without a header has a record's values where names should be.
SEE_CHECK = "`dpladder check` shows what it holds, by the names in its first line"


def names_found_text(names: Iterable[str]) -> str:
    """The names in a table or a file of arrays, for the operator's eyes alone."""
    return f"It holds {', '.join(names) or 'nothing'}."


def record_columns(columns: Mapping[str, Column], path: Path, rows: int) -> dict[str, Any]:
    """What stands beside records, by its role."""
    if any(len(column) != rows for column in columns.values()):
        raise BadInput(
            f"{path}: its columns differ in length. Give every record one value in each."
        )
    return {
        "labels": _labels(columns) or columns.get("label", [None] * rows),
        "ids": columns.get("id"),
        "users": columns.get("user"),
        "parts": columns.get("split"),
        "groups": columns.get("group"),
    }


def _labels(columns: Mapping[str, Column]) -> Column:
    """Of each record its value in each column that holds one class; nothing without such
    columns."""
    return [
        *zip(
            *(column for role, column in columns.items() if role.startswith(OF_CLASS)), strict=True
        )
    ]


def labels_of_record(label: object, classes: int) -> list[object]:
    """The labels of a record that may have several: those of a list, or between bars, or of a truth
    value for each class. Rows of an array are of one length, so they are filled up with numbers
    below 0, or with nothing."""
    value = label.tolist() if hasattr(label, "tolist") else label
    each = (
        value
        if isinstance(value, list | tuple)
        else text(value).split("|")
        if value is not None
        else []
    )
    if all(isinstance(one, bool) for one in each) or _truths(each, classes):
        return [place for place, holds in enumerate(each) if holds]
    return [one for one in each if not _is_blank(one)]


def _truths(each: Sequence[object], classes: int) -> bool:
    """Whether these are 0 or 1 for each class. Of two classes they might be their numbers; of more,
    one would stand there twice."""
    return len(each) == classes > 2 and all(
        isinstance(one, int | float) and one in (0, 1) for one in each
    )


def _is_blank(label: object) -> bool:
    return label is None or text(label) == "" or (isinstance(label, int | float) and not label >= 0)


def text(value: object) -> str:
    """A name as its owner sees it: bytes as text, and accents however they were typed."""
    try:
        name = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    except RecursionError:  # a list in a list in a list, and so on
        name = "[...]"
    return unicodedata.normalize("NFC", name).strip()


def bytes_of(file: Path) -> bytes:
    """A file's bytes. There are none if it is no regular file (a pipe would be waited for without
    end) or cannot be read: one bad record rather than the end of the run."""
    try:
        return file.read_bytes() if file.is_file() else b""
    except (OSError, ValueError):  # no path at all, where NUL is in it
        return b""


def missing_source_error(path: Path, wanted: str) -> BadInput:
    return BadInput(
        f"dataset.source: {path} does not exist. It must be {wanted}; is the right disk mounted?"
    )
