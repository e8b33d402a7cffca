"""Whole runs that learn a number: a table of users and groups, and images in folders."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from PIL import Image
from safetensors.numpy import load_file

from dpladder.cli import main

pytestmark = pytest.mark.ci
PRIVACY = {"epsilon": 4.0, "delta": 1e-5}


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPLADDER_HOME", str(tmp_path / "home"))


def finish(config: dict[str, Any]) -> dict[str, Any]:
    Path("config.yaml").write_text(yaml.safe_dump(config))
    assert main(["run", "config.yaml"]) == 0
    assert main(["verify", "results"]) == 0
    summary: dict[str, Any] = json.loads(Path("results/main/summary.json").read_text())
    return summary


def write_table(path: Path, rows: int = 4000) -> None:
    random = np.random.default_rng(0)
    age, visits = random.uniform(0, 100, rows), random.integers(0, 10, rows)
    stay = 2 + 0.2 * age + visits + random.normal(size=rows)
    where = random.choice(["north", "south"], rows)
    told = [f"{days:.3f}".replace(".", ",") for days in stay]
    told[::50], told[1::50] = ["unknown"] * len(told[::50]), ["-7"] * len(told[1::50])
    pd.DataFrame({"age": age.round(3), "visits": visits, "stay": told, "place": where}).assign(
        patient=np.arange(rows) // 2
    ).to_csv(path, sep=";", index=False)


def test_a_table_of_users_and_groups_gives_a_verified_model(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_table(Path("stays.csv"))
    config = {
        "dataset": {
            "lineage": "stays",
            "source": "csv:stays.csv",
            "columns": [
                {"name": "age", "range": [0, 100]},
                {"name": "visits", "range": [0, 10]},
            ],
            "target": {"column": "stay", "range": [0, 40], "error": 10, "unit": "days"},
            "user": "patient",
            "unit": {"by": "user", "cap": 2},
            "group": {"names": ["north", "south"], "column": "place"},
            "nominal_size": 1600,
        },
        "features": {"model": "none"},
        "privacy": PRIVACY | {"epsilon": 12.0},
        "sweep": {"rungs": [{"epsilon": 1.0, "trials": 2}]},
        "evaluate": {"measures": ["rmse", "mae", "r2", "groups"]},
    }
    Path("config.yaml").write_text(yaml.safe_dump(config))
    assert main(["check", "config.yaml"]) == 0
    told = capfd.readouterr().out
    assert "target is missing, or no finite number: 80 " in told
    assert "target lies below its range, and counts as its least number: 80 " in told
    [final] = finish(config)["targets"]
    test = final["test"]
    assert test["range"] == [0.0, 40.0]
    assert 0.5 < test["figures"]["rmse"]["value"] < 4.0
    squares = test["figures"]["r2"]
    assert squares is None or squares["value"] > 0.5  # noise may hide it
    assert [group["name"] for group in test["groups"]] == ["north", "south"]
    page = Path("results/report.html").read_text()
    assert "RMSE of the final model" in page
    assert "predicts stay, from 0 to 40" in page
    table = pd.read_csv("stays.csv", sep=";").drop(columns=["stay"])
    table.to_csv("new.csv", index=False)
    capfd.readouterr()
    assert main(["predict", "results/main", "new.csv", "--output", "said.csv"]) == 0
    said = pd.read_csv("said.csv")
    assert said.stay.between(0, 40).all()
    assert np.corrcoef(said.stay, 0.2 * table.age + table.visits)[0, 1] > 0.9
    for form in ("torch", "onnx"):
        assert main(["export", "results/main", form, "--to", form]) == 0
    row = {"age": 50.0, "visits": 5}
    expected = said.stay[((table.age - 50).abs() + (table.visits - 5).abs()).idxmin()]
    for form, code in (
        ("torch", "import model; print(model.load('.').classify([ROW])[0]['stay'])"),
        ("onnx", "import graph; print(graph.classify('.', [ROW])[0]['stay'])"),
    ):
        ended = subprocess.run(
            [sys.executable, "-c", code.replace("ROW", repr(row))],
            cwd=form,
            capture_output=True,
            text=True,
            check=True,
        )
        assert abs(float(ended.stdout) - expected) < 0.5
    card = Path("torch/README.md").read_text()
    assert "It predicts stay, from 0 to 40." in card
    assert re.search(r"RMSE: \S+ \(\S+\) days", card)


@pytest.mark.long
def test_folders_of_images_whose_names_are_numbers_are_learnt_by_descent(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    for place in range(240):
        shade = place % 6
        folder = Path("shades") / str(shade / 2)
        folder.mkdir(parents=True, exist_ok=True)
        pixels = random.integers(0, 30, (32, 32), np.uint8) + np.uint8(40 * shade)
        Image.fromarray(pixels).save(folder / f"{place}.png")
    Path("shades/dark").mkdir()
    Image.fromarray(np.zeros((32, 32), np.uint8)).save("shades/dark/no-number.png")
    summary = finish(
        {
            "dataset": {
                "lineage": "shades",
                "source": "folder:shades",
                "target": {"range": [0, 2.5]},
                "nominal_size": 190,
            },
            "features": {"image_size": 32},
            "privacy": PRIVACY | {"epsilon": 200.0},
            "evaluate": {"measures": "r2"},
        }
    )
    assert summary["learner"] == "dp_gd"
    [final] = summary["targets"]
    assert final["test"]["figures"]["r2"]["value"] > 0.3
    weights = load_file("results/main/final/200/weights.safetensors")
    assert [layer.shape[0] for name, layer in weights.items() if name.startswith("layers")] == [1]
