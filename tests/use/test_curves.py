"""A released model of a table tells its curves, and each prediction as a sum over columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpladder
from dpladder.cli import main
from dpladder.config.curves import curves_of
from dpladder.config.features_sections import Features
from dpladder.data.backbones import encoder
from dpladder.data.centre import Map
from dpladder.data.columns import restored_columns
from dpladder.data.sources import Source
from dpladder.learn import weights

COLUMNS = [{"name": "age", "range": [0.0, 100.0]}, {"name": "sex", "levels": ["f", "m"]}]
CROSSES = [("age", "sex")]
PEOPLE = pd.DataFrame({"sex": ["f", "m", "f"], "age": [3.0, 50.0, 99.0], "other": 1})


def model_of(folder: Path, **changes: Any) -> Path:
    """A file such as train_final writes, of random weights."""
    random, features = np.random.default_rng(0), Features(model="none")
    mapped = Map(None, None, None, 0.0, curves=curves_of(restored_columns(COLUMNS), 4, CROSSES))
    public = encoder(features, Source("features", bytes, (), width=3), 1)
    inference = {
        "classes": ["well", "ill"],
        "columns": COLUMNS,
        "network": {**public.facts, **features.model_dump(mode="json"), "width": 3},
        "map": mapped.facts,
    }
    config = {
        "dataset.lineage": "people",
        "dataset.unit": {"by": "record", "cap": 1},
        "privacy.relation": "add_remove",
        "privacy.delta": 1e-6,
        "features.typical": 1.0,
        "learner": {"name": "dp_gd"},
        "monotone": {"age": "up"},
    }
    inference |= changes
    head = random.normal(size=(len(inference["classes"]), mapped.width(3) + 1)).astype(np.float32)
    facts = {"inference": inference, "config": config, "kappa": 0.5}
    path = folder / "weights.safetensors"
    weights.save(path, (head,), facts | {"target_epsilon": 1.0, "steps": 30})
    return path


def test_what_each_column_adds_comes_to_the_log_odds(tmp_path: Path, capsys: Any) -> None:
    file = model_of(tmp_path)
    model = dpladder.load(file)
    odds = np.log(model.predict_proba(PEOPLE))
    explained = model.explain(PEOPLE)
    assert [*explained] == ["base", "age", "sex", "age x sex"]
    assert explained.sum(axis=1).to_numpy() == pytest.approx(odds[:, 1] - odds[:, 0], abs=1e-5)
    PEOPLE.to_csv(tmp_path / "new.csv", index=False)
    assert main(["predict", str(file), str(tmp_path / "new.csv"), "--explain"]) == 0
    head, first, *_ = capsys.readouterr().out.splitlines()
    assert head.endswith("p(well),p(ill),base,age,sex,age x sex")
    assert [*map(float, first.split(",")[-4:])] == pytest.approx(
        explained.iloc[0].to_numpy(), abs=1e-3
    )


def test_a_number_is_explained_in_its_own_unit(tmp_path: Path) -> None:
    model = dpladder.load(model_of(tmp_path, classes=["stay"], range=[0.0, 1e6]))
    predicted = model.predict(PEOPLE).numbers
    assert predicted is not None
    inside = (predicted > 0) & (predicted < 1e6)
    assert inside.any()
    explained = model.explain(PEOPLE).sum(axis=1).to_numpy()
    assert explained[inside] == pytest.approx(predicted[inside], rel=1e-5)


def test_an_export_and_a_notebook_have_the_curves(tmp_path: Path) -> None:
    file = model_of(tmp_path)
    assert main(["export", str(file), str(tmp_path / "out")]) == 0
    table = pd.read_csv(tmp_path / "out" / "curves.csv")
    told = dpladder.load(file).curves()
    assert [*table] == ["column", "at", "of", "effect", "sd"]
    assert table.effect.to_numpy() == pytest.approx(told.effect.to_numpy())
    assert {*table.column} == {"age", "sex", "age x sex"}
    assert {*table.of} == {"ill"}
    assert "age x sex" in (tmp_path / "out" / "curves.svg").read_text()
    card = (tmp_path / "out" / "README.md").read_text()
    assert "curves.svg and curves.csv" in card
    assert "one way alone, as the config says: age up." in card


def test_what_is_no_sum_says_so(tmp_path: Path, capsys: Any) -> None:
    file = model_of(tmp_path, columns=["age", "f", "m"])
    PEOPLE.assign(f=0, m=1).to_csv(tmp_path / "new.csv", index=False)
    assert main(["predict", str(file), str(tmp_path / "new.csv"), "--explain"]) == 2
    assert "is no sum over the columns of a table" in capsys.readouterr().err
