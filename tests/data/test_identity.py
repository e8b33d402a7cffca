"""Without an id column, identical rows are one record, whatever a config reads of them."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from extracted import KEYS, dataset_of, manifest_of

from dpladder.config.dataset_sections import Column, TrainedGroup
from dpladder.data.columns import matrix_of
from dpladder.data.prepare import (
    Manifest,
    survey,
)
from dpladder.errors import BadInput

COUNT = 60
REGION = TrainedGroup(names=("north", "south"), column="region")
NUMBERS = {
    "other labels": {"label": "second", "columns": ("x", "a", "b")},
    "fewer classes": {"columns": ("x", "a"), "classes": 4},
    "a column": {"columns": ("a",)},
    "two columns": {"columns": ("b", "x")},
    "a list of classes": {"columns": ("x", "a", "b"), "classes": tuple("9876543210")},
    "groups": {"columns": ("x",), "group": REGION},
}
TEXTS = {"other labels": {"label": "second"}, "a list of classes": {"classes": tuple("9876543210")}}


def table() -> pd.DataFrame:
    random = np.random.default_rng(0)
    places = np.arange(COUNT)
    return pd.DataFrame(
        {
            "x": places,
            "a": places % 7,
            "b": random.normal(size=COUNT),
            "label": places % 10,
            "second": places % 3,
            "region": np.array(["north", "south"])[places % 2],
        }
    )


def manifest(folder: Path, source: str, **dataset: Any) -> Manifest:
    return manifest_of(folder, dataset_of(source, **{"classes": 10} | dataset))


def where(found: Manifest) -> dict[int, tuple[bytes, int]]:
    """The unit and the part of each row of the source."""
    columns = zip(found.index, found.units, found.parts, strict=True)
    return {int(index): (unit.tobytes(), int(part)) for index, unit, part in columns}


def check_alike(folder: Path, source: str, plain: dict[str, Any], other: dict[str, Any]) -> None:
    first, second = manifest(folder, source, **plain), manifest(folder, source, **other)
    assert where(first) == where(second)
    assert first.everybody == second.everybody


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("otherwise", NUMBERS.values(), ids=NUMBERS)
def test_what_an_experiment_reads_of_a_table_moves_no_record(
    suffix: str, otherwise: dict[str, Any], tmp_path: Path
) -> None:
    """Else the parts of two experiments overlap, and what was planned as disjoint adds up."""
    path = tmp_path / f"table.{suffix}"
    table().to_csv(path, index=False) if suffix == "csv" else table().to_parquet(path)
    check_alike(tmp_path, f"{suffix}:{path}", {"columns": ("x", "a", "b")}, otherwise)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("otherwise", TEXTS.values(), ids=TEXTS)
def test_what_an_experiment_reads_beside_texts_moves_no_record(
    kind: str, otherwise: dict[str, Any], tmp_path: Path
) -> None:
    rows = table().assign(text=[f"text {place % 50}" for place in range(COUNT)])
    path = tmp_path / f"texts.{kind}"
    if kind == "csv":
        rows.to_csv(path, index=False)
    elif kind == "parquet":
        rows.to_parquet(path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows.to_dict("records")))
    check_alike(tmp_path, f"{kind}:{path}", {}, otherwise)


def test_what_an_experiment_reads_of_arrays_moves_no_record(tmp_path: Path) -> None:
    rows, path = table(), tmp_path / "arrays.npz"
    np.savez(path, features=rows[["x", "b"]].to_numpy(), labels=rows.label, others=rows.second)
    check_alike(tmp_path, f"npz:{path}", {}, {"label": "others"})
    check_alike(tmp_path, f"npz:{path}", {}, {"classes": tuple("9876543210")})


def test_other_records_are_other_units(tmp_path: Path) -> None:
    path, columns = tmp_path / "table.csv", ("x", "a")
    table().to_csv(path, index=False)
    whole = manifest(tmp_path, f"csv:{path}", columns=columns).everybody
    table()[1:].to_csv(path, index=False)
    assert manifest(tmp_path, f"csv:{path}", columns=columns).everybody != whole
    table().iloc[::-1].to_csv(path, index=False)
    assert manifest(tmp_path, f"csv:{path}", columns=columns).everybody == whole


@pytest.mark.parametrize("named", [{}, {"id": "second"}, {"user": "second"}], ids=str)
@pytest.mark.parametrize("lost", ["x", "a", "b", "label", "second"])
@pytest.mark.parametrize("suffix", ["parquet", "npz"])
def test_what_a_row_lacks_decides_nothing_about_others(
    suffix: str, lost: str, named: dict[str, str], tmp_path: Path
) -> None:
    """Where a number is missing, pandas and NumPy make floats of all other integers of its column.
    All records would be others, in other parts, because of what one of them lacks."""
    path, columns = tmp_path / f"table.{suffix}", ["x", "a", "b"]
    rows = table().assign(second=range(100, 100 + COUNT)).drop(columns="region")

    def known_as(rows: pd.DataFrame) -> dict[int, tuple[bytes, int]]:
        if suffix == "parquet":
            rows.to_parquet(path)
        else:
            beside = {name: rows[name].to_numpy() for name in ("x", "second")}
            features, labels = rows[columns].to_numpy(), rows.label.to_numpy()
            np.savez(path, features=features, labels=labels, **beside)
        taken = {"columns": tuple(columns)} if suffix == "parquet" else {}
        return where(manifest(tmp_path, f"{suffix}:{path}", **taken, **named))

    whole = known_as(rows)
    rows[lost] = rows[lost].astype(float)
    rows.loc[COUNT - 1, lost] = np.nan
    without = known_as(rows)
    assert [whole[row] for row in range(COUNT - 1)] == [without[row] for row in range(COUNT - 1)]


def test_a_missing_number_is_known_alike_however_it_is_stored(tmp_path: Path) -> None:
    """As null, or as NaN, which one more null in the column makes a null of."""
    path, known = tmp_path / "table.parquet", []
    for missing in (np.nan, None):
        lost = pa.array([1.5, missing, 2.0], pa.float64(), from_pandas=False)
        columns = {"x": [1.0, 2.0, 3.0], "b": lost, "label": ["0", "1", "2"]}
        pq.write_table(pa.table(columns), path)
        known.append(where(manifest(tmp_path, f"parquet:{path}", columns=("x",))))
    assert known[0] == known[1]


def arrays_in(folder: Path, kind: str, **arrays: Any) -> str:
    path = folder / f"arrays.{kind}"
    if kind == "npz":
        np.savez(path, **arrays)
    else:
        with h5py.File(path, "w") as file:
            for name, array in arrays.items():
                texts = np.asarray(array).dtype.kind == "U"
                file[name] = np.asarray(array, h5py.string_dtype()) if texts else array
    return f"{kind}:{path}"


@pytest.mark.parametrize("kind", ["npz", "hdf5"])
def test_how_many_records_there_are_decides_no_record_by_an_array_beside_them(
    kind: str, tmp_path: Path
) -> None:
    """An array with a number for each feature is as long as the records once they are so many."""
    features, known = np.random.default_rng(0).normal(size=(65, 64)), []
    for count in (64, 65):
        rows = {"features": features[:count], "labels": np.arange(count) % 2}
        source = arrays_in(tmp_path, kind, **rows, scale=np.arange(64.0))
        known.append(where(manifest(tmp_path, source)))
    assert {row: place for row, place in known[1].items() if row < 64} == known[0]


@pytest.mark.parametrize("kind", ["npz", "hdf5"])
def test_an_array_of_records_by_its_name_has_a_value_for_each(kind: str, tmp_path: Path) -> None:
    rows = {"features": np.eye(5), "second": np.arange(5)}
    source = arrays_in(tmp_path, kind, **rows, labels=np.arange(4))
    with pytest.raises(BadInput, match="differ in length"):
        manifest(tmp_path, source, label="second")


@pytest.mark.parametrize("kind", ["npz", "hdf5"])
@pytest.mark.parametrize("values", [np.arange(70) % 2 == 0, np.zeros(70, "M8[D]").astype("V8")])
def test_values_of_records_are_numbers_truths_or_texts(
    values: Any, kind: str, tmp_path: Path
) -> None:
    source = arrays_in(tmp_path, kind, features=np.eye(70), labels=values)
    if values.dtype.kind == "b":
        assert set(manifest(tmp_path, source).labels) == {0, 1}
        return
    with pytest.raises(BadInput, match="labels must have a number, a truth value or a text"):
        manifest(tmp_path, source)


VALUES = {
    "whole": np.arange(COUNT) % 7,
    "floats": (np.arange(COUNT) % 7).astype(float),
    "decimals": np.arange(COUNT) / 8 + 0.1,
    "singles": (np.arange(COUNT) / 8 + 0.1).astype(np.float32),
    "truths": np.arange(COUNT) % 2 == 0,
    "texts": np.array([f"p{place}" for place in range(COUNT)]),
}


def with_one(values: Any, other: Any) -> Any:
    """Values of which the last is another one, and what that makes of the others, as NumPy has
    it."""
    return np.array([*values[:-1], other])


@pytest.mark.few(12)
@pytest.mark.parametrize("name", ["labels", "users", "ids", "splits"])
@pytest.mark.parametrize("other", ["word", 2.5, np.nan, 3], ids=str)
@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("kind", ["npz", "hdf5"])
def test_what_one_value_makes_of_the_type_of_an_array_moves_no_other_record(
    kind: str, values: Any, other: Any, name: str, tmp_path: Path
) -> None:
    rows = {"features": np.eye(COUNT), "labels": np.zeros(COUNT)}
    before, after = (
        manifest(tmp_path, arrays_in(tmp_path, kind, **rows | {name: array}))
        for array in (values, with_one(values, other))
    )
    known = where(after)
    assert all(known[row] == place for row, place in where(before).items() if row < COUNT - 1)
    assert labels_by_row(before)[:-1] == labels_by_row(after)[:-1]


def labels_by_row(found: Manifest) -> list[int]:
    return found.labels[np.argsort(found.index)].tolist()


@pytest.mark.parametrize("labels", [2, "many"])
def test_one_word_among_rows_of_labels_changes_what_no_other_row_says(
    labels: Any, tmp_path: Path
) -> None:
    rows = np.eye(3, dtype=np.int64)[np.arange(COUNT) % 3]
    texts = rows.astype(str)
    texts[-1] = "word"
    before, after = (
        labels_by_row(
            manifest(
                tmp_path,
                arrays_in(tmp_path, "npz", features=np.eye(COUNT), labels=array),
                classes=3,
                labels=labels,
            )
        )
        for array in (rows, texts)
    )
    assert before[:-1] == after[:-1]
    assert (after[-1] >= 0) == (labels == "many")  # a name of no class is another finding


@pytest.mark.parametrize("named", [{}, {"id": "second"}, {"user": "second"}], ids=str)
@pytest.mark.parametrize("lost", ["x", "b", "label", "second"])
@pytest.mark.parametrize("other", ["word", 2.5])
@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
@pytest.mark.few(9)
def test_what_one_value_makes_of_the_type_of_a_column_moves_no_other_record(
    suffix: str, other: Any, lost: str, named: dict[str, str], tmp_path: Path
) -> None:
    """One number that is missing makes floats of a column, and one word makes texts of floats."""
    path = tmp_path / f"table.{suffix}"
    rows = table().assign(second=range(100, 100 + COUNT), text=[f"t{one}" for one in range(COUNT)])

    def known_as(rows: pd.DataFrame) -> dict[int, tuple[bytes, int]]:
        if suffix == "parquet":
            rows.to_parquet(path)
        elif suffix == "csv":
            rows.to_csv(path, index=False)
        else:
            lines_of(path, *rows.to_dict("records"))
        return where(manifest(tmp_path, f"{suffix}:{path}", **named))

    whole = known_as(rows)
    others = [*rows[lost].astype(float)[:-1], other]
    rows[lost] = [*map(str, others)] if other == "word" else others
    changed = known_as(rows)
    assert [whole[row] for row in range(COUNT - 1)] == [changed[row] for row in range(COUNT - 1)]


def test_a_line_that_is_nested_deeper_than_python_follows_stops_nothing(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    for depth in (300, 600, 900, 960, 990):
        deep = "[" * depth + "]" * depth
        path.write_text(f'{{"text": "a", "label": 1}}\n{{"text": "b", "label": 1, "x": {deep}}}\n')
        assert len(manifest(tmp_path, f"jsonl:{path}").labels) == 2


def test_a_level_is_read_by_its_value_alone() -> None:
    """Where one code is missing, pandas writes all others as 3.0."""
    column = Column(name="code", levels=("3", "10", "0.1"))
    for written in (["3", "10", "0.1"], ["3.0", "10.0", "0.1"], [3, 10.0, np.float32(0.1)]):
        assert matrix_of([column], lambda _, cells=written: cells).tolist() == np.eye(3).tolist()


def test_decimals_are_known_alike_whatever_others_hold(tmp_path: Path) -> None:
    path, known = tmp_path / "table.parquet", []
    for last in ("3", "3.25"):
        numbers = [Decimal(f"{place}.5") for place in range(1, 9)] + [Decimal(last)]
        columns = {"x": range(9), "b": numbers, "label": range(9)}
        pq.write_table(pa.table({name: pa.array(column) for name, column in columns.items()}), path)
        known.append(where(manifest(tmp_path, f"parquet:{path}", columns=("x",))))
    assert all(known[0][row] == known[1][row] for row in range(8))


def test_a_column_that_numbers_rows_is_no_part_of_a_record(tmp_path: Path) -> None:
    """One row more would renumber all behind it, and move them to other parts."""
    rows = table().assign(x=0, a=0, b=0, label=1, second=0, region="north")
    for suffix in ("csv", "parquet"):
        path = tmp_path / f"table.{suffix}"
        rows.to_csv(path) if suffix == "csv" else rows.to_parquet(path, index=True)
        assert len(manifest(tmp_path, f"{suffix}:{path}", columns=("x",)).labels) == 1


def test_rows_that_differ_only_beside_what_is_read_are_different_records(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    table().to_csv(path, index=False)
    assert len(manifest(tmp_path, f"csv:{path}", columns=("a",)).labels) == COUNT


def lines_of(path: Path, *rows: dict[str, object]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return f"jsonl:{path}"


def test_equal_lines_of_json_are_two_records_where_each_has_an_id(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    same = {"text": "yes", "label": 1}
    unasked = manifest(tmp_path, lines_of(path, {"id": "a", **same}, {"id": "b", **same}))
    assert (unasked.labels == 1).sum() == 2
    declared = manifest(tmp_path, f"jsonl:{path}", id="id")
    assert where(unasked) == where(declared)


def test_a_line_of_json_without_an_id_decides_nothing_about_others(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    rows = [{"text": f"text {place}", "label": 1, "id": place} for place in range(5)]
    before = where(manifest(tmp_path, lines_of(path, *rows)))
    mixed = manifest(tmp_path, lines_of(path, *rows, {"text": "text 5", "label": 2}))
    assert {place: found for place, found in where(mixed).items() if place < 5} == before
    assert (mixed.labels >= 0).sum() == 6
    declared = manifest(tmp_path, f"jsonl:{path}", id="id")
    assert (declared.labels >= 0).sum() == 5


@pytest.mark.parametrize(
    ("ids", "count"),
    [
        (["1", "2.0", "row-17", "P00017", "999999"], 5),
        (["1234567", "a1b2", "anna", "0001234567", "2019-04-11"], 0),
    ],
)
def test_ids_that_any_table_may_have_are_numbered(
    ids: list[str], count: int, tmp_path: Path
) -> None:
    path = tmp_path / "table.csv"
    pd.DataFrame({"id": ids, "x": range(len(ids)), "label": 1}).to_csv(path, index=False)
    dataset = dataset_of(f"csv:{path}", classes=10, columns=("x",))
    assert len(survey(dataset, KEYS).numbered) == count
