"""Tables as sources: CSV, lines of JSON, and parquet.

Two rules hold here. A row that cannot be read is one bad record, and does not move what other rows
are read as. What decides about all rows, such as columns, types and the delimiter, stands in the
header, the schema or the config, never in a row. Otherwise one person's row could change other
people's records (contract 14).
"""

from __future__ import annotations

import codecs
import csv
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

from dpladder.config.dataset_sections import Chosen
from dpladder.config.extras import require_package
from dpladder.data.columns import cell_as_text, levels_of, matrix_of, name_of, whole_as_int
from dpladder.data.layout import PLAIN, ROLES, Layout
from dpladder.data.sources import (
    BROKEN,
    PATH,
    SEE_CHECK,
    TEXT,
    Source,
    bytes_of,
    check_held,
    missing_source_error,
    names_found_text,
    record_columns,
    text_bytes,
)
from dpladder.errors import BadInput


class Worded(BadInput):
    """Columns that would be features, and hold no numbers.

    Attributes:
        path, layout: lead to the columns, for the operator's eyes alone: `dpladder check` shows
            them.
    """

    def __init__(self, message: str, private: str, path: Path, layout: Layout) -> None:
        super().__init__(message, private)
        self.path, self.layout = path, layout


def from_csv(path: Path, layout: Layout = PLAIN) -> Source:
    """A table of records, between commas, semicolons or tabs.

    Rows hold path and label, or text and label, or features and a label. id, user and split are
    optional, and so is the column of groups that is declared. Paths are relative to the table's own
    folder.

    Raises:
        BadInput: there is no such file, it is no table, or a column that the config needs is
            missing.
    """
    if not path.is_file():
        raise missing_source_error(
            path,
            "a table with the columns path (or text, or features) and label, and if you have them "
            "id,user,split",
        )
    names = header_of(path)
    check_held(path, names, layout)
    if layout.columns or not {PATH, TEXT} & set(names):
        return _number_table(path, names, layout)
    rows = _rows_of(path)
    unread = _unreadable_rows(rows)
    if PATH not in names:
        return replace(_texts(rows, layout.columns_present(names), path), unread=unread)
    columns = record_columns(printables(rows, layout.columns_present(names)), path, len(rows))
    files = [path.parent / (row[PATH] or "") for row in rows]
    line = partial(_line, rows)
    return Source(
        "files",
        lambda index: bytes_of(files[index]),
        **columns,
        files=files,
        line=line,
        unread=unread,
    )


def _line(rows: Sequence[Mapping[str, Any]], index: int) -> bytes:
    """All that a row says. What an unnamed column says numbers rows, and would be another number
    where a row joins."""
    try:
        return cell_as_text({name: cell for name, cell in rows[index].items() if name}).encode()
    except RecursionError:  # a list in a list in a list, and so on, in a line of JSON
        return b"[...]"


def _number_table(path: Path, names: Sequence[str], layout: Layout) -> Source:
    """Features, as the header names them: what a row holds decides nothing for the others. An
    unnamed column numbers rows."""
    taken = layout.columns_present(names)
    chosen = features_in(path, [name for name in names if name], layout)
    rows = _rows_of(path)
    columns = record_columns(printables(rows, taken), path, len(rows))
    numbers = {name_of(column) for column in chosen if not levels_of(column)}
    decimals = with_points if delimiter_in(path) != "," else list

    def cells(name: str) -> list[Any]:
        column = [row[name] for row in rows]
        return decimals(column) if name in numbers else column

    matrix = matrix_of(chosen, cells)
    return Source(
        "features",
        lambda index: matrix[index],
        **columns,
        width=matrix.shape[1],
        line=partial(_line, rows),
        line_is_all=True,
        names=names,
        unread=_unreadable_rows(rows),
    )


DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+([eE][+-]?\d+)?\s*")


def with_points(cells: Sequence[Any]) -> list[Any]:
    """Numbers as Python writes them: 1,5 becomes 1.5. Only for tables between semicolons or tabs,
    where a comma can begin decimals."""
    return [
        cell.replace(",", ".") if cell and DECIMAL_COMMA.fullmatch(cell) else cell for cell in cells
    ]


