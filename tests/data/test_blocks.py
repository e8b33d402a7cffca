"""Tables are read a block at a time as they are read row by row (tests/plain_tables.py): the same
rows, cells, records, copies and conflicts, whatever stands in them and wherever a block ends."""

from __future__ import annotations

import datetime
import math
from collections import defaultdict
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from extracted import KEYS, dataset_of, extract_part, manifest_of, open_part
from hypothesis import example, given, settings
from hypothesis import strategies as st
from plain_tables import NO_ROW, PlainRecord, plain_number, plain_record, plain_table

from dpladder.config.dataset_sections import Column, Split, Unit
from dpladder.config.features_sections import Features
from dpladder.data import csv_rows, extract, tables
from dpladder.data.cells import TextCells, cells_of, joined, text_of, texts_of
from dpladder.data.columns import cell_as_text, is_missing, number_of
from dpladder.data.csv_rows import rows_of
from dpladder.data.prepare import Survey, survey
from dpladder.data.rows import COPY
from dpladder.errors import BadInput, Refused
from dpladder.privacy import piles

PIECES = ["a", "0", "1", ".5", "1,5", ",", ";", "\t", '"', '""', '","', "\n", "\r", "\r\n", " "]
STRANGE = ["\0", "\ufeff", "é", "\udcff", "nan", "1.0", "e+20", "\n\n"]
HEADERS = ["a,b,c", "a;b;c", "a\tb\tc", "a", 'a,"b",c', ",a,b", "a,,b,"]
BODY = st.lists(st.sampled_from([*PIECES, *STRANGE]), max_size=40).map("".join)
CELL = st.one_of(
    st.sampled_from(
        [
            *("", " ", "nan", "NaN ", "inf", "-inf", "-0.0", "0", "3", "3.0", "03.0", "1e308"),
            *("1e999", "1e+16", "1e16", "9007199254740993.0", "0.1", "1_0", "+1", " 1", "1,5"),
            *("\t1,5", "0x10", "None", "True", "é", "e\u0301", "\udcff", "\ud800", "a\nb", 'a"b'),
            *("1-2", "nan(1)", "\0", "\u2003", "\u0663", "1e5", "1e", ".", "\ufeff1"),
        ]
    ),
    st.text(max_size=4),
    st.floats().map(str),
    st.integers().map(str),
)


def cells_at(column: TextCells) -> list[str | None]:
    return [None if cell is None else text_of(cell) for cell in column.array.to_pylist()]


@settings(max_examples=200, deadline=None)
@given(header=st.sampled_from(HEADERS), end=st.sampled_from(["\n", "\r", "\r\n"]), body=BODY)
@example(header="a,b,c", end="\n", body='1,2,"3\n4,5,6\n7,8,"\n1,2,3\n')
@example(header="a,b,c", end="\n", body='"a""b",1,2\n"a"b,1,2\n"",1,2\n')
def test_rows_of_a_csv_come_in_blocks_as_they_come_one_by_one(
    header: str, end: str, body: str
) -> None:
    for size in (1, 7, 1 << 20):
        with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
            patch.setattr(csv_rows, "BLOCK", size)
            path = Path(folder) / "t.csv"
            path.write_bytes((header + end + body).encode("utf-8", "surrogateescape"))
            wanted, found = plain_table(path), rows_of(path)
            blocks = [found.block(place) for place in found.places]
            every_other = [
                found.block(place, None, np.arange(place.rows) % 2 == 1) for place in found.places
            ]
        assert found.names == wanted.names
        assert (found.unread, found.spread) == (wanted.unread, wanted.spread)
        assert [line for block in blocks for line in block.lines.tolist()] == wanted.first
        assert found.count == len(wanted.rows)
        for name in {*wanted.names}:
            read = [cell for block in blocks for cell in cells_at(block.columns[name])]
            assert read == [row[name] for row in wanted.rows]
        rest = [cell for block in blocks for cell in cells_at(TextCells(block.rest))]
        assert rest == [row.get(NO_ROW) for row in wanted.rows]
        for whole, some in zip(blocks, every_other, strict=True):
            assert some.lines.tolist() == whole.lines[1::2].tolist()
            for name in {*wanted.names}:
                assert cells_at(some.columns[name]) == cells_at(whole.columns[name])[1::2]


