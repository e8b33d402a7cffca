"""Columns as they were declared: levels, ranges, numbers; from parquet and csv alike, in training
and in use."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from support import ROOT

from dpladder.config.dataset_sections import Column
from dpladder.data import csv_rows, tables
from dpladder.data.column_report import columns_of, hint_at_encoding, lines
from dpladder.data.columns import column_as_json, matrix_of, restored_columns
from dpladder.data.datasets import open_source
from dpladder.data.inputs import open_inputs
from dpladder.data.layout import Layout
from dpladder.data.sources import text
from dpladder.errors import BadInput
from dpladder.use import graph, standalone

EXAMPLES = ROOT / "config" / "examples" / "tables"
DECLARED = (
    "visits",
    Column(name="age", range=(0.0, 100.0)),
    Column(name="colour", levels=("red", "green")),
)
TABLE = pd.DataFrame(
    {
        "name": ["a", "b", "c", "d"],
        "age": [0.0, 50.0, 250.0, None],
        "colour": ["red", "green", "mauve", None],
        "visits": [1, 2, 3, 4],
        "label": [0, 1, 0, 1],
    }
)
WANTED = [[1, -1, 1, 0], [2, 0, 0, 1], [3, 1, 0, 0], [4, np.nan, 0, 0]]


def written(folder: Path, kind: str, table: pd.DataFrame = TABLE) -> str:
    path = folder / f"table.{kind}"
    table.to_parquet(path) if kind == "parquet" else table.to_csv(path, sep=";")
    return f"{kind}:{path}"


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_columns_are_what_was_declared_of_them(tmp_path: Path, kind: str) -> None:
    source = open_source(written(tmp_path, kind), Layout(DECLARED))
    assert (source.kind, source.width) == ("features", 4)
    assert np.array([source.read(row) for row in range(4)]) == pytest.approx(
        np.array(WANTED), nan_ok=True
    )
    [own] = tmp_path.glob("table.*")
    used = open_inputs(
        own,
        Layout(restored_columns([column_as_json(column) for column in DECLARED]), labelled=False),
    )
    assert np.array([used.read(row) for row in range(4)]) == pytest.approx(
        np.array(WANTED), nan_ok=True
    )


def test_a_row_is_encoded_as_it_is_alone(tmp_path: Path) -> None:
    """No other record's value may scale it, or make a level."""
    alone = open_source(written(tmp_path, "parquet", TABLE.iloc[:1]), Layout(DECLARED))
    assert alone.read(0).tolist() == WANTED[0]


def test_whole_levels_are_found_where_pandas_made_floats_of_them(tmp_path: Path) -> None:
    table = pd.DataFrame({"stage": [1, 2, None], "label": [0, 1, 0]})
    source = open_source(
        written(tmp_path, "parquet", table), Layout((Column(name="stage", levels=("1", "2")),))
    )
    assert [source.read(row).tolist() for row in range(3)] == [[1, 0], [0, 1], [0, 0]]


def test_a_level_is_found_whatever_other_rows_lack(tmp_path: Path) -> None:
    """A float32 of 0.1 is a longer number as a float64. It must not become that where somebody
    without a dose joins: everybody's features would change."""
    layout = Layout((Column(name="dose", levels=("0.1", "0.2")),))
    doses = pa.array([0.1, 0.2, None], pa.float32())
    read = []
    for rows in (2, 3):
        pq.write_table(
            pa.table({"dose": doses[:rows], "label": [0, 1, 0][:rows]}), tmp_path / "t.parquet"
        )
        source = open_source(f"parquet:{tmp_path / 't.parquet'}", layout)
        read.append([source.read(row).tolist() for row in range(2)])
    assert read == [[[1, 0], [0, 1]]] * 2


