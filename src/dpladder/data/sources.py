"""Where records lie: a source reads one record at a time, in any order, exactly as its owner stored it."""

from __future__ import annotations

import csv
import os
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from dpladder.errors import BadInput

Column = Sequence[Any]

COLUMNS = ("label", "id", "user", "split")
SUFFIXES = frozenset(
    (".bmp", ".gif", ".jp2", ".jpeg", ".jpg", ".png", ".ppm", ".pgm", ".tif", ".tiff", ".webp")
)


@dataclass(frozen=True)
class Source:
    """Records by index. Labels, ids, users and parts are as given, not yet checked.

    `read` gives an image file's bytes, an array of pixels, or one row of features, as `kind` says.
    """

    kind: Literal["files", "pixels", "features"]
    read: Callable[[int], Any]
    labels: Column
    ids: Column | None = None
    users: Column | None = None
    parts: Column | None = None
    width: int = 0  # of a row of features or of flattened pixels; 0 for files, whose sizes differ
    files: Column | None = None  # for the private diagnostics: where each record's file lies
    name: str = ""  # as config calls it


def from_folder(path: Path) -> Source:
    """One folder per class; a file's class is the first folder on its way. Files of other suffixes are no records."""
    if not path.is_dir():
        raise _missing(path, "a folder with one subfolder of images per class")
    files = [
        Path(folder, name)
        for folder, _, names in os.walk(path, onerror=_unreadable_folder, followlinks=True)
        for name in sorted(names)
        if Path(name).suffix.lower() in SUFFIXES
    ]
    labels = [file.relative_to(path).parts[0] for file in files]
    return Source("files", lambda index: _bytes_of(files[index]), labels, files=files)


def from_csv(path: Path) -> Source:
    """Rows of path,label with optional id, user and split; paths are relative to the table's own folder."""
    if not path.is_file():
        raise _missing(path, "a table with the columns path,label and, if you have them, id,user,split")
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            rows = list(reader)
            names = reader.fieldnames or []
    except (OSError, UnicodeDecodeError, csv.Error):
        raise BadInput(
            f"{path} cannot be read as a table. Save it as comma-separated text in UTF-8."
        ) from None
    columns = {name: [row[name] for row in rows] for name in ("path", *COLUMNS) if name in names}
    files = [path.parent / (name or "") for name in _need(columns, "path", path)]
    return Source("files", lambda index: _bytes_of(files[index]), **_columns(columns, path), files=files)


def from_npz(path: Path) -> Source:
    """Arrays named features or images, labels, and optional ids, users, splits."""
    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise _missing(path, "an .npz file with the arrays features (or images) and labels") from None
    except (OSError, ValueError, EOFError, _zip_error()):
        raise BadInput(
            f"{path} cannot be read as .npz: truncated, no permission, or it holds objects. Write it with "
            "numpy.savez from plain arrays."
        ) from None
    return _from_arrays(arrays, path)


def from_hdf5(path: Path) -> Source:
    """Datasets named features or images, labels, and optional ids, users, splits. Rows stay on disk until read."""
    import h5py

    if not path.is_file():
        raise _missing(path, "an HDF5 file with the datasets features (or images) and labels")
    try:
        file = h5py.File(
            path, "r", locking=False
        )  # open as long as the source is: rows are read from it one by one
        arrays = {name: array for name, array in file.items() if isinstance(array, h5py.Dataset)}
    except OSError:
        raise BadInput(
            f"{path} is truncated, unreadable or not HDF5. Write it again and check it with h5ls."
        ) from None
    return _from_arrays(arrays, path)


