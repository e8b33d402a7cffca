"""What a source is: records by index, each as its owner stored it, with what stands beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dpladder.config.level_texts import bytes_as_text, level_as_text
from dpladder.data.layout import OF_CLASS, Layout
from dpladder.errors import BadInput
from dpladder.wording import first_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dpladder.data.blocks import Block, TableBlocks

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
    Private.

    Columns have one value for each record.

    Attributes:
        kind: what `read` gives: an image file's bytes, a text's, an array of pixels, or one row of
            features.
        read: from an index to a record.
        labels: of each record.
        ids, users, parts, groups: of each record; None where the source has none.
        width: of a row of features or of flattened pixels; 0 for files, whose sizes differ.
        files: where each record's file lies, for the private diagnostics.
        name: as the config calls it.
        shut: links that were not followed.
        unnamed: images that no row of a table is about.
        shared: what rows of a table call images of several folders.
        skipped: files of other suffixes, by suffix.
        unread: where rows of a table stand that do not parse, and count as nothing, in words.
        spread: where rows of a table stand that go over several lines, in words.
        bags: whether a row of features is the mean of a file's rows.
        line: from an index to all that stands with a record in its table or folder. It does not
            matter what of that a config reads: a record without an id is known by all of it.
        line_is_all: whether `line` holds the record itself.
        some_have_ids: whether `ids` holds those of some rows alone, and a row without one is known
            by what it says.
        names: of a table's columns.
        blocks: of a table of features, its records, many at a time; what stands above is read from
            them.
    """

    kind: Literal["files", "texts", "pixels", "features"]
    read: Callable[[int], Any]
    labels: Column
    ids: Column | None = None
    users: Column | None = None
    parts: Column | None = None
    groups: Column | None = None
    width: int = 0
    files: Column | None = None
    name: str = ""
    shut: Sequence[Path] = ()
    unnamed: Sequence[Path] = ()
    shared: Sequence[str] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)
    unread: Sequence[str] = ()
    spread: Sequence[str] = ()
    bags: bool = False
    line: Callable[[int], bytes] | None = None
    line_is_all: bool = False
    some_have_ids: bool = False
    names: Sequence[str] = ()
    blocks: TableBlocks | None = None

    @property
    def likely_count(self) -> int:
        """How many records there may be, for a bar."""
        return len(self.labels) if self.blocks is None else self.blocks.likely_count

    @property
    def largest_count(self) -> int:
        """How many records there are at most, whatever one of them says."""
        return len(self.labels) if self.blocks is None else self.blocks.largest_count


@dataclass(frozen=True)
class Stretch:
    """Consecutive records of a source, and what stands beside them.

    Attributes:
        source: the records.
        start, end: the first, and the one behind the last.
        block: of a table, where they were read from; None elsewhere.
    """

    source: Source
    start: int
    end: int
    block: Block | None = None

    def __len__(self) -> int:
        return self.end - self.start

    def values(self, role: str) -> tuple[NDArray[np.int64], Sequence[Any]] | None:
        """Values of a role, such as `label`, and of each record which one it has; None where the
        source holds none."""
        import numpy as np

        if self.block is not None:
            return self.block.values(role)
        column = getattr(self.source, FIELD_OF_ROLE[role])
        if column is None:
            return None
        return np.arange(len(self)), column[self.start : self.end]

    def lines(self) -> Iterator[Any] | None:
        """All that stands with each record; None where a record is known by its content."""
        if self.source.line is None:
            return None
        if self.block is None:
            return map(self.source.line, range(self.start, self.end))
        offsets, data = self.block.lines()
        ends = offsets.tolist()
        return (data[start:end] for start, end in pairwise(ends))


FIELD_OF_ROLE = {
    "label": "labels",
    "id": "ids",
    "user": "users",
    "split": "parts",
    "group": "groups",
}


def text_bytes(value: Any) -> bytes:
    """A text as its owner stored it, in UTF-8. Bytes that were none, or half a surrogate pair, come
    out as none."""
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else b""


def check_held(path: Path, names: Collection[str], layout: Layout, plural: str = "") -> None:
    """Refuse a table or arrays without a column that the config needs or names. Records that are to
    be predicted, and not learned from, need nothing but themselves.

    Args:
        path: of the file, for the message.
        names: of what it holds.
        layout: what the config says of columns.
        plural: what arrays have after the name of a role.

    Raises:
        BadInput: a column is missing. What the file holds instead is for the operator's eyes alone.
    """
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


def refuse_names_twice(path: Path, names: Iterable[str]) -> None:
    """Refuse a table that has a name twice: which of the columns is read, nobody said. Those
    without a name are read as nothing.

    Raises:
        BadInput: it has. Without a header names are a record's values, so they are for the
            operator's eyes alone.
    """
    counts = Counter(name for name in names if name)
    if twice := [name for name, count in counts.items() if count > 1]:
        raise BadInput(
            f"{path} has columns of one name, and which of them is meant, nobody can tell. Rename "
            "or drop one; `dpladder check` shows their name.",
            f"More than one is called {first_of(twice)}.",
        )


# A table without a header has a record's values where names should be.
SEE_CHECK = "`dpladder check` shows what it holds, by the names in its first line"


def names_found_text(names: Iterable[str]) -> str:
    """The names in a table or a file of arrays, for the operator's eyes alone."""
    return f"It holds {first_of([*filter(None, names)]) or 'nothing'}."


def record_columns(columns: Mapping[str, Column], path: Path, rows: int) -> dict[str, Any]:
    """What stands beside records, by the name of the field of `Source` that holds it.

    Args:
        columns: by their role.
        path: of the file, for the message.
        rows: how many records there are.

    Raises:
        BadInput: a column has another length. That stops the run, private data or not: the file
            contradicts itself (contract: refuse-first).
    """
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
    """Each record's value in each column that holds one class; nothing without such columns."""
    return [
        *zip(
            *(column for role, column in columns.items() if role.startswith(OF_CLASS)), strict=True
        )
    ]


def labels_of_record(label: object, classes: int) -> list[object]:
    """The labels of a record that may have several: those of a list, or between bars, or of a truth
    value for each class.

    Args:
        label: as given. Rows of an array are of one length, so they are filled up with numbers
            below 0, or with nothing.
        classes: how many there are.
    """
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
    """A name as its owner sees it: bytes as text, accents however they were typed, and 3.0 as 3."""
    try:
        return level_as_text(bytes_as_text(value))
    except RecursionError:  # a list in a list in a list, and so on
        return "[...]"


def bytes_of(file: Path) -> bytes:
    """A file's bytes. There are none if it cannot be read or is no regular file (a pipe would be
    waited for without end). That is one bad record rather than the end of the run."""
    try:
        return file.read_bytes() if file.is_file() else b""
    except (OSError, ValueError):  # no path at all, where NUL is in it
        return b""


def missing_source_error(path: Path, wanted: str) -> BadInput:
    """The error of a source that is not there, for a reader to raise before it reads a record."""
    trouble = "is no file of that kind" if path.exists() else "does not exist"
    return BadInput(
        f"dataset.source: {path} {trouble}. It must be {wanted}; is the right disk mounted?"
    )