def features_in(path: Path, names: Sequence[str], layout: Layout) -> Sequence[Chosen]:
    """The columns that are features: those that the config names, or else all that have no role.

    Whether a column of groups is a feature as well is said, and never guessed: predictions will be
    made of the same.

    Args:
        path: of the table, for messages.
        names: of its columns.
        layout: what the config says of columns.

    Raises:
        BadInput: a named column is missing, no column is left, or groups are declared without
            columns.
    """
    if layout.group is not None and not layout.columns and layout.labelled:
        raise BadInput(
            f"{path}: beside the column {layout.group} of groups, dataset.columns must name the "
            "columns that are features."
        )
    taken = {*layout.columns_present(names).values(), *ROLES}
    chosen = layout.columns or [name for name in names if name not in taken]
    missing = [name for name in map(name_of, chosen) if name not in names]
    if missing or not chosen:
        raise BadInput(
            f"{path} has no column {', '.join(missing) or 'of features'}. Name those that are "
            f"features in dataset.columns; {SEE_CHECK}.",
            names_found_text(names),
        )
    return chosen


def header_of(path: Path) -> list[str]:
    """The names of a table's columns, all on the first line.

    Raises:
        BadInput: a quote stays open there. What follows would be read as a name, and told, though
            it may be a record's.
    """
    names = next(csv.reader([_first_line(path)], delimiter=delimiter_in(path)), [])
    if any(name.endswith(("\n", "\r")) for name in names):
        raise BadInput(
            f"{path} opens a quote in its first line and does not close it there. Write the names "
            "of its columns on one line."
        )
    return names


def delimiter_in(path: Path) -> str:
    """What stands between the names of a table's columns: of comma, semicolon and tab the one that
    its first line has most of."""
    return max(",;\t", key=_first_line(path).count)


def _encoding_of(path: Path) -> str:
    """UTF-16 where a file begins with its mark, as spreadsheets write it; else UTF-8."""
    with path.open("rb") as file:
        marked = file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    return "utf-16" if marked else "utf-8-sig"


def _first_line(path: Path) -> str:
    """The first line of a table, as it stands. What is no character there is replaced."""
    try:
        with path.open(encoding=_encoding_of(path), errors="replace", newline="") as file:
            return file.readline()
    except OSError:
        raise _no_table(path) from None


def _no_table(path: Path) -> BadInput:
    return BadInput(f"{path} cannot be read as a table. Save it as comma-separated text in UTF-8.")


NO_ROW = "\n"  # what no column is called: there stands a line that does not parse


def _rows_of(path: Path) -> list[dict[str, Any]]:
    """The rows of a table, from names to cells. In one that does not parse every cell is None.

    Each line is a row, so that no row takes another one along, as a quote that is not closed would
    where cells hold line ends. Bytes that are no UTF-8 are one bad record rather than the end
    of the run, and so is a cell of any length.
    """
    csv.field_size_limit(2**31 - 1)
    names, delimiter = header_of(path), delimiter_in(path)
    rows: list[dict[str, Any]] = []
    try:
        encoding = _encoding_of(path)
        errors = "replace" if encoding == "utf-16" else "surrogateescape"
        with path.open(encoding=encoding, errors=errors, newline="") as file:
            next(file, None)
            for line in file:
                if not (inside := line.rstrip("\r\n")):
                    continue
                cells = _cells_of(inside, delimiter)
                if cells is None or any(cells[len(names) :]):  # more cells than the header has
                    rows.append({**dict.fromkeys(names), NO_ROW: inside})
                else:
                    rows.append(dict(zip_longest(names, cells[: len(names)])))
    except (OSError, csv.Error):
        raise _no_table(path) from None
    return rows


