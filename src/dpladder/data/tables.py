"""Tables as sources: CSV, lines of JSON, parquet, and what the notebook's class hands over.

Three rules hold here. A row is what the table's writer wrote as one, so no cell can begin another
row. A row that cannot be read is one bad record, and does not move what other rows are read as.
What decides about all rows, such as columns, types and the delimiter, stands in the header, the
schema or the config, never in a row. Otherwise one person's row could change other people's records
(contract: unbreakable).
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dpladder.config.dataset_sections import Chosen
from dpladder.config.level_texts import whole_as_int
from dpladder.data.blocks import CellRows, RoleColumn, Size, TableBlocks, values_of
from dpladder.data.cells import (
    BINARY,
    Cells,
    TextCells,
    cells_of,
    joined,
    python_cells,
    text_of,
    texts_of,
)
from dpladder.data.columns import cell_as_text, matrix_of, name_of
from dpladder.data.csv_rows import header_of, rows_of
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
    refuse_names_twice,
    text_bytes,
)
from dpladder.errors import BadInput
from dpladder.public_files import object_of

BLOCK_ROWS = 32_768  # of a parquet table that are read at a time
Mask = NDArray[np.bool_] | None
# from the number of a block, the columns that are read, or all, and the rows, to those rows
ReadRows = Callable[[int, Collection[str] | None, Mask], CellRows]
Count = Callable[[int], int | None]  # the rows of a block, by its number; None behind the last


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
    table = rows_of(path)
    of_features = layout.columns or not {PATH, TEXT} & {*names}
    chosen = features_in(path, [name for name in names if name], layout) if of_features else ()
    said = {
        name for name in names if name
    }  # an unnamed column numbers rows: one that joins moves it

    def read(number: int, wanted: Collection[str] | None, some: Mask) -> CellRows:
        place = table.place_of(number)
        assert place is not None, "a block that was counted"
        block = table.block(place, wanted, some)
        if wanted is not None:
            return CellRows(block.columns)
        cells = [
            block.columns[name].as_texts() for name in names if name in said & {*block.columns}
        ]
        return CellRows(block.columns, [*cells, block.rest.fill_null(b"")])

    def count(number: int) -> int | None:
        place = table.place_of(number)
        return None if place is None else place.rows

    if of_features:
        source = _features(count, read, chosen, names, layout, table)
    else:
        counts = [place.rows for place in table.places]
        source = _texts_or_files(counts, read, path, names, layout)
    return replace(source, unread=table.unread, spread=table.spread)


def _count_from(counts: Sequence[int]) -> Count:
    """How many rows each block has, where all are known."""
    return lambda number: counts[number] if number < len(counts) else None


def _features(
    count: Count,
    read_rows: ReadRows,
    chosen: Sequence[Chosen],
    names: Sequence[str],
    layout: Layout,
    size: Size | None = None,
) -> Source:
    """Features, as the header names them: what a row holds decides nothing for the others.

    Args:
        count: the rows of each block.
        read_rows: the rows of a block.
        chosen: the columns that are features.
        names: of all columns.
        layout: what the config says of columns.
        size: how many rows there are, where nobody has counted them.
    """
    features = {*map(name_of, chosen)}

    def read(number: int, some: Mask) -> tuple[NDArray[np.float64], CellRows]:
        rows = read_rows(number, None if some is None else features, some)
        return matrix_of(chosen, rows.columns.__getitem__), rows

    roles = layout.columns_present(names)
    blocks = TableBlocks(count, read, roles, layout.number_roles, size)
    width = matrix_of(chosen, lambda _: []).shape[1]
    return _source_of(blocks, width, names)


def _source_of(blocks: TableBlocks, width: int, names: Sequence[str]) -> Source:
    """Features of this width, read from blocks of a table with these columns."""
    columns = {role: RoleColumn(blocks, role) for role in blocks.column_of}
    return Source(
        "features",
        blocks.row,
        RoleColumn(blocks, "label"),
        ids=columns.get("id"),
        users=columns.get("user"),
        parts=columns.get("split"),
        groups=columns.get("group"),
        width=width,
        line=blocks.line,
        line_is_all=True,
        names=names,
        blocks=blocks,
    )


def _texts_or_files(
    counts: Sequence[int], read: ReadRows, path: Path, names: Sequence[str], layout: Layout
) -> Source:
    """Texts of a table, or files that it names, all of whose rows are kept in memory."""
    roles = layout.columns_present(names)
    what = PATH if PATH in names else TEXT
    lines: list[bytes] = []
    contents: list[bytes | None] = []
    beside: dict[str, list[Any]] = {role: [] for role in roles}
    for number, count in enumerate(counts):
        rows = read(number, None, None)
        offsets, data = joined(rows.said, count)
        lines += [bytes(data[start:end]) for start, end in pairwise(offsets.tolist())]
        contents += rows.columns[what].array.to_pylist()
        for role, name in roles.items():
            codes, values = values_of(rows.columns[name], role in layout.number_roles)
            beside[role] += [values[code] for code in codes]
    columns = record_columns(beside, path, len(lines))
    if what == TEXT:
        texts = [text or b"" for text in contents]
        return Source(
            "texts", texts.__getitem__, **columns, line=lines.__getitem__, line_is_all=True
        )
    files = [path.parent / ("" if name is None else text_of(name)) for name in contents]
    return Source(
        "files",
        lambda index: bytes_of(files[index]),
        **columns,
        files=files,
        line=lines.__getitem__,
    )


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


FRAME = ".frame"


def frame_as_bytes(columns: Mapping[str, Sequence[str | None]]) -> bytes:
    """Columns as the notebook's class hands them to a run: a file of Arrow, some rows at a time.

    Cells and names are bytes there, so no cell can end a row, whatever stands in it, and halves of
    a surrogate pair stay halves.
    """
    names = {str(place): name for place, name in enumerate(columns)}
    schema = pa.schema(
        [(place, BINARY) for place in names],
        {place.encode(): text_bytes(name) for place, name in names.items()},
    )
    count = len(next(iter(columns.values()), ()))
    written = pa.BufferOutputStream()
    with pa.ipc.new_file(written, schema) as file:
        for start in range(0, count, BLOCK_ROWS):
            cells = [texts_of(column[start : start + BLOCK_ROWS]) for column in columns.values()]
            file.write_batch(pa.record_batch(cells, schema))
    return bytes(written.getvalue())


def frame_in(content: Any) -> tuple[list[str], list[Any]]:
    """The names of the columns that `frame_as_bytes` wrote, and their cells, some rows at a time.

    Raises:
        ArrowException: it wrote no such thing, or not all of it.
    """
    file = pa.ipc.open_file(content)
    facts = file.schema.metadata or {}
    names = [text_of(facts[str(place).encode()]) for place in range(len(file.schema))]
    batches = [file.get_batch(number) for number in range(file.num_record_batches)]
    for batch in batches:
        batch.validate(full=True)
    return names, batches


def _frame_at(path: Path) -> tuple[list[str], list[Mapping[str, Cells]]]:
    """The names of a frame's columns, and its cells, some rows at a time."""
    try:
        names, batches = frame_in(pa.memory_map(str(path)))
    except FileNotFoundError:
        raise missing_source_error(path, "what fit of a notebook wrote") from None
    except (*BROKEN, KeyError, pa.ArrowException):
        raise BadInput(f"{path} is not as fit of a notebook wrote it. Call fit again.") from None
    cells = [map(TextCells, batch.columns) for batch in batches]
    return names, [dict(zip(names, columns, strict=True)) for columns in cells]


