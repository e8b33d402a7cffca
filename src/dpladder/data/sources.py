"""Where records lie: a source reads one record at a time, in any order, exactly as its owner stored
it."""

from __future__ import annotations

import codecs
import csv
import json
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from dpladder.config.model import Chosen, Links
from dpladder.data.columns import matrix_of, name_of
from dpladder.data.folders import Tree
from dpladder.errors import BadInput

Column = Sequence[Any]
Files = Literal["files", "texts"]

COLUMNS = ("label", "id", "user", "split")
TEXT = "text"
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


def from_folder(path: Path, level: int | None = None, links: Links = "none") -> Source:
    """One folder of images per class; a file's class is the first folder on its way, or, where its
    group is, the second. Files of other suffixes are no records."""
    return _folder("files", path, "images", SUFFIXES, level, links)


def from_texts(path: Path, level: int | None = None, links: Links = "none") -> Source:
    """The same of text files. It has a name of its own, because no file in a folder may decide what
    the others are."""
    return _folder("texts", path, f"{TEXT_SUFFIX} files", (TEXT_SUFFIX,), level, links)


def _folder(
    kind: Files, path: Path, wanted: str, suffixes: Collection[str], level: int | None, links: Links
) -> Source:
    """`level`: of the folders on a file's way, the one that is its group."""
    if not path.is_dir():
        raise _missing(path, f"a folder with one subfolder of {wanted} per class")
    tree = Tree(path, suffixes, links)
    files = [file for file in tree.files if not any(map(_aside, file.relative_to(path).parts[:-1]))]
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

    return Source(kind, read, labels, files=files, groups=groups, shut=tree.shut)


def _aside(folder: str) -> bool:
    """Whether a folder was left by a program beside the data: hidden, or by an archiver of
    macOS."""
    return folder.startswith(".") or folder == "__MACOSX"


def from_csv(
    path: Path, labelled: bool = True, chosen: Sequence[Chosen] = (), group: str | None = None
) -> Source:
    """Rows of path,label or text,label, or of features and a label, with optional id, user and
    split, and the column `group` where one is declared, between commas, semicolons or tabs; paths
    are relative to the table's own folder."""
    if not path.is_file():
        raise _missing(
            path,
            "a table with the columns path (or text, or features) and label, and if you have them "
            "id,user,split",
        )
    header = header_of(path)
    if chosen or not {"path", TEXT} & set(header):
        _check_group(path, chosen, group)
        wanted = chosen or [name for name in header if name and name not in COLUMNS]
        return _number_table(path, labelled, wanted, group)
    if TEXT in header and "path" not in header:
        return _text_table(path, labelled, group)
    rows, names = _rows_of(path)
    _need(dict.fromkeys(names), "path", path)
    columns = {
        name: [_printable(row[name]) for row in rows] for name in _beside(group) if name in names
    }
    files = [path.parent / (row["path"] or "") for row in rows]
    found = _columns(columns, path, labelled, len(files), group)
    return Source("files", lambda index: bytes_of(files[index]), **found, files=files)


def _beside(group: str | None) -> tuple[str, ...]:
    """The columns that are looked for beside the records."""
    return COLUMNS if group is None else (*COLUMNS, group)


def _check_group(path: Path, chosen: Sequence[Chosen], group: str | None) -> None:
    """Whether a column of groups is a feature as well is said, and never guessed: predictions will
    be made of the same."""
    if group is not None and not chosen:
        raise BadInput(
            f"{path}: beside the column {group} of groups, dataset.columns must name the columns "
            "that are features."
        )


def _number_table(
    path: Path, labelled: bool, chosen: Sequence[Chosen], group: str | None
) -> Source:
    """Features, as the header names them: what a row holds decides nothing for the others. An
    unnamed column numbers rows."""
    names = header_of(path)
    if (absent := [name_of(one) for one in chosen if name_of(one) not in names]) or not chosen:
        raise BadInput(
            f"{path} has no column {', '.join(absent) or 'of features'}. It holds "
            f"{', '.join(names) or 'nothing'}; name those that are "
            "features in dataset.columns."
        )
    csv.field_size_limit(2**31 - 1)
    try:
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            rows = list(csv.DictReader(file, delimiter=delimiter_in(path)))
    except (OSError, csv.Error):
        raise _no_table(path) from None
    columns = {name: [row[name] for row in rows] for name in _beside(group) if name in names}
    found = _columns(columns, path, labelled, len(rows), group)
    matrix = matrix_of(chosen, lambda name: [row[name] for row in rows])
    return Source("features", lambda index: matrix[index], **found, width=matrix.shape[1])