def test_what_arrow_does_not_read_is_read_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.csv"
    path.write_text('a,b,c\n1,"x,""y",3\n\n4,5\n6,7,8\n')

    def read() -> list[list[str | None]]:
        found = rows_of(path)
        (block,) = (found.block(place) for place in found.places)
        return [cells_at(column) for column in block.columns.values()]

    wanted = read()
    for broken in (lambda *_: pa.table({"0": [1]}), lambda *_: pa.array(["x"]).cast(pa.int8())):
        monkeypatch.setattr("pyarrow.csv.read_csv", broken)
        assert read() == wanted == [["1", "4", "6"], ['x,"y', "5", "7"], ["3", None, "8"]]


def test_a_table_that_is_written_while_it_is_read_ends_in_a_message(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n3,4\n")
    found = rows_of(path)
    (place,) = found.places
    assert len(found.block(place).lines) == 2
    path.write_text("a,b\n1,2\n")
    with pytest.raises(BadInput, match="was written while it was read"):
        found.block(place)


def same_number(one: float, other: float) -> bool:
    return (math.isnan(one) and math.isnan(other)) or str(one) == str(other)


@settings(max_examples=200, deadline=None)
@given(cells=st.lists(st.none() | CELL, max_size=8), comma=st.booleans())
def test_cells_of_texts_mean_what_each_means_alone(cells: list[str | None], comma: bool) -> None:
    cells = [None if cell is None else text_of(texts_of([cell])[0].as_py()) for cell in cells]
    column = TextCells(texts_of(cells), comma)
    assert [text_of(cell) for cell in column.as_texts().to_pylist()] == [
        cell_as_text(cell) for cell in cells
    ]
    assert column.missing().tolist() == [is_missing(cell) for cell in cells]
    wanted = [plain_number(cell, comma) for cell in cells]
    assert all(map(same_number, column.numbers().tolist(), wanted))
    codes, values = column.values()
    assert [values[code] for code in codes] == cells


ARRAYS = st.one_of(
    st.tuples(st.just(pa.float64()), st.lists(st.none() | st.floats())),
    st.tuples(
        st.just(pa.float64()),
        st.lists(st.floats(width=32) | st.integers(-(2**60), 2**60).map(float)),
    ),
    st.tuples(st.just(pa.float32()), st.lists(st.none() | st.floats(width=32))),
    st.tuples(st.just(pa.int64()), st.lists(st.none() | st.integers(-(2**63), 2**63 - 1))),
    st.tuples(st.just(pa.uint64()), st.lists(st.none() | st.integers(0, 2**64 - 1))),
    st.tuples(st.just(pa.bool_()), st.lists(st.none() | st.booleans())),
    st.tuples(st.just(pa.string()), st.lists(st.none() | st.text(max_size=3))),
    st.tuples(st.just(pa.large_string()), st.lists(st.none() | st.text(max_size=3))),
    st.tuples(st.just(pa.binary()), st.lists(st.none() | st.binary(max_size=3))),
    st.tuples(
        st.just(pa.decimal128(20, 3)),
        st.lists(st.none() | st.integers(-(10**9), 10**9).map(lambda one: Decimal(one) / 1000)),
    ),
    st.tuples(st.just(pa.date32()), st.lists(st.none() | st.dates())),
    st.tuples(
        st.just(pa.timestamp("us")),
        st.lists(st.none() | st.datetimes(datetime.datetime(1970, 1, 1))),
    ),
    st.tuples(st.just(pa.list_(pa.int64())), st.lists(st.none() | st.lists(st.integers(0, 3)))),
    st.tuples(st.just(pa.null()), st.lists(st.none())),
)


@settings(max_examples=200, deadline=None)
@given(typed=ARRAYS)
@example(typed=(pa.float64(), [1 / 3, 0.1, -2 / 3, 1e-5, 1e16, 123456.789]))
def test_cells_of_any_type_mean_what_each_means_alone(typed: tuple[Any, list[Any]]) -> None:
    kind, values = typed
    column = cells_of(pa.chunked_array([pa.array(values, kind, from_pandas=False)]))
    cells = pa.array(values, kind, from_pandas=False).to_pylist()
    assert [text_of(cell) for cell in column.as_texts().to_pylist()] == [
        cell_as_text(cell) for cell in cells
    ]
    assert column.missing().tolist() == [is_missing(cell) for cell in cells]
    assert all(map(same_number, column.numbers().tolist(), map(number_of, cells)))
    codes, different = column.values()
    assert [repr(different[code]) for code in codes] == [repr(cell) for cell in cells]


NAMES = ["age", "height", "colour", "label", "id", "user"]
FEATURES = NAMES[:3]
COLUMNS = (
    "age",
    Column(name="height", range=(0.0, 10.0), missing=4.0, mark_missing=True),
    Column(name="colour", levels=("red", "3", "0.1")),
)
VALUES = st.sampled_from(
    ["", "3", "3.0", "nan", "0.1", "red", " red", "well", "ill", "x", '"', "\n"]
)
TABLE = st.lists(st.tuples(*[VALUES] * len(NAMES)), max_size=12)
ROLES = [
    {},
    {"id": "id"},
    {"user": "user", "unit": Unit(by="user", cap=2)},
    {"id": "id", "user": "user", "unit": Unit(by="user", cap=2)},
]


def plainly(
    records: list[PlainRecord], ids: bool, users: bool
) -> tuple[dict[int, str], dict[Any, set[int]]]:
    """What is wrong with each row, and the rows of each unit. No cap is looked at."""
    records_of: dict[Any, list[int]] = defaultdict(list)
    units: dict[Any, set[int]] = defaultdict(set)
    labels: dict[int, int] = {}
    wrong: dict[int, str] = {}
    for index, one in enumerate(records):
        known = ("id", one.name) if ids and one.name else ("line", one.said)
        unit = ("user", one.user) if users and one.user else known
        units[unit].add(index)
        records_of[unit, known].append(index)
        labels[index] = one.label
        if (ids and not one.name) or (users and not one.user):
            labels[index] = -1
    for rows in records_of.values():
        alike = {(records[row].features, labels[row]) for row in rows}
        for row in rows if len(alike) > 1 else rows[1:]:
            wrong[row] = "differs" if len(alike) > 1 else "copy"
    return wrong, units


def seen(found: Survey) -> dict[int, str]:
    """What is wrong with each row that is not kept, as `plainly` has it."""
    words = {COPY: "copy", "differs from another row with its id": "differs"}
    return {row: words[check] for row, check in found.problems if check in words}


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@settings(max_examples=75, deadline=None)
@given(rows=TABLE, roles=st.sampled_from(ROLES), comma=st.booleans())
def test_records_copies_and_conflicts_of_blocks_are_those_of_rows(
    kind: str, rows: list[tuple[str, ...]], roles: dict[str, Any], comma: bool
) -> None:
    names = [name for name in NAMES if name in (*FEATURES, "label", *roles.values())]
    table = [dict(zip(NAMES, row, strict=True)) for row in rows]
    table = [{name: row[name] for name in names} for row in table]
    between = ";" if comma and kind == "csv" else ","
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_rows, "BLOCK", 20)
        patch.setattr(tables, "BLOCK_ROWS", 3)
        patch.setattr(piles, "BYTES_OF_A_PILE", 100)
        patch.setattr(piles, "BYTES_AT_ONCE", 40)
        path = Path(folder) / f"t.{kind}"
        if kind == "csv":
            cells = [names, *(row.values() for row in table)]
            quoted = (
                between.join('"' + cell.replace('"', '""') + '"' for cell in row) for row in cells
            )
            path.write_text("\n".join(quoted) + "\n")
        else:
            columns = {name: pa.array([row[name] for row in table], pa.string()) for name in names}
            for name in ("age", "height"):
                columns[name] = pa.array([number_of(row[name]) for row in table], pa.float64())
            numbers = [{name: number_of(row[name]) for name in ("age", "height")} for row in table]
            table = [row | more for row, more in zip(table, numbers, strict=True)]
            pq.write_table(pa.table(columns), path, row_group_size=4)
        dataset = dataset_of(
            f"{kind}:{path}",
            classes=("well", "ill", "3"),
            columns=COLUMNS,
            split=Split(test=0.0, validation=0.0),
            **roles,
        )
        found = survey(dataset, KEYS)
        units = {
            index: found.rows.unit[place].tobytes() for place, index in enumerate(found.rows.index)
        }
    records = [
        plain_record(row, COLUMNS, ("well", "ill", "3"), comma and kind == "csv") for row in table
    ]
    wrong, of_unit = plainly(records, "id" in roles, "user" in roles)
    assert seen(found) == wrong
    assert len(found.everybody) == len(of_unit)
    kept = {*range(len(table))} - {*wrong}
    over = {row for row, check in found.problems if check == "over its unit's cap"}
    assert {*found.rows.index.tolist()} == kept - over
    for of_one in of_unit.values():
        assert len(of_one & (kept - over)) == min(len(of_one & kept), dataset.unit.cap)
    for one in units:
        for other in units:
            together = any({one, other} <= rows for rows in of_unit.values())
            assert (units[one] == units[other]) == together
    for place, index in enumerate(found.rows.index):
        record = records[index]
        lacks = ("id" in roles and not record.name) or ("user" in roles and not record.user)
        assert found.rows.label[place] == (-1 if lacks else record.label)


