"""Tables as sources: CSV, lines of JSON, and parquet."""

from __future__ import annotations

import codecs
import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dpladder.config.model import Chosen
from dpladder.data.columns import matrix_of, name_of
from dpladder.data.sources import (
    BROKEN,
    COLUMNS,
    TEXT,
    Source,
    absent,
    beside,
    bytes_of,
    needed,
    text_bytes,
)
from dpladder.errors import BadInput


def from_csv(
    path: Path, labelled: bool = True, chosen: Sequence[Chosen] = (), group: str | None = None
) -> Source:
    """Rows of path,label or text,label, or of features and a label, with optional id, user and
    split, and the column `group` where one is declared, between commas, semicolons or tabs; paths
    are relative to the table's own folder."""
    if not path.is_file():
        raise absent(
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
    needed(dict.fromkeys(names), "path", path)
    columns = {
        name: [_printable(row[name]) for row in rows] for name in _beside(group) if name in names
    }
    files = [path.parent / (row["path"] or "") for row in rows]
    found = beside(columns, path, labelled, len(files), group)
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
    found = beside(columns, path, labelled, len(rows), group)
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
        raise absent(
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
    found = beside(columns, path, labelled, len(texts), group)
    return Source("texts", texts.__getitem__, **found)


def _printable(value: Any) -> Any:
    """Something that a digest can be taken of."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


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
        raise absent(
            path, "a parquet table with a label column and numeric feature columns"
        ) from None
    except (*BROKEN, pa.ArrowException):
        raise BadInput(f"{path} is truncated, unreadable or not parquet. Write it again.") from None
    columns = {name: _cells(table.column(name)) for name in _beside(group) if name in held}
    if TEXT in held and not chosen:
        return _text_column(
            table.column(TEXT), beside(columns, path, labelled, len(table), group), path
        )
    _check_group(path, chosen, group)
    others = [name for name in held if name not in (*COLUMNS, *_index_of(table.schema))]
    wanted: list[Chosen] = list(chosen or others)
    _check_columns(wanted, table.schema, path)
    if wanted == ["features"]:
        matrix = _list_column(table.column("features"), path)
    else:
        matrix = matrix_of(wanted, lambda name: _values(table.column(name)))
    found = beside(columns, path, labelled, len(matrix), group)
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