def header_of(path: Path) -> list[str]:
    """The names of a table's columns."""
    return next(csv.reader([_first_line(path)], delimiter=delimiter_in(path)), [])


def delimiter_in(path: Path) -> str:
    """What stands between the names of a table's columns."""
    return max(",;\t", key=_first_line(path).count)


def _first_line(path: Path) -> str:
    try:
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            return file.readline()
    except OSError:
        raise _no_table(path) from None


def _no_table(path: Path) -> BadInput:
    return BadInput(f"{path} cannot be read as a table. Save it as comma-separated text in UTF-8.")


def _text_table(path: Path, labelled: bool, group: str | None) -> Source:
    rows, held = _rows_of(path)
    return _texts(rows, [name for name in _beside(group) if name in held], path, labelled, group)


def _rows_of(path: Path) -> tuple[list[dict[str, Any]], Sequence[str]]:
    """And the names of the columns. Bytes that are no UTF-8 are one bad record rather than the end
    of the run, and so is a cell of any length."""
    csv.field_size_limit(2**31 - 1)
    try:
        with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            reader = csv.DictReader(file, delimiter=delimiter_in(path))
            return list(reader), reader.fieldnames or []
    except (OSError, csv.Error):
        raise _no_table(path) from None


def from_jsonl(
    path: Path, labelled: bool = True, chosen: Sequence[str] = (), group: str | None = None
) -> Source:
    """An object a line with text and label, and those of id, user and split that are chosen: a file
    without a header says nowhere which it has, and no line may say it for the others. A line that
    is no object is one bad record."""
    try:
        lines = path.read_bytes().removeprefix(codecs.BOM_UTF8).split(b"\n")
    except OSError:
        raise _missing(
            path, "a readable file with a JSON object a line, which holds text and label"
        ) from None
    rows = [_object(line) for line in lines if line.strip()]
    names = [*(["label"] if labelled else []), *chosen, *([group] if group else [])]
    return _texts(rows, names, path, labelled, group)