def from_frame(path: Path, layout: Layout = PLAIN) -> Source:
    """A DataFrame that the notebook's class handed over. A row's cells are texts, or missing.

    Raises:
        BadInput: `fit` did not write it, or it lacks a column that the config names.
    """
    names, blocks = _frame_at(path)
    check_held(path, names, layout)
    chosen = features_in(path, names, layout)

    def read(number: int, wanted: Collection[str] | None, some: Mask) -> CellRows:
        columns = blocks[number]
        if some is not None:
            return CellRows(columns).some(some)
        return CellRows(columns, [cells.as_texts() for cells in columns.values()])

    return _features(_count_from([*map(_rows_in, blocks)]), read, chosen, names, layout)


def _rows_in(block: Mapping[str, Cells]) -> int:
    return len(next(iter(block.values())))


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
    """The object of one line; an empty one of what is no JSON, of no object, nested too deep, or
    says a name twice."""
    try:
        document = json.loads(
            line.decode("utf-8", "surrogateescape"),
            object_pairs_hook=object_of,
            # where one number is missing, pandas writes all others of its column as 3.0
            parse_float=lambda number: whole_as_int(float(number)),
        )
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _texts(rows: Sequence[Mapping[str, Any]], names: Mapping[str, str], path: Path) -> Source:
    """Texts as records. What is no string comes out empty, and so counts as nothing."""
    texts = [text_bytes(row.get(TEXT)) for row in rows]
    columns = record_columns(columns_of_roles(rows, names), path, len(rows))
    line = partial(_line, rows)
    return Source("texts", texts.__getitem__, **columns, line=line, line_is_all=True)