def _unreadable_rows(rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """The places of rows that did not parse."""
    return [place for place, row in enumerate(rows) if NO_ROW in row]


QUOTED = '"[^"]*(?:""[^"]*)*"'
PLAIN_CELL = {delimiter: f'[^"{delimiter}]*' for delimiter in ",;"} | {"\t": '(?:[^"\t][^\t]*)?'}
"""Between tabs a quote may stand inside a cell, where texts are written as they are. Elsewhere such
a cell stands between quotes (RFC 4180): without them it is the end of a longer one."""


def _cells_of(line: str, delimiter: str) -> list[str] | None:
    """The cells of one line; nothing where its quotes are not those of a whole row."""
    if '"' not in line:
        return line.split(delimiter)
    cell = f"(?:{QUOTED}|{PLAIN_CELL[delimiter]})"
    if re.fullmatch(f"{cell}(?:{delimiter}{cell})*", line) is None:
        return None
    return next(csv.reader([line], delimiter=delimiter))


def from_jsonl(path: Path, layout: Layout = PLAIN) -> Source:
    """An object a line with text and label, and what else the config says that lines have.

    A file without a header says nowhere what it holds, so the config has to. An id is read where a
    line has one, for it decides about its own line alone. A line that is no object is one bad
    record.
    """
    names = layout.json_fields()
    columns = _texts(objects_in(path), {"id": "id", **names}, path)
    return replace(columns, some_have_ids="id" not in names)


def objects_in(path: Path) -> list[dict[str, Any]]:
    """The object of each line; an empty one of a line that is none."""
    try:
        lines = path.read_bytes().removeprefix(codecs.BOM_UTF8).split(b"\n")
    except OSError:
        raise missing_source_error(
            path, "a readable file with a JSON object a line, which holds text and label"
        ) from None
    return [_object(line) for line in lines if line.strip()]


def _object(line: bytes) -> dict[str, Any]:
    """The object of one line; an empty one of what is no JSON, of no object, or nested too deep."""
    try:
        document = json.loads(
            line.decode("utf-8", "surrogateescape"),
            # where one number is missing, pandas writes all others of its column as 3.0
            parse_float=lambda number: whole_as_int(float(number)),
        )
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _texts(rows: Sequence[Mapping[str, Any]], names: Mapping[str, str], path: Path) -> Source:
    """Texts as records. What is no string comes out empty, and so counts as nothing."""
    texts = [text_bytes(row.get(TEXT)) for row in rows]
    columns = record_columns(printables(rows, names), path, len(rows))
    line = partial(_line, rows)
    return Source("texts", texts.__getitem__, **columns, line=line, line_is_all=True)


def printables(
    rows: Sequence[Mapping[str, Any]], names: Mapping[str, str]
) -> dict[str, Sequence[Any]]:
    """The columns of these roles, of which a digest can be taken.

    Args:
        rows: by the names of their columns.
        names: from a role to the column that holds it.

    Returns:
        From each role to its values, one for each row. Half a surrogate pair becomes a question
        mark.
    """
    return {role: [_printable(row.get(name)) for row in rows] for role, name in names.items()}


def _printable(value: Any) -> Any:
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def from_parquet(path: Path, layout: Layout = PLAIN) -> Source:
    """A parquet table of records.

    It has a label column, and optional ones of id, user, split and the declared group. Features are
    the chosen columns, or one list column named features, or all others that are no index of
    pandas'. Where a column is named text and none is chosen, that is what records are.

    Raises:
        BadInput: the file is missing or damaged, or lacks a column.
        Worded: a column that would be a feature is of words or dates, by the schema.
    """
    table, column_names, index = _open_parquet(path)
    check_held(path, column_names, layout)
    columns = {
        role: _cells(table.column(name))
        for role, name in layout.columns_present(column_names).items()
    }
    fields = record_columns(columns, path, len(table))
    lines = [_as_bytes(table.column(name)) for name in column_names if name not in index]
    if TEXT in column_names and not layout.columns:
        return replace(
            _text_column(table.column(TEXT), fields, path),
            line=partial(_cells_at, lines),
            line_is_all=True,
        )
    chosen = features_in(
        path, [name for name in column_names if name not in index or layout.columns], layout
    )
    if list(chosen) == ["features"]:
        matrix = _list_column(table.column("features"), path)
    else:
        _check_numeric(chosen, table.schema, path, layout)
        matrix = matrix_of(chosen, lambda name: _values(table.column(name)))
    return Source(
        "features",
        lambda index: matrix[index],
        **fields,
        width=matrix.shape[1],
        line=partial(_cells_at, lines),
        line_is_all=True,
        names=[name for name in column_names if name not in index],
    )


def _cells_at(columns: Sequence[Callable[[int], bytes]], index: int) -> bytes:
    """A row's cells, none of which can run into the next."""
    cells = [cell(index) for cell in columns]
    return b"".join(len(cell).to_bytes(8, "little") + cell for cell in cells)


def _as_bytes(column: Any) -> Callable[[int], bytes]:
    """From a row to what its cell holds, whatever other rows hold: one missing number makes floats
    of a column's integers, and one word makes texts of them. A missing value has no bytes."""
    values = _values(column)
    read = values.__getitem__ if isinstance(values, list) else lambda row: values[row].item()
    return lambda row: cell_as_text(read(row)).encode("utf-8", "surrogatepass")


def _open_parquet(path: Path) -> tuple[Any, list[str], list[str]]:
    """A parquet table, its columns' names, and those that are a pandas index."""
    require_package("pyarrow", "parquet", str(path))
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
        return table, table.column_names, _index_of(table.schema)
    except FileNotFoundError:
        raise missing_source_error(
            path, "a parquet table with a label column and numeric feature columns"
        ) from None
    except (*BROKEN, pa.ArrowException):
        raise BadInput(f"{path} is truncated, unreadable or not parquet. Write it again.") from None


def columns_in(path: Path) -> tuple[dict[str, Sequence[Any]], Sequence[int]]:
    """All columns of a table, each with its values as they are read.

    Args:
        path: of CSV or parquet, by its suffix.

    Returns:
        From names to values, but for columns that number rows; and the places of rows that do not
        parse.
    """
    if path.suffix == ".parquet":
        table, read, index = _open_parquet(path)
        return {name: _cells(table.column(name)) for name in read if name not in index}, ()
    rows = _rows_of(path)
    return printables(rows, {name: name for name in header_of(path) if name}), _unreadable_rows(
        rows
    )


def _values(column: Any) -> Sequence[Any]:
    """A column's values: an array where all are there and are plain numbers, or else a list."""
    whole = _is_numeric(column) and not column.null_count
    values: Sequence[Any] = column.to_numpy() if whole else _cells(column)
    return values


def _is_numeric(column: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_floating(column.type) or pa.types.is_integer(column.type))


def _cells(column: Any) -> list[Any]:
    """Nothing where a cell holds what Python has no value for: names that are no UTF-8, a time
    after its last one."""
    try:
        whole: list[Any] = column.to_pylist()
    except Exception:
        return [_cell(cell) for cell in column]
    return whole


def _cell(value: Any) -> Any:
    try:
        return value.as_py()
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
    index = pandas.get("index_columns") if isinstance(pandas, dict) else None
    return [name for name in index if isinstance(name, str)] if isinstance(index, list) else []


def _check_numeric(chosen: Sequence[Chosen], schema: Any, path: Path, layout: Layout) -> None:
    """A date or a text among features would be dropped, or worse, be taken for a number. Levels may
    be of any type."""
    import pyarrow as pa

    numeric = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    kinds = {
        name_of(column): schema.field(name_of(column)).type
        for column in chosen
        if isinstance(column, str) or not column.levels
    }
    wrong = [name for name, kind in kinds.items() if not any(is_so(kind) for is_so in numeric)]
    if wrong:
        names = ", ".join(f"{name} ({kinds[name]})" for name in wrong)
        right = [name_of(column) for column in chosen if name_of(column) not in wrong]
        raise Worded(
            f"{path}: columns must be numeric to be features, and some that would be are not. Say "
            "which columns are features in dataset.columns, with levels where they are words; "
            f"beside them there may be {', '.join(ROLES)}. `dpladder check` shows each.",
            f"Not numeric: {names}. dataset.columns: [{', '.join(right)}] takes them out.",
            path,
            layout,
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
