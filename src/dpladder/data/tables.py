"""Tables as sources: CSV, lines of JSON, parquet, and what the notebook's class hands over.

Three rules hold here. A row is what the table's writer wrote as one, so no cell can begin another
row. A row that cannot be read is one bad record, and does not move what other rows are read as.
What decides about all rows, such as columns, types and the delimiter, stands in the header, the
schema or the config, never in a row. Otherwise one person's row could change other people's records
(contract: unbreakable).
"""

from __future__ import annotations

import codecs
import csv
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
    table = _csv_table(path)
    rows = table.rows
    if layout.columns or not {PATH, TEXT} & set(names):
        chosen = features_in(path, [name for name in names if name], layout)
        decimals = with_points if delimiter_in(path) != "," else list
        source = _features(path, names, chosen, rows, layout, decimals)
    elif PATH not in names:
        source = _texts(rows, layout.columns_present(names), path)
    else:
        columns = record_columns(printables(rows, layout.columns_present(names)), path, len(rows))
        files = [path.parent / (row[PATH] or "") for row in rows]
        source = Source(
            "files",
            lambda index: bytes_of(files[index]),
            **columns,
            files=files,
            line=partial(_line, rows),
        )
    return replace(source, unread=table.unread, spread=table.spread)


def _line(rows: Sequence[Mapping[str, Any]], index: int) -> bytes:
    """All that a row says. What an unnamed column says numbers rows, and would be another number
    where a row joins."""
    try:
        return cell_as_text({name: cell for name, cell in rows[index].items() if name}).encode()
    except RecursionError:  # a list in a list in a list, and so on, in a line of JSON
        return b"[...]"


def _features(
    path: Path,
    names: Sequence[str],
    chosen: Sequence[Chosen],
    rows: Sequence[Mapping[str, Any]],
    layout: Layout,
    decimals: Callable[[Sequence[Any]], Sequence[Any]] = list,
) -> Source:
    """Features, as the header names them: what a row holds decides nothing for the others.

    Args:
        path: of the table, for messages.
        names: of its columns.
        chosen: those that are features.
        rows: from names to cells.
        layout: what the config says of columns.
        decimals: makes numbers as Python writes them of a column's cells.
    """
    columns = record_columns(printables(rows, layout.columns_present(names)), path, len(rows))
    numbers = {name_of(column) for column in chosen if not levels_of(column)}

    def cells(name: str) -> Sequence[Any]:
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
    csv.field_size_limit(2**31 - 1)
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


NO_ROW = "\n"  # what no column is called: there stands a line that is no row