def _line(rows: Sequence[Mapping[str, Any]], index: int) -> bytes:
    """All that a line of JSON says."""
    try:
        return cell_as_text({name: cell for name, cell in rows[index].items() if name}).encode()
    except RecursionError:  # a list in a list in a list, and so on
        return b"[...]"


def columns_of_roles(
    rows: Sequence[Mapping[str, Any]], names: Mapping[str, str]
) -> dict[str, Sequence[Any]]:
    """The columns of these roles, as they are: names that are no UTF-8 tell people apart, too.

    Args:
        rows: by the names of their columns.
        names: from a role to the column that holds it.

    Returns:
        From each role to its values, one for each row.
    """
    return {role: [row.get(name) for row in rows] for role, name in names.items()}


def from_parquet(path: Path, layout: Layout = PLAIN) -> Source:
    """A parquet table of records.

    It has a label column, and optional ones of id, user, split and the declared group. Features are
    the chosen columns, or one list column named features, or all others that are no index of
    pandas'. Where a column is named text and none is chosen, that is what records are.

    Raises:
        BadInput: the file is missing or damaged, or lacks a column.
        Worded: a column that would be a feature is of words or dates, by the schema.
    """
    table = ParquetTable(path)
    names = table.names
    check_held(path, names, layout)
    columns_said = [name for name in names if name not in table.index]

    def read(number: int, wanted: Collection[str] | None, some: Mask) -> CellRows:
        columns = table.block(number, wanted)
        if some is not None:
            return CellRows(columns).some(some)
        return CellRows(columns, [columns[name].as_texts() for name in columns_said])

    if TEXT in names and not layout.columns:
        _check_texts(table.kind_of(TEXT), path)
        return _texts_or_files(
            table.counts, read, path, [name for name in names if name != PATH], layout
        )
    chosen = features_in(path, names if layout.columns else columns_said, layout)
    if list(chosen) != ["features"]:
        _check_numeric(chosen, table.schema, path, layout)
        return replace(
            _features(_count_from(table.counts), read, chosen, names, layout), names=columns_said
        )
    width = _width_of_lists(table.kind_of("features"), path)

    def read_lists(number: int, some: Mask) -> tuple[NDArray[np.float64], CellRows]:
        rows = read(number, None if some is None else {"features"}, some)
        return _matrix_of_lists(rows.columns["features"], width), rows

    roles = layout.columns_present(names)
    blocks = TableBlocks(_count_from(table.counts), read_lists, roles, layout.number_roles)
    return _source_of(blocks, width, columns_said)