def _object(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _texts(
    rows: Sequence[Mapping[str, Any]],
    names: Sequence[str],
    path: Path,
    labelled: bool,
    group: str | None,
) -> Source:
    texts = [text_bytes(row.get(TEXT)) for row in rows]
    columns = {name: [_printable(row.get(name)) for row in rows] for name in names}
    found = _columns(columns, path, labelled, len(texts), group)
    return Source("texts", texts.__getitem__, **found)


def text_bytes(value: Any) -> bytes:
    """A text as its owner stored it, in UTF-8. Bytes that were none, or half a surrogate pair, come
    out as none."""
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else b""


def _printable(value: Any) -> Any:
    """Something that a digest can be taken of."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def from_npz(path: Path, labelled: bool = True, group: str | None = None) -> Source:
    """Arrays named features or images, labels, and optional ids, users, splits, and `group` where
    one is declared."""
    import numpy as np

    damaged: Errors = (*BROKEN, EOFError, *_zip_errors())
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise _missing(
            path, "an .npz file with the arrays features (or images) and labels"
        ) from None
    except damaged:
        raise BadInput(
            f"{path} cannot be read as .npz: truncated, no permission, or it holds objects. Write "
            "it with "
            "numpy.savez from plain arrays."
        ) from None
    return _from_arrays(arrays, path, labelled, group)


def from_hdf5(path: Path, labelled: bool = True, group: str | None = None) -> Source:
    """Datasets named features or images, labels, and optional ids, users, splits, and `group` where
    one is declared. Rows stay on disk until read."""
    import h5py

    if not path.is_file():
        raise _missing(path, "an HDF5 file with the datasets features (or images) and labels")
    try:
        file = h5py.File(
            path, "r", locking=False
        )  # open as long as the source is: rows are read from it one by one
        whole = all(_holds_all(file, name) for name in file)
        arrays = {
            name: file[name] for name in file if whole and isinstance(file[name], h5py.Dataset)
        }
        found = _from_arrays(arrays, path, labelled, group) if whole else None
    except BROKEN:
        raise BadInput(
            f"{path} is truncated, unreadable or not HDF5. Write it again and check it with h5ls."
        ) from None
    if found is None:
        raise BadInput(
            f"{path} has links, or data sets that lie in other files (external or virtual). Only "
            "what the file holds "
            "itself is read: copy the rows into it, with h5repack or h5py."
        )
    return found


def _holds_all(file: Any, name: str) -> bool:
    """Whether what has this name lies in the file itself, without a link to anywhere."""
    import h5py

    if not isinstance(file.get(name, getlink=True), h5py.HardLink):
        return False
    found = file[name]
    return not isinstance(found, h5py.Dataset) or not (found.external or found.is_virtual)


def from_parquet(
    path: Path, labelled: bool = True, chosen: Sequence[Chosen] = (), group: str | None = None
) -> Source:
    """A label column, optional id, user, split and declared group; features are the chosen columns,
    or one list column named features, or all others that are no index of pandas'. Where a column is
    named text and none is chosen, that is what records are."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
        held = table.column_names
    except FileNotFoundError:
        raise _missing(
            path, "a parquet table with a label column and numeric feature columns"
        ) from None
    except (*BROKEN, pa.ArrowException):
        raise BadInput(f"{path} is truncated, unreadable or not parquet. Write it again.") from None
    columns = {name: _cells(table.column(name)) for name in _beside(group) if name in held}
    if TEXT in held and not chosen:
        return _text_column(
            table.column(TEXT), _columns(columns, path, labelled, len(table), group), path
        )
    _check_group(path, chosen, group)
    others = [name for name in held if name not in (*COLUMNS, *_index_of(table.schema))]
    wanted: list[Chosen] = list(chosen or others)
    _check_columns(wanted, table.schema, path)
    if wanted == ["features"]:
        matrix = _list_column(table.column("features"), path)
    else:
        matrix = matrix_of(wanted, lambda name: _values(table.column(name)))
    found = _columns(columns, path, labelled, len(matrix), group)
    return Source("features", lambda index: matrix[index], **found, width=matrix.shape[1])


def _values(column: Any) -> Sequence[Any]:
    import pyarrow as pa

    plain = pa.types.is_floating(column.type) or pa.types.is_integer(column.type)
    found: Sequence[Any] = column.to_numpy() if plain and not column.null_count else _cells(column)
    return found


def _cells(column: Any) -> list[Any]:
    """Nothing where a cell holds what Python has no value for: names that are no UTF-8, a time
    after its last one."""
    try:
        whole: list[Any] = column.to_pylist()
    except Exception:
        return [_cell(held) for held in column]
    return whole


def _cell(held: Any) -> Any:
    try:
        return held.as_py()
    except Exception:
        return None


def _text_column(column: Any, beside: Mapping[str, Any], path: Path) -> Source:
    """As bytes: nothing makes sure that a parquet file's strings are UTF-8."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    try:
        texts = [text or b"" for text in column.cast(pa.large_binary()).to_pylist()]
    except pa.ArrowException:
        raise BadInput(
            f"{path}: the column {TEXT} holds {column.type}. It must hold strings."
        ) from None
    return Source("texts", texts.__getitem__, **beside)


def _index_of(schema: Any) -> list[str]:
    """The columns that hold a pandas index, which numbers rows and tells nothing about them."""
    pandas = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
    return [name for name in pandas.get("index_columns", ()) if isinstance(name, str)]


def _check_columns(chosen: Sequence[Chosen], schema: Any, path: Path) -> None:
    """A date or a text among features would be dropped, or worse, be taken for a number. Levels may
    be of any type."""
    import pyarrow as pa

    names = [name_of(column) for column in chosen]
    absent = [name for name in names if name not in schema.names]
    if absent or not names:
        raise BadInput(
            f"{path} has no column {', '.join(absent) or 'of features'}. It holds "
            f"{', '.join(schema.names)}; name those that "
            "are features in dataset.columns."
        )
    kinds = {
        name_of(column): schema.field(name_of(column)).type
        for column in chosen
        if isinstance(column, str) or not column.levels
    }
    numeric = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    wrong = [
        f"{name} ({kind})"
        for name, kind in kinds.items()
        if not any(is_so(kind) for is_so in numeric)
    ]
    if wrong and names != ["features"]:
        raise BadInput(
            f"{path}: {', '.join(wrong)} must be numeric to be features. Name those that are in "
            "dataset.columns, with levels "
            "where they are words, or take the others out; beside them there may be "
            f"{', '.join(COLUMNS)}."
        )


def _list_column(column: Any, path: Path) -> Any:
    """One list per row, of a width that the schema states: no row's own length may decide it for
    the others."""
    import numpy as np
    import pyarrow as pa

    if not pa.types.is_fixed_size_list(column.type):
        raise BadInput(
            f"{path}: features must be a fixed-size list column, or one column per feature."
        )
    missing = [None] * column.type.list_size
    return np.array([row or missing for row in column.to_pylist()], np.float64).reshape(
        -1, len(missing)
    )


def _from_arrays(
    arrays: Mapping[str, Any], path: Path, labelled: bool, group: str | None
) -> Source:
    """Rows of `features`, or pixels of `images`, with the columns beside them."""
    columns = {name: arrays[f"{name}s"][()].tolist() for name in COLUMNS if f"{name}s" in arrays}
    if group is not None and group in arrays:
        columns[group] = arrays[group][()].tolist()
    if not {"features", "images"} & set(arrays) or (labelled and "labels" not in arrays):
        raise BadInput(
            f"{path} holds {', '.join(sorted(arrays)) or 'nothing'}. It needs features, a row of "
            "numbers for each record, or "
            f"images{', and labels' if labelled else ''}: write it with these names."
        )
    if "features" in arrays:
        matrix, kind = arrays["features"], "features"
        right = matrix.ndim == 2 and matrix.dtype.kind in "fiub"
        wanted = "numbers of shape (records, width)"
    else:
        matrix, kind = arrays["images"], "pixels"
        right = matrix.dtype.name in ("uint8", "uint16") and (
            matrix.ndim == 3 or (matrix.ndim == 4 and matrix.shape[3] in (1, 3, 4))
        )
        wanted = (
            "uint8 or uint16 of shape (records, height, width) or (records, height, width, 1, 3 "
            "or 4)"
        )
    if not right:
        raise BadInput(f"{path}: {kind if kind == 'features' else 'images'} must be {wanted}.")
    width = 1
    for length in matrix.shape[1:]:
        width *= int(length)
    found = _columns(columns, path, labelled, len(matrix), group)

    def read(index: int) -> Any:
        """One that a damaged file does not give back counts as nothing."""
        try:
            return matrix[index]
        except BROKEN:
            return matrix.dtype.type(0).repeat(width) if kind == "features" else b""

    source = Source(kind, read, **found, width=width)  # type: ignore[arg-type]
    if len(matrix) != len(source.labels):
        raise BadInput(f"{path}: labels and records differ in number. Give every record one label.")
    return source


def _columns(
    columns: Mapping[str, Column], path: Path, labelled: bool, rows: int, group: str | None
) -> dict[str, Any]:
    """Records that are to be predicted, and not learned from, need no labels."""
    labels = _need(columns, "label", path) if labelled or "label" in columns else [None] * rows
    if any(len(column) != len(labels) for column in columns.values()):
        raise BadInput(
            f"{path}: its columns differ in length. Give every record one value in each."
        )
    return {
        "labels": labels,
        "ids": columns.get("id"),
        "users": columns.get("user"),
        "parts": columns.get("split"),
        "groups": None if group is None else _need(columns, group, path),
    }


def _need(columns: Mapping[str, Any], name: str, path: Path) -> Any:
    if name not in columns:
        raise BadInput(
            f"{path} has no {name}. It holds "
            f"{', '.join(sorted(columns)) or 'nothing that is known here'}."
        )
    return columns[name]


def several(label: object, classes: int) -> list[object]:
    """The labels of a record that may have several: those of a list, or between bars, or of a truth
    value for each class. Rows of an array are of one length, so they are filled up with numbers
    below 0, or with nothing."""
    given = label.tolist() if hasattr(label, "tolist") else label
    each = (
        given
        if isinstance(given, list | tuple)
        else text(given).split("|")
        if given is not None
        else []
    )
    if all(isinstance(one, bool) for one in each) or _truths(each, classes):
        return [place for place, holds in enumerate(each) if holds]
    return [one for one in each if not _filling(one)]


def _truths(each: Sequence[object], classes: int) -> bool:
    """Whether these are 0 or 1 for each class. Of two classes they might be their numbers; of more,
    one would stand there twice."""
    return len(each) == classes > 2 and all(
        isinstance(one, int | float) and one in (0, 1) for one in each
    )


def _filling(label: object) -> bool:
    return label is None or text(label) == "" or (isinstance(label, int | float) and not label >= 0)


def text(value: object) -> str:
    """A name as its owner sees it: bytes as text, and accents however they were typed."""
    try:
        name = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    except RecursionError:  # a list in a list in a list, and so on
        name = "[...]"
    return unicodedata.normalize("NFC", name).strip()


def bytes_of(file: Path) -> bytes:
    """A file's bytes; none if it is no regular file (a pipe would be waited for without end) or
    cannot be read: one bad record rather than the end of the run."""
    try:
        return file.read_bytes() if file.is_file() else b""
    except (OSError, ValueError):  # no path at all, where NUL is in it
        return b""


def _zip_errors() -> Errors:
    from zipfile import BadZipFile
    from zlib import error

    return BadZipFile, error


def _missing(path: Path, wanted: str) -> BadInput:
    return BadInput(
        f"dataset.source: {path} does not exist. It must be {wanted}; is the right disk mounted?"
    )