@dataclass(frozen=True)
class CsvTable:
    """The rows of a CSV file, and where they stand in it. Private.

    Attributes:
        rows: from names to cells. In one that does not parse every cell is None.
        first: the line that each row begins with; the header is line 1.
        unread: lines that are no row, and count as nothing.
        spread: of each row of several lines the first and the last one.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    first: list[int] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    spread: list[str] = field(default_factory=list)


def _csv_table(path: Path) -> CsvTable:
    """A CSV file by its rows, as a CSV writer wrote them (RFC 4180): a cell with line ends stands
    between quotes.

    A line that opens a quote which no later line closes as a writer would is one bad record, and
    the lines after it are rows of their own. Of what a CSV writer wrote no line is such. Bytes that
    are no UTF-8 are one bad record rather than the end of the run, and so is a cell of any length.
    """
    names, delimiter = header_of(path), delimiter_in(path)
    # at a carriage return where the header does, as on old Macs; it may stand in a cell elsewhere
    newline = "\r" if _first_line(path).endswith("\r") else "\n"
    lines = _lines_below_header(path, newline)
    ends = _row_ends(lines, delimiter)
    table, place = CsvTable(), 0
    while place < len(lines):
        end = ends[place]
        last = place if end is None else end
        text = newline.join(lines[place : last + 1]).removesuffix("\r")
        first, place = place, last + 1
        if not text:
            continue
        cells = None if end is None else _cells_of(text, delimiter)
        if first != last:
            table.spread.append(f"lines {first + 2}-{last + 2}")
        if cells is None or any(cells[len(names) :]):  # more cells than the header has
            table.unread.append(f"line {first + 2}")
            table.rows.append({**dict.fromkeys(names), NO_ROW: text})
        else:
            table.rows.append(dict(zip_longest(names, cells[: len(names)])))
        table.first.append(first + 2)
    return table


def _lines_below_header(path: Path, newline: str) -> list[str]:
    """The lines of a table but for the first."""
    encoding = _encoding_of(path)
    errors = "replace" if encoding == "utf-16" else "surrogateescape"
    try:
        with path.open(encoding=encoding, errors=errors, newline=newline) as file:
            return [line.removesuffix(newline) for line in file][1:]
    except OSError:
        raise _no_table(path) from None


QUOTED_TEXT = '[^"]*(?:""[^"]*)*'  # what stands between two quotes, with quotes doubled
QUOTED = f'"{QUOTED_TEXT}"'
PLAIN_CELL = {delimiter: f'[^"{delimiter}]*' for delimiter in ",;"} | {"\t": '(?:[^"\t][^\t]*)?'}
"""Between tabs a quote may stand inside a cell, where texts are written as they are. Elsewhere such
a cell stands between quotes (RFC 4180): without them it is the end of a longer one."""


def _row_ends(lines: Sequence[str], delimiter: str) -> list[int | None]:
    """For each line the last line of the row that would begin with it; None where none would.

    Lines are looked at from the last to the first, each once as the beginning of a row and once as
    the middle of a cell, so it takes no longer where many quotes stay open.
    """
    cell = f"(?:{QUOTED}|{PLAIN_CELL[delimiter]})"
    whole = re.compile(f"(?:{cell}{delimiter})*{cell}\r?")
    opening = re.compile(f'(?:{cell}{delimiter})*"{QUOTED_TEXT}')
    ends: list[int | None] = [*range(len(lines))]
    closing: int | None = None  # the line that ends the row whose cell is open before the next line

    def end(text: str, place: int) -> int | None:
        if whole.fullmatch(text):
            return place
        return closing if opening.fullmatch(text) else None

    for place in reversed(range(len(lines))):
        if '"' in lines[place]:
            # a line in the middle of a cell reads as one whose first cell has its quote before it
            ends[place], closing = end(lines[place], place), end(f'"{lines[place]}', place)
    return ends


def _cells_of(row: str, delimiter: str) -> list[str]:
    """The cells of a row that parses."""
    if '"' not in row:
        return row.split(delimiter)
    cells = re.findall(f"({QUOTED}|{PLAIN_CELL[delimiter]}){delimiter}", row + delimiter)
    return [cell[1:-1].replace('""', '"') if cell.startswith('"') else cell for cell in cells]


FRAME = ".frame"


def frame_as_bytes(names: Sequence[str], rows: Sequence[Sequence[str | None]]) -> bytes:
    """Rows as the notebook's class hands them to a run: a line with the names of the columns, then
    a line for each row, a list of its cells in JSON.

    JSON escapes what could end a line or a text, so rows and lines are as many, whatever stands in
    a cell. Halves of a surrogate pair are written each by itself: escaped side by side, they would
    come back as the character that a pair stands for.
    """
    lines = (json.dumps([*cells], ensure_ascii=False) for cells in (names, *rows))
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")


def frame_in(content: bytes) -> tuple[list[str], list[list[str | None]]]:
    """The names and the rows that `frame_as_bytes` wrote.

    Raises:
        ValueError: it wrote no such thing, or not all of it.
    """
    lines = content.decode("utf-8", "surrogatepass").removesuffix("\n").split("\n")
    names, *rows = map(json.loads, lines)
    if any(not isinstance(row, list) or len(row) != len(names) for row in rows):
        raise ValueError("rows differ in length from the header")
    return names, rows


def _frame_at(path: Path) -> tuple[list[str], list[dict[str, Any]]]:
    """The names of a frame's columns, and its rows from names to cells."""
    try:
        names, rows = frame_in(path.read_bytes())
    except FileNotFoundError:
        raise missing_source_error(path, "what PrivateClassifier.fit wrote") from None
    except (OSError, ValueError):
        raise BadInput(
            f"{path} is not as PrivateClassifier.fit wrote it. Call fit again."
        ) from None
    return names, [dict(zip(names, row, strict=True)) for row in rows]


def from_frame(path: Path, layout: Layout = PLAIN) -> Source:
    """A DataFrame that the notebook's class handed over. A row's cells are texts, or missing.

    Raises:
        BadInput: `fit` did not write it, or it lacks a column that the config names.
    """
    names, rows = _frame_at(path)
    check_held(path, names, layout)
    return _features(path, names, features_in(path, names, layout), rows, layout)


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


def columns_in(path: Path) -> tuple[dict[str, Sequence[Any]], CsvTable]:
    """All columns of a table, each with its values as they are read.

    Args:
        path: of CSV, parquet or a frame, by its suffix.

    Returns:
        From names to values, but for columns that number rows; and of CSV where its rows stand.
    """
    if path.suffix == ".parquet":
        table, read, index = _open_parquet(path)
        return {name: _cells(table.column(name)) for name in read if name not in index}, CsvTable()
    if path.suffix == FRAME:
        names, rows = _frame_at(path)
        return printables(rows, {name: name for name in names}), CsvTable()
    csv_table = _csv_table(path)
    names = [name for name in header_of(path) if name]
    return printables(csv_table.rows, {name: name for name in names}), csv_table


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