class ParquetTable:
    """A parquet table, read a block of rows at a time.

    Args:
        path: of the file.

    Raises:
        BadInput: it is missing or damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._explain():
            self._file = pq.ParquetFile(path)
            self.schema = self._file.schema_arrow
            metadata = self._file.metadata
            groups = [metadata.row_group(at).num_rows for at in range(metadata.num_row_groups)]
            self.index = _index_of(self.schema)
        self.names: list[str] = self.schema.names
        refuse_names_twice(path, self.names)
        self._blocks = [
            (group, start, min(start + BLOCK_ROWS, rows))
            for group, rows in enumerate(groups)
            for start in range(0, rows, BLOCK_ROWS)
        ]
        self.counts = [end - start for _, start, end in self._blocks]
        self._group = lru_cache(maxsize=1)(self._read_group)

    def kind_of(self, name: str) -> Any:
        """The type of a column."""
        return self.schema.field(name).type

    def block(self, number: int, wanted: Collection[str] | None = None) -> dict[str, Cells]:
        """The cells of a block, by the name of their column.

        Args:
            number: of the block.
            wanted: the columns that are read; None for all.
        """
        group, start, end = self._blocks[number]
        names = tuple(name for name in self.names if wanted is None or name in wanted)
        with self._explain():
            table = self._group(group, names).slice(start, end - start)
            return {name: cells_of(table.column(name)) for name in names}

    def _read_group(self, group: int, names: tuple[str, ...]) -> Any:
        return self._file.read_row_group(group, columns=[*names])

    @contextmanager
    def _explain(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise missing_source_error(
                self.path, "a parquet table with a label column and numeric feature columns"
            ) from None
        except (*BROKEN, pa.ArrowException):
            raise BadInput(
                f"{self.path} is truncated, unreadable or not parquet. Write it again."
            ) from None


def blocks_in(path: Path) -> TableCells:
    """All columns of a table but those that number rows, some rows at a time.

    Args:
        path: of CSV, parquet or a frame, by its suffix.
    """
    if path.suffix == ".parquet":
        table = ParquetTable(path)
        names = [name for name in table.names if name not in table.index]
        blocks = (table.block(place, names) for place in range(len(table.counts)))
        return TableCells(names, sum(table.counts), blocks)
    if path.suffix == FRAME:
        names, frame = _frame_at(path)
        return TableCells(names, sum(map(_rows_in, frame)), iter(frame))
    rows = rows_of(path)
    names = [name for name in rows.names if name]
    return TableCells(
        names, rows.count, (rows.block(place, names).columns for place in rows.places)
    )


def columns_in(path: Path, number: str | None = None) -> TableColumns:
    """All columns of a table, each with its values as they are read.

    Args:
        path: of CSV, parquet or a frame, by its suffix.
        number: the column whose cells are read as numbers, too.
    """
    if path.suffix in (".parquet", FRAME):
        table = blocks_in(path)
        blocks = [*table.blocks]
        return TableColumns(_joined_values(blocks, table.names), _numbers(blocks, number))
    rows_of_file = rows_of(path)
    read = [rows_of_file.block(place) for place in rows_of_file.places]
    blocks = [block.columns for block in read]
    return TableColumns(
        _joined_values(blocks, [name for name in rows_of_file.names if name]),
        _numbers(blocks, number),
        [line for block in read for line in block.lines.tolist()],
        rows_of_file.unread,
        rows_of_file.spread,
    )


@dataclass(frozen=True)
class TableCells:
    """The cells of a table, some rows at a time. Private.

    Attributes:
        names: of its columns.
        count: of its rows.
        blocks: cells by the name of their column; they can be had once.
    """

    names: Sequence[str]
    count: int
    blocks: Iterator[Mapping[str, Cells]]


@dataclass(frozen=True)
class TableColumns:
    """The columns of a table, but for those that number rows. Private.

    Attributes:
        columns: from names to values.
        numbers: those that the cells of one column say; None where they are its values.
        first: of CSV the line that each row begins with; the header is line 1.
        unread: of CSV, lines that are no row, and count as nothing.
        spread: of CSV, of each row of several lines the first and the last one.
    """

    columns: Mapping[str, Sequence[Any]]
    numbers: Sequence[float] | None = None
    first: Sequence[int] = ()
    unread: Sequence[str] = ()
    spread: Sequence[str] = ()


def _joined_values(
    blocks: Iterable[Mapping[str, Cells]], names: Sequence[str]
) -> dict[str, list[Any]]:
    """The values of each column, one block after the other."""
    values: dict[str, list[Any]] = {name: [] for name in names}
    for block in blocks:
        for name, column in values.items():
            codes, different = values_of(block[name], as_numbers=False)
            column += [different[code] for code in codes]
    return values


def _numbers(blocks: Iterable[Mapping[str, Cells]], name: str | None) -> list[float] | None:
    """What the cells of one column say as numbers, one block after the other."""
    if name is None:
        return None
    return [value for block in blocks if name in block for value in block[name].numbers().tolist()]


def _index_of(schema: Any) -> list[str]:
    """The columns that hold a pandas index, which numbers rows and tells nothing about them."""
    pandas = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
    index = pandas.get("index_columns") if isinstance(pandas, dict) else None
    return [name for name in index if isinstance(name, str)] if isinstance(index, list) else []


def _check_numeric(chosen: Sequence[Chosen], schema: Any, path: Path, layout: Layout) -> None:
    """A date or a text among features would be dropped, or worse, be taken for a number. Levels may
    be of any type."""
    kinds = {
        name_of(column): schema.field(name_of(column)).type
        for column in chosen
        if isinstance(column, str) or not column.levels
    }
    wrong = [name for name, kind in kinds.items() if not _is_number(kind)]
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


def _is_number(kind: Any) -> bool:
    """Whether every cell of a type is a number, or missing."""
    numeric = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    return any(is_so(kind) for is_so in numeric)


def _width_of_lists(kind: Any, path: Path) -> int:
    """The numbers of each row of a list column, by the schema: no row's own length may decide it
    for the others."""
    if not (pa.types.is_fixed_size_list(kind) and _is_number(kind.value_type)):
        raise BadInput(
            f"{path}: features must be a fixed-size list column of numbers, or one column per "
            "feature."
        )
    return int(kind.list_size)


def _matrix_of_lists(cells: Cells, width: int) -> NDArray[np.float64]:
    """Rows of features, of which one that is missing holds no number."""
    none = [None] * width
    rows = [row or none for row in python_cells(cells.array)]
    return np.array(rows, np.float64).reshape(-1, width)


def _check_texts(kind: Any, path: Path) -> None:
    """Refuse a column of texts that holds something else, by the schema."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    types = pa.types
    strings = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    if not any(is_so(kind) for is_so in (*strings, types.is_null)):
        raise BadInput(f"{path}: the column {TEXT} holds {kind}. It must hold strings.")