def from_parquet(path: Path) -> Source:
    """A label column, optional id, user and split; features are one list column of that name, or all other columns."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except FileNotFoundError:
        raise _missing(path, "a parquet table with a label column and numeric feature columns") from None
    except (OSError, pa.ArrowException):
        raise BadInput(f"{path} is truncated, unreadable or not parquet. Write it again.") from None
    columns = {name: table.column(name).to_pylist() for name in COLUMNS if name in table.column_names}
    names = [name for name in table.column_names if name not in COLUMNS]
    if names == ["features"]:
        matrix = _list_column(table.column("features"), path)
    else:
        try:
            matrix = np.column_stack([table.column(name).to_numpy().astype(np.float64) for name in names])
        except (ValueError, TypeError):
            raise BadInput(f"{path}: every column beside {', '.join(COLUMNS)} must be numeric.") from None
    return Source("features", lambda index: matrix[index], **_columns(columns, path), width=matrix.shape[1])


def _list_column(column: Any, path: Path) -> Any:
    """One list per row, of a width that the schema states: no row's own length may decide it for the others."""
    import numpy as np
    import pyarrow as pa

    if not pa.types.is_fixed_size_list(column.type):
        raise BadInput(f"{path}: features must be a fixed-size list column, or one column per feature.")
    missing = [None] * column.type.list_size
    return np.array([row or missing for row in column.to_pylist()], np.float64).reshape(-1, len(missing))


def _from_arrays(arrays: Mapping[str, Any], path: Path) -> Source:
    """Rows of `features`, or pixels of `images`, with the columns beside them."""
    columns = {name: arrays[f"{name}s"][()].tolist() for name in COLUMNS if f"{name}s" in arrays}
    if "features" in arrays:
        matrix, kind = arrays["features"], "features"
        right = matrix.ndim == 2 and matrix.dtype.kind in "fiub"
        wanted = "numbers of shape (records, width)"
    else:
        matrix, kind = _need(arrays, "images", path), "pixels"
        right = matrix.dtype.name in ("uint8", "uint16") and (
            matrix.ndim == 3 or (matrix.ndim == 4 and matrix.shape[3] in (1, 3, 4))
        )
        wanted = "uint8 or uint16 of shape (records, height, width) or (records, height, width, 1, 3 or 4)"
    if not right:
        raise BadInput(f"{path}: {kind if kind == 'features' else 'images'} must be {wanted}.")
    width = 1
    for length in matrix.shape[1:]:
        width *= int(length)
    source = Source(kind, lambda index: matrix[index], **_columns(columns, path), width=width)  # type: ignore[arg-type]
    if len(matrix) != len(source.labels):
        raise BadInput(f"{path}: labels and records differ in number. Give every record one label.")
    return source


def _columns(columns: Mapping[str, Column], path: Path) -> dict[str, Any]:
    labels = _need(columns, "label", path)
    if any(len(column) != len(labels) for column in columns.values()):
        raise BadInput(f"{path}: its columns differ in length. Give every record one value in each.")
    return {
        "labels": labels,
        "ids": columns.get("id"),
        "users": columns.get("user"),
        "parts": columns.get("split"),
    }


def _need(columns: Mapping[str, Any], name: str, path: Path) -> Any:
    if name not in columns:
        raise BadInput(
            f"{path} has no {name}. It holds {', '.join(sorted(columns)) or 'nothing that is known here'}."
        )
    return columns[name]


def text(value: object) -> str:
    """A name as its owner sees it: bytes as text, and accents however they were typed."""
    name = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return unicodedata.normalize("NFC", name).strip()


def _bytes_of(file: Path) -> bytes:
    """A file's bytes; none if it cannot be read, which makes it one bad record rather than the end of the run."""
    try:
        return file.read_bytes()
    except OSError:
        return b""


def _unreadable_folder(error: OSError) -> None:
    raise BadInput(
        "a folder of the source cannot be opened. Give yourself permission to read all of it."
    ) from None


def _zip_error() -> type[Exception]:
    from zipfile import BadZipFile

    return BadZipFile


def _missing(path: Path, wanted: str) -> BadInput:
    return BadInput(f"dataset.source: {path} does not exist. It must be {wanted}; is the right disk mounted?")
