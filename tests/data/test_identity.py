"""A record without an id is all that its source says of it, whatever a config reads of that."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from extracted import KEYS, dataset_of, manifest_of

from dpladder.config.dataset_sections import TrainedGroup
from dpladder.data.prepare import (
    Manifest,
    numbered_units,
    survey,
)

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
    assert [whole[row] for row in range(COUNT - 1)] == [
        known_as(rows)[row] for row in range(COUNT - 1)
    ]


def test_a_missing_number_is_known_alike_however_it_is_stored(tmp_path: Path) -> None:
    """As null, or as NaN, which one more null in the column makes a null of."""
    path, known = tmp_path / "table.parquet", []
    for missing in (np.nan, None):
        lost = pa.array([1.5, missing, 2.0], pa.float64(), from_pandas=False)
        columns = {"x": [1.0, 2.0, 3.0], "b": lost, "label": ["0", "1", "2"]}
        pq.write_table(pa.table(columns), path)
        known.append(where(manifest(tmp_path, f"parquet:{path}", columns=("x",))))
    assert known[0] == known[1]


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
    assert len(numbered_units(survey(dataset, KEYS))) == count
