"""Arrays as sources: files of NumPy and HDF5."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpladder.config.level_texts import bytes_as_text, number_in
from dpladder.data.columns import cell_as_text
from dpladder.data.layout import PLAIN, Layout
from dpladder.data.sources import (
    BROKEN,
    Errors,
    Source,
    check_held,
    missing_source_error,
    names_found_text,
    record_columns,
    refuse_names_twice,
)
from dpladder.errors import BadInput

CHUNK = 2**26  # numbers of the rows of a chunk, which HDF5 decodes whole
DENSEST = 1100  # bytes out of one that is stored: deflate makes 1,032 at most
# what a record without an id is known by, with itself
OF_RECORDS = ("labels", "users", "splits", "groups")


def from_npz(path: Path, layout: Layout = PLAIN) -> Source:
    """An archive of NumPy arrays. They are named features or images, labels, and optional ids,
    users, splits, and `group` where one is declared.

    Objects in it are not loaded: unpickling one runs code.

    Args:
        path: of the .npz file. All of it is read into memory.
        layout: how arrays beside the records are called, and whether there must be labels.

    Raises:
        BadInput: the file is missing or damaged, or an array is missing or has another shape or
            type.
    """
    from zipfile import BadZipFile
    from zlib import error as zlib_error

    import numpy as np

    damaged: Errors = (*BROKEN, EOFError, MemoryError, BadZipFile, zlib_error)
    try:
        with np.load(path, allow_pickle=False) as file:
            refuse_names_twice(path, file.files)
            arrays = {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise missing_source_error(
            path, "an .npz file with the arrays features (or images) and labels"
        ) from None
    except damaged:
        raise BadInput(
            f"{path} cannot be read as .npz: truncated, no permission, or it holds objects. Write "
            "it with numpy.savez from plain arrays."
        ) from None
    return _from_arrays(arrays, path, layout)


def from_hdf5(path: Path, layout: Layout = PLAIN) -> Source:
    """An HDF5 file with datasets named as arrays of `from_npz` are. Rows stay on disk until read.

    Raises:
        BadInput: the file is missing or damaged, has links or data in other files, or lacks a
            dataset.
    """
    import h5py

    if not path.is_file():
        raise missing_source_error(
            path, "an HDF5 file with the datasets features (or images) and labels"
        )
    try:
        # open as long as the source is: rows are read from it one by one
        file = h5py.File(path, "r", locking=False)
        whole = all(is_self_contained(file, name) for name in file)
        arrays = {
            name: file[name] for name in file if whole and isinstance(file[name], h5py.Dataset)
        }
        if swollen := [name for name, array in arrays.items() if claims_too_much(array)]:
            raise BadInput(
                f"{path} has arrays that claim more than the file holds, or that lie in too large "
                "chunks. Write it again, in chunks of some thousand rows.",
                f"They are {', '.join(swollen)}.",
            )
        source = _from_arrays(arrays, path, layout) if whole else None
    except BROKEN:
        raise BadInput(
            f"{path} is truncated, unreadable or not HDF5. Write it again and check it with h5ls."
        ) from None
    if source is None:
        raise BadInput(
            f"{path} has links, or data sets that lie in other files (external or virtual). Only "
            "what the file holds itself is read: copy the rows into it, with h5repack or h5py."
        )
    return source


def claims_too_much(array: Any, width: int = 1) -> bool:
    """Whether an array of HDF5 unpacks to more than its file can hold, or to a chunk that memory
    may not: a file of kilobytes may claim any size.

    Args:
        array: of the file.
        width: numbers in a row of a chunk, at least.
    """
    if array.chunks is not None:
        chunk = array.chunks[0] * max(math.prod(array.chunks[1:]), width)
        if chunk > CHUNK:
            return True
    return bool(array.size * array.dtype.itemsize > DENSEST * array.id.get_storage_size())


def is_self_contained(file: Any, name: str) -> bool:
    """Whether what has this name lies in the file itself, without a link to anywhere. A link could
    make records of files that the config does not name."""
    import h5py

    if not isinstance(file.get(name, getlink=True), h5py.HardLink):
        return False
    item = file[name]
    return not isinstance(item, h5py.Dataset) or not (item.external or item.is_virtual)


def _from_arrays(arrays: Mapping[str, Any], path: Path, layout: Layout) -> Source:
    """Rows of `features`, (records, width), or pixels of `images`, (records, height, width, ...).

    A record's line, by which it is known where it has no id, holds its values of the arrays in
    `OF_RECORDS`. The name says that, whatever the config reads: a length would not, for an array
    with one value for each feature has as many as there are records once there are so many.
    """
    if not {"features", "images"} & set(arrays):
        raise BadInput(
            f"{path} has neither features nor images. It needs features, a row of numbers for each "
            f"record, or images{', and labels' if layout.labelled else ''}: write it with these "
            "names.",
            names_found_text(sorted(arrays)),
        )
    check_held(path, sorted(arrays), layout, plural="s")
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
    said = [name for name in OF_RECORDS if name in arrays]
    beside_them = layout.columns_present(arrays, plural="s") | {name: name for name in said}
    columns = {role: _values(arrays[name], name, path) for role, name in beside_them.items()}
    if layout.number and "label" in columns:
        columns["label"] = _one_number_each(arrays[beside_them["label"]], columns["label"], path)
    record_fields = record_columns(columns, path, len(matrix))

    def read(index: int) -> Any:
        """One that a damaged file does not give back counts as nothing."""
        try:
            return matrix[index]
        except BROKEN:
            return matrix.dtype.type(0).repeat(width) if kind == "features" else b""

    def line(index: int) -> bytes:
        return cell_as_text({name: columns[name][index] for name in said}).encode()

    return Source(kind, read, **record_fields, width=width, line=line)  # type: ignore[arg-type]


def _one_number_each(array: Any, values: Any, path: Path) -> Any:
    """A target's values, which may stand in a single column.

    Raises:
        BadInput: there are several for each record.
    """
    if array.ndim == 1:
        return values
    if array.ndim == 2 and array.shape[1] == 1:
        return [value[0] for value in values]
    raise BadInput(
        f"{path}: a target needs one number for each record, and that array holds several. Name "
        "another one in dataset.target.column."
    )


def _values(array: Any, name: str, path: Path) -> list[Any]:
    """An array's value, or row, of each record.

    One word among numbers makes texts of all others. So a text that NumPy writes of a number, or of
    a truth, is that again: no record's type hangs on what another one holds.

    Raises:
        BadInput: the array is of another type, or is a single value.
    """
    if array.dtype.kind not in "biufSUO" or array.ndim == 0:
        raise BadInput(
            f"{path}: {name} must have a number, a truth value or a text for each record."
        )
    values: list[Any] = array[()].tolist()
    return values if array.dtype.kind in "biuf" else [_as_first_given(value) for value in values]


def _as_first_given(value: Any) -> Any:
    """What a text was before an array made a text of it; each by itself in a row."""
    if isinstance(value, list):
        return [_as_first_given(one) for one in value]
    word = bytes_as_text(value)
    if not isinstance(word, str):
        return value
    if word in ("True", "False"):
        return word == "True"
    number = number_in(word)
    return value if number is None else number