def test_features_of_blocks_are_those_of_rows(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    cells = ["", "3", "3.0", "nan", "0.1", "red", "-7", "1e3", "x"]
    table = [dict(zip(NAMES, row, strict=True)) for row in random.choice(cells, (50, len(NAMES)))]
    lines = [",".join(NAMES), *(",".join(row.values()) for row in table)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(lines) + "\n")
    found = survey(dataset_of(f"csv:{path}", classes=("well", "ill"), columns=COLUMNS), KEYS)
    for index, row in enumerate(table):
        wanted = plain_record(row, COLUMNS, ("well", "ill"), False).features
        assert tuple(map(str, found.source.read(index).tolist())) == wanted


@pytest.mark.parametrize("one", [("ab", "c"), ("", "abc"), ("a", "bc")], ids=str)
def test_no_cell_of_a_row_runs_into_the_next(one: tuple[str, str]) -> None:
    columns = [texts_of([one[0], "abc"]), texts_of([one[1], ""])]
    offsets, data = joined(columns, 2)
    first, second = (bytes(data[start:end]) for start, end in pairwise(offsets.tolist()))
    assert first != second


def test_rows_of_many_bytes_are_joined_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = [texts_of(["a", "bcd", ""]), texts_of(["", "e", "f" * 100])]
    offsets, data = joined(columns, 3)
    monkeypatch.setattr("dpladder.data.cells.MOST_BYTES", 10)
    more, other = joined(columns, 3)
    assert offsets.tolist() == more.tolist()
    assert bytes(data) == bytes(other)


def test_features_of_a_table_are_those_of_its_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its blocks and shards are, and only while it says the same."""
    monkeypatch.setattr(csv_rows, "BLOCK", 50)
    monkeypatch.setattr(extract, "ROWS_AT_ONCE", 3)
    monkeypatch.setattr(piles, "BYTES_OF_A_PILE", 100)
    monkeypatch.setattr(piles, "BYTES_AT_ONCE", 40)
    path, features = tmp_path / "t.csv", Features(model="none", normalize=False)
    rows = [f"{place},{place % 7 - 3},{('well', 'ill', 'x')[place % 3]}" for place in range(40)]
    rows[5] = "1e999,1,well"
    path.write_text("\n".join(["age,height,label", *rows]) + "\n")
    dataset = dataset_of(
        f"csv:{path}",
        classes=("well", "ill"),
        columns=("age", "height"),
        split=Split(test=0.0, validation=0.0),
    )
    found = manifest_of(tmp_path, dataset)
    whole = open_part(extract_part(tmp_path, features))
    for place, index in enumerate(found.index.tolist()):
        counts = found.labels[place] >= 0 and index != 5
        wanted = [index, index % 7 - 3] if counts else [0, 0]
        assert whole.features[place].tolist() == wanted
        assert (whole.labels[place] >= 0) == counts
    shards = [
        open_part(extract_part(tmp_path, features, f"{shard}.h5", shard=shard, shards=3))
        for shard in range(3)
    ]
    assert np.array_equal(np.concatenate([one.features for one in shards]), whole.features)
    rows[7] = "8,0,ill"
    path.write_text("\n".join(["age,height,label", *rows]) + "\n")
    with pytest.raises(Refused, match="changed after its manifest was made"):
        extract_part(tmp_path, features, "again.h5")
    path.write_text("\n".join(["age,height,label", *rows[:5]]) + "\n")
    with pytest.raises(Refused, match="changed after its manifest was made"):
        extract_part(tmp_path, features, "again.h5")


def test_no_row_decides_how_many_piles_a_table_takes(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    rows = [f"{number},{number},well" for number in range(30_000)]
    for first in ("1,2,well", f"1,2,{'x' * 9_000_000}"):
        path.write_text("\n".join(["age,height,label", first, *rows]) + "\n")
        dataset = dataset_of(
            f"csv:{path}", classes=("well", "ill"), columns=("age", "height"), unit=Unit(cap=1)
        )
        source = survey(dataset, KEYS).source
        assert source.largest_count > len(source.labels) == 30_001