@pytest.mark.parametrize("header", ['"age,label', 'label,"age', '"age\nvisits",label'])
def test_names_that_go_on_after_the_first_line_are_refused_and_no_row_is_told(
    header: str, tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_text(f"{header}\n3,secret\n4,secret\n")
    with pytest.raises(BadInput, match="opens a quote in its first line") as refused:
        open_source(f"csv:{tmp_path / 't.csv'}")
    assert "secret" not in str(refused.value)


def test_a_quote_within_a_name_opens_nothing(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('5" lesions,label\n3,a\n4,b\n')
    assert open_source(f"csv:{tmp_path / 't.csv'}").read(1).tolist() == [4.0]


def test_a_table_of_numbers_needs_no_names(tmp_path: Path) -> None:
    # the index has no name
    source = open_source(written(tmp_path, "csv", TABLE[["age", "visits", "label"]]))
    assert source.read(1).tolist() == [50.0, 2.0]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_column_that_is_not_there_is_named(tmp_path: Path, kind: str) -> None:
    with pytest.raises(BadInput, match=r"has no column height\. Name those") as error:
        open_source(written(tmp_path, kind), Layout((Column(name="height", range=(0.0, 3.0)),)))
    assert "name, age" in error.value.private


PATIENTS = pd.DataFrame(
    {
        "patient": ["p1", "p2", "p3", "p4"],
        "case": ["c1", "c2", "c3", "c4"],
        "sex": ["f", "m", "", "f"],
        "age": [40.0, None, 60.0, 70.0],
        "diagnosis": ["ill", "well", "ill", "other"],
    }
)
ROLES = {"label": "diagnosis", "id": "case", "user": "patient"}
NAMED = Layout(("age",), named=tuple(ROLES.items()))


@pytest.mark.parametrize("kind", ["parquet", "csv", "npz", "hdf5"])
def test_columns_of_any_name_are_labels_ids_and_users_where_the_config_says_so(
    kind: str, tmp_path: Path
) -> None:
    if kind in ("npz", "hdf5"):
        path = tmp_path / f"table.{kind}"
        arrays = {name: PATIENTS[name].to_numpy("S") for name in ROLES.values()}
        arrays["features"] = PATIENTS[["age"]].to_numpy()
        write_arrays(kind, path, arrays)
        source = open_source(f"{kind}:{path}", NAMED)
    else:
        source = open_source(written(tmp_path, kind, PATIENTS), NAMED)
    assert [text(label) for label in source.labels] == ["ill", "well", "ill", "other"]
    assert source.ids is not None
    assert [text(one) for one in source.ids] == ["c1", "c2", "c3", "c4"]
    assert source.users is not None
    assert text(source.users[0]) == "p1"
    assert source.read(0).tolist() == [40.0]


def write_arrays(kind: str, path: Path, arrays: dict[str, Any]) -> None:
    if kind == "npz":
        np.savez(path, **arrays)
        return
    with h5py.File(path, "w") as file:
        for name, values in arrays.items():
            file[name] = values


@pytest.mark.parametrize("declared", [True, False])
def test_lines_have_the_ids_and_users_that_the_config_names(declared: bool, tmp_path: Path) -> None:
    lines = [{"text": "a", "label": 0, "case": 1, "user": "u"}]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(line) for line in lines))
    named = (("id", "case"), ("user", "user")) if declared else ()
    source = open_source(f"jsonl:{tmp_path / 't.jsonl'}", Layout(named=named))
    assert (source.ids, source.users) == (([1], ["u"]) if declared else ([None], None))


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("role", [*ROLES])
def test_a_named_column_that_is_not_there_is_told_beside_all_that_are(
    role: str, kind: str, tmp_path: Path
) -> None:
    layout = Layout(("age",), named=tuple({**ROLES, role: "absent"}.items()))
    with pytest.raises(BadInput, match=rf"has no absent. .*dataset\.{role}") as error:
        open_source(written(tmp_path, kind, PATIENTS), layout)
    assert "patient, case, sex, age, diagnosis." in error.value.private


def test_arrays_whose_ids_alone_are_called_otherwise_keep_the_name_of_their_labels(
    tmp_path: Path,
) -> None:
    np.savez(tmp_path / "d.npz", features=np.ones((2, 3)), labels=[0, 1], patient=["a", "b"])
    source = open_source(f"npz:{tmp_path / 'd.npz'}", Layout(named=(("id", "patient"),)))
    assert [*source.labels] == [0, 1]
    assert [*map(str, source.ids or ())] == ["a", "b"]


