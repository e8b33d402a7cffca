"""A whole run whose final model is calibrated, and whose test says how sure it is: the statement
names what that took, the page draws it, and each door has the same probabilities."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from support import write_ill_or_well

import dpladder
from dpladder.cli import main
from dpladder.learn import weights

pytestmark = pytest.mark.ci
MODEL = "results/main/final/2/weights.safetensors"


def test_a_calibrated_model_says_what_its_probabilities_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPLADDER_HOME", str(tmp_path / "home"))
    truth = write_ill_or_well(Path("rows.csv"), (2.0, 1.0, 0.0), -2.0)
    ranged = [{"name": name, "range": [-1, 1]} for name in "abc"]
    config = {
        "dataset": {
            "lineage": "rows",
            "source": "csv:rows.csv",
            "columns": ranged,
            "classes": ["well", "ill"],
            "nominal_size": 4800,
            "user": None,
        },
        "features": {"model": "none"},
        "privacy": {"epsilon": 2.0, "delta": 1e-5, "lifetime": {"epsilon": 8.0}},
        "sweep": {"rungs": []},
        "final": {"calibrate": {"share": 0.04}},
        "evaluate": {"measures": "calibration"},
    }
    Path("config.yaml").write_text(yaml.safe_dump(config))
    assert main(["run", "config.yaml"]) == 0
    assert main(["verify", "results"]) == 0
    [target] = json.loads(Path("results/main/summary.json").read_text())["targets"]
    assert len(target["test"]["reliability"]) == 10
    assert target["test"]["figures"].keys() == {"calibration_error", "overconfidence"}
    assert Path("results/main/figures/reliability.svg").exists()
    page = Path("results/report.html").read_text("utf-8")
    assert "<h3>How sure, and how often right</h3>" in page
    assert "expected calibration error" in page
    stated = json.loads(Path("results/privacy.json").read_text())
    spends = [one for of in stated["datasets"].values() for one in of["spends"]]
    bought = {one["label"]: one for one in spends if one["rule"] == "train_final"}
    assert sorted(bought) == ["calibration", "weights"]
    squares = {label: one["mu"] ** 2 for label, one in bought.items()}
    assert squares["calibration"] / sum(squares.values()) == pytest.approx(0.04, rel=1e-3)
    _, facts = weights.load(Path(MODEL))
    assert facts["calibration"]["share"] == 0.04
    # this many records tell the map well: probabilities come true, where they were far too sure
    model = dpladder.load(MODEL)
    sure = model.predict_proba("rows.csv")[:, 1]
    assert np.abs(sure - truth).mean() < 0.08
    capfd.readouterr()
    assert main(["predict", MODEL, "rows.csv", "--output", "said.csv"]) == 0
    assert "calibrated" not in capfd.readouterr().err
    assert pd.read_csv("said.csv")["p(ill)"].to_numpy() == pytest.approx(sure, abs=1e-4)
    assert main(["export", MODEL, "alone"]) == 0
    code = "import model; print(*(one['ill'] for one in model.load('.').classify('../rows.csv')))"
    told = subprocess.run(
        [sys.executable, "-c", code], cwd="alone", capture_output=True, text=True, check=True
    )
    assert [*map(float, told.stdout.split())] == pytest.approx(sure.tolist(), abs=1e-4)
    assert "were calibrated" in Path("alone/README.md").read_text("utf-8")
