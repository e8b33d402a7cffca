"""Columns as they were declared: levels, ranges, numbers; from parquet and csv alike, in training
and in use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support import ROOT

from dpladder.config.load import resolve
from dpladder.config.model import Column
from dpladder.data.columns import plain, restored_columns
from dpladder.data.datasets import open_source
from dpladder.data.inputs import open_inputs
from dpladder.errors import BadInput

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
    source = open_source(written(tmp_path, kind), DECLARED)
    assert (source.kind, source.width) == ("features", 4)
    assert np.array([source.read(row) for row in range(4)]) == pytest.approx(
        np.array(WANTED), nan_ok=True
    )
    [own] = tmp_path.glob("table.*")
    used = open_inputs(own, restored_columns([plain(column) for column in DECLARED]))
    assert np.array([used.read(row) for row in range(4)]) == pytest.approx(
        np.array(WANTED), nan_ok=True
    )


def test_a_row_is_encoded_as_it_is_alone(tmp_path: Path) -> None:
    """No other record's value may scale it, or make a level."""
    alone = open_source(written(tmp_path, "parquet", TABLE.iloc[:1]), DECLARED)
    assert alone.read(0).tolist() == WANTED[0]


def test_whole_levels_are_found_where_pandas_made_floats_of_them(tmp_path: Path) -> None:
    table = pd.DataFrame({"stage": [1, 2, None], "label": [0, 1, 0]})
    source = open_source(
        written(tmp_path, "parquet", table), (Column(name="stage", levels=("1", "2")),)
    )
    assert [source.read(row).tolist() for row in range(3)] == [[1, 0], [0, 1], [0, 0]]


def test_a_table_of_numbers_needs_no_names(tmp_path: Path) -> None:
    # the index has no name
    source = open_source(written(tmp_path, "csv", TABLE[["age", "visits", "label"]]))
    assert source.read(1).tolist() == [50.0, 2.0]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_column_that_is_not_there_is_named(tmp_path: Path, kind: str) -> None:
    with pytest.raises(BadInput, match=r"has no column height\. It holds .*name, age"):
        open_source(written(tmp_path, kind), (Column(name="height", range=(0.0, 3.0)),))


@pytest.mark.parametrize(
    ("columns", "wrong"),
    [
        ([{"name": "age", "range": [5, 5]}], r"columns\[0\].range: given .* must be \[smallest"),
        ([{"name": "age", "range": [0, 5], "levels": ["a"]}], "not both"),
        ([{"name": "age", "levels": ["a", "a"]}], r"columns\[0\].levels: given .* each level once"),
        (["age", {"name": "age"}], "each column once"),
    ],
)
def test_what_cannot_be_meant_of_a_column_is_refused(columns: Any, wrong: str) -> None:
    dataset = {
        "lineage": "x",
        "source": "parquet:x",
        "nominal_size": 100,
        "classes": 2,
        "columns": columns,
    }
    with pytest.raises(BadInput, match=wrong):
        resolve(
            {
                "dataset": dataset,
                "features": {"model": "none"},
                "privacy": {"epsilon": 1.0, "delta": 1e-5},
            }
        )


def test_the_examples_are_read_as_the_page_says(tmp_path: Path) -> None:
    subprocess.run([sys.executable, EXAMPLES / "make_arrays.py", tmp_path], check=True)
    found = {
        name: open_source(f"{kind}:{folder / name}", columns)
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