@pytest.mark.parametrize("layout", [Layout(), Layout(("age",)), Layout(named=(("id", "case"),))])
def test_the_first_record_of_a_table_without_a_header_is_in_no_log(
    layout: Layout, tmp_path: Path
) -> None:
    """Its values stand where names should be."""
    (tmp_path / "table.csv").write_text("Jane Doe,47,ill\nJohn Roe,38,well\n")
    with pytest.raises(BadInput) as error:
        open_source(f"csv:{tmp_path / 'table.csv'}", layout)
    assert "Jane" not in str(error.value)
    assert error.value.private == "It holds Jane Doe, 47, ill."


def test_a_named_column_is_no_feature_in_training_nor_in_use(tmp_path: Path) -> None:
    layout = Layout(named=tuple(ROLES.items()))
    name = written(tmp_path, "csv", PATIENTS.drop(columns=["sex"]))  # the index has no name
    assert open_source(name, layout).width == 1
    used = open_inputs(tmp_path / "table.csv", replace(layout, labelled=False))
    assert used.width == 1
    assert used.ids is not None
    assert list(used.ids) == ["c1", "c2", "c3", "c4"]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_each_column_is_told_with_what_a_run_makes_of_it(kind: str, tmp_path: Path) -> None:
    layout = Layout(
        (
            Column(name="age", range=(0.0, 50.0)),
            Column(name="sex", levels=("f",)),
        ),
        named=tuple(ROLES.items()),
    )
    source = open_source(written(tmp_path, kind, PATIENTS), layout)
    filled = replace(layout, columns=(Column(name="age", range=(0.0, 50.0), missing=40.0),))
    said = "\n".join(lines(columns_of(source, filled), declared=True))
    assert "age: numbers, 25.0% missing; a feature, cut to 0 to 50, 40 where missing\n" in said
    told = "\n".join(lines(columns_of(source, layout), declared=True))
    assert "patient: words, 0.0% missing; the user of each record" in told
    assert (
        "age: numbers, 25.0% missing; a feature, cut to 0 to 50; 1 records count as nothing" in told
    )
    assert "sex: words, 25.0% missing; a feature for each of 1 levels; 2 records hold none" in told
    assert "propose" not in told
    assert "warning" not in told
    wrong = replace(layout, columns=(Column(name="sex", levels=("F", "m")),))
    last = [*lines(columns_of(source, wrong), declared=True)][-1]
    assert "warning  sex: no record holds F, and 3 hold no declared level" in last


def test_a_column_that_holds_whole_rows_of_features_is_told_of_nothing(tmp_path: Path) -> None:
    rows = pa.FixedSizeListArray.from_arrays(pa.array([1.0, 2.0, 3.0, 4.0]), 2)
    table = pa.table({"features": rows, "label": [0, 1]})
    pq.write_table(table, tmp_path / "t.parquet")
    source = open_source(f"parquet:{tmp_path / 't.parquet'}")
    assert source.read(1).tolist() == [3.0, 4.0]
    assert columns_of(source, Layout()) == []


def test_features_that_nobody_declared_are_proposed_without_a_value_of_the_data(
    tmp_path: Path,
) -> None:
    layout = Layout(named=tuple(ROLES.items()))
    source = open_source(written(tmp_path, "csv", PATIENTS), layout)
    told = "\n".join(lines(columns_of(source, layout), declared=False))
    assert "sex: words, 25.0% missing; a feature as it is; 4 records count as nothing" in told
    assert "dataset.columns: [{name: sex, levels: [...]}, age]" in told


def test_a_name_that_yaml_would_read_otherwise_is_proposed_in_quotes(tmp_path: Path) -> None:
    names = ["b: c", "x, y", "10", "{z}"]
    table = pd.DataFrame({name: [1, 2] for name in (*names, "label")}).set_index("label")
    layout = Layout()
    source = open_source(written(tmp_path, "csv", table), layout)
    told = "\n".join(lines(columns_of(source, layout), declared=False))
    assert yaml.safe_load(told.split("dataset.columns: ")[1]) == names


@pytest.mark.ci
def test_the_examples_are_read_as_the_page_says(tmp_path: Path) -> None:
    subprocess.run([sys.executable, EXAMPLES / "make_arrays.py", tmp_path], check=True)
    found = {
        name: open_source(f"{kind}:{folder / name}", Layout(columns))
        for folder, kind, name, columns in (
            (EXAMPLES, "csv", "images.csv", ()),
            (EXAMPLES, "csv", "texts.csv", ()),
            (EXAMPLES, "csv", "features.csv", DECLARED),
            (EXAMPLES, "jsonl", "texts.jsonl", ("id",)),
            (tmp_path, "npz", "features.npz", ()),
            (tmp_path, "npz", "images.npz", ()),
            (tmp_path, "hdf5", "features.h5", ()),
            (tmp_path, "parquet", "features.parquet", DECLARED[1:]),
        )
    }
    kinds = {name: source.kind for name, source in found.items()}
    assert kinds == {
        "images.csv": "files",
        "texts.csv": "texts",
        "features.csv": "features",
        "texts.jsonl": "texts",
        "features.npz": "features",
        "images.npz": "pixels",
        "features.h5": "features",
        "features.parquet": "features",
    }
    assert all(len(source.labels) in (2, 3) for source in found.values())
    assert list(found["images.csv"].users or ()) == ["anna", "anna", "ben"]


def test_what_cannot_be_a_feature_is_not_proposed(tmp_path: Path) -> None:
    """Numbers of visits, dates, names, free text and what is mostly missing."""
    rows = range(60)
    table = pd.DataFrame(
        {
            "visit": rows,
            "admitted": [f"2024-08-{1 + row % 28:02d}" for row in rows],
            "note": [f"seen with {row}" for row in rows],
            "rare": [1.5 if row < 20 else None for row in rows],
            "ward": ["east" if row % 2 else "west" for row in rows],
            "age": [row % 9 for row in rows],
            "label": [row % 2 for row in rows],
        }
    )
    source = open_source(written(tmp_path, "csv", table))
    told = "\n".join(lines(columns_of(source, Layout()), declared=False))
    assert "dataset.columns: [{name: ward, levels: [...]}, age]; left out: " in told
    assert "visit (a number for each row), admitted (dates)" in told
    assert "note (names or free text), rare (mostly missing)" in told
    source = open_source(written(tmp_path, "csv", table[["note", "label"]]))
    told = "\n".join(lines(columns_of(source, Layout()), declared=False))
    assert "nothing: no column looks like a feature: " in told
    assert told.endswith("Texts are read from a column that is called text")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_columns_are_told_alike_in_blocks_of_any_length(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = range(300)
    table = pd.DataFrame(
        {
            "visit": rows,
            "twice": [*range(299), 7],
            "size": [float(row) for row in rows],
            "day": [f"2024-08-{1 + row % 28:02d}" for row in rows],
            "late": [str(row) if row < 280 else "none" for row in rows],
            "few": ["east" if row % 2 else "west" for row in rows],
            "gap": [None if row < 40 else 1.5 for row in rows],
            "label": [row % 2 for row in rows],
        }
    )
    source = open_source(written(tmp_path, kind, table), FEW)
    whole = columns_of(source, FEW)
    told = {one.name: (one.unfit, one.words, one.lost) for one in whole}
    assert told == {
        "visit": ("a number for each row", 0, 0),
        "twice": (None, 0, 0),
        "size": (None, 0, 0),
        "day": ("dates", 1, 0),
        "late": ("names or free text", pytest.approx(20 / 300), 0),
        "few": (None, 1, 150),
        "gap": (None, 0, 0),
        "label": (None, 0, 0),
    }
    monkeypatch.setattr(csv_rows, "BLOCK", 500)
    monkeypatch.setattr(tables, "BLOCK_ROWS", 17)
    assert columns_of(source, FEW) == whole


FEW = Layout(restored_columns(["visit", {"name": "few", "levels": ["east"]}]))


SEMICOLONS = "größe;label\n1,5;1\n-2;0\n1,25e1;1\n1.000,5;0\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("between", [";", "\t"])
def test_a_spreadsheets_table_is_read_with_its_commas_and_its_encoding(
    between: str, encoding: str, tmp_path: Path
) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(SEMICOLONS.replace(";", between).encode(encoding))
    source = open_source(f"csv:{path}", Layout(("größe",)))
    found = [float(source.read(place)[0]) for place in range(4)]
    assert found[:3] == [1.5, -2.0, 12.5]
    assert np.isnan(found[3])
    told = [*lines(columns_of(source, Layout(("größe",))), True)]
    assert any("1 records count as nothing" in line for line in told)


def test_a_comma_is_no_decimal_where_commas_part_cells(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('x,label\n"1,5",1\n')
    source = open_source(f"csv:{tmp_path / 't.csv'}", Layout(("x",)))
    assert np.isnan(source.read(0)[0])


def test_a_table_that_is_no_utf_8_is_told_with_the_command_that_makes_it(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("sex,label\nmännlich,1\nweiblich,0\n".encode("cp1252"))
    source = open_source(f"csv:{path}", Layout(("sex",)))
    assert "1 lines are no UTF-8" in hint_at_encoding(source)
    assert "iconv -f WINDOWS-1252 -t UTF-8" in hint_at_encoding(source)
    path.write_text("sex,label\nmännlich,1\n", "utf-8")
    assert hint_at_encoding(open_source(f"csv:{path}", Layout(("sex",)))) == ""


FILLED = restored_columns(
    [
        {"name": "age", "range": [0.0, 100.0], "missing": 40.0, "mark_missing": True},
        {"name": "visits", "missing": 2.0},
    ]
)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_missing_number_counts_as_what_was_declared(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"t.{kind}"
    table = pd.DataFrame({"age": [None, 90.0, 40.0], "visits": [1.0, None, 3.0], "label": 0})
    table.to_parquet(path) if kind == "parquet" else table.to_csv(path, index=False)
    source = open_source(f"{kind}:{path}", Layout(FILLED))
    found = np.array([source.read(row) for row in range(3)])
    assert found == pytest.approx(np.array([[-0.2, 1, 1], [0.8, 0, 2], [-0.2, 0, 3]]))
    assert [one.lost for one in columns_of(source, Layout(FILLED))] == [0, 0, 0]
    rows = table.drop(columns="label")
    told = [column_as_json(column) for column in FILLED]
    assert standalone.rows_of(told, rows) == graph.rows_of(told, rows)
    assert np.array(graph.rows_of(told, rows)) == pytest.approx(found)


@pytest.mark.parametrize("blank", [None, "", " ", "nan", "NaN", float("nan"), pd.NA])
def test_exports_fill_in_what_training_fills_in(blank: Any) -> None:
    rows = [{"age": blank, "visits": 1.0}]
    told = [column_as_json(column) for column in FILLED]
    trained = matrix_of(FILLED, lambda name: [row[name] for row in rows]).tolist()
    assert standalone.rows_of(told, rows) == graph.rows_of(told, rows) == trained


def test_a_word_is_no_missing_number(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("age,visits,label\nold,1,0\n,1,0\n")
    source = open_source(f"csv:{tmp_path / 't.csv'}", Layout(FILLED))
    assert np.isnan(source.read(0)[0])
    assert source.read(1).tolist() == pytest.approx([-0.2, 1.0, 1.0])


@pytest.mark.parametrize(
    "column",
    [{"levels": ["a"], "missing": 1.0}, {"range": [0.0, 1.0], "mark_missing": True}],
)
def test_what_cannot_be_missing_is_refused(column: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="missing"):
        restored_columns([{"name": "x", **column}])
