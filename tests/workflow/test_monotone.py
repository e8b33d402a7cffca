"""A whole run whose released curves only rise or only fall, and what another direction costs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from support import write_ill_or_well

import dpladder
from dpladder.cli import main

pytestmark = pytest.mark.ci
MODEL = "results/main/final/1/weights.safetensors"


def test_curves_go_where_the_config_says_and_another_direction_is_paid_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPLADDER_HOME", str(tmp_path / "home"))
    write_ill_or_well(Path("rows.csv"), (4.0, 4.0, 0.0))
    config: dict[str, Any] = {
        "dataset": {
            "lineage": "rows",
            "source": "csv:rows.csv",
            "columns": [
                {"name": "a", "range": [-1, 1], "monotone": "up"},
                {"name": "b", "range": [-1, 1], "monotone": "down"},  # against what is true
                {"name": "c", "range": [-1, 1]},
            ],
            "classes": ["well", "ill"],
            "nominal_size": 4800,
        },
        "features": {"model": "none"},
        "privacy": {"epsilon": 1.0, "delta": 1e-5, "lifetime": {"epsilon": 2.0}},
        "sweep": {"rungs": []},
    }
    Path("config.yaml").write_text(yaml.safe_dump(config))
    assert main(["run", "config.yaml"]) == 0
    assert main(["verify", "results"]) == 0
    curves = dpladder.load(MODEL).curves()
    a, b, c = (curves[curves.column == name].effect.to_numpy() for name in "abc")
    assert np.diff(a).min() >= -1e-5
    assert np.ptp(a) > 1.0
    assert np.ptp(b) < 1e-4  # of all that fall, the nearest to one that rises is level
    assert np.diff(c).min() < 0.0 < np.diff(c).max()
    [final] = json.loads(Path("results/main/summary.json").read_text())["targets"]
    assert final["test"]["accuracy"] > 0.6

    config["dataset"]["columns"][1]["monotone"] = "up"
    Path("config.yaml").write_text(yaml.safe_dump(config))
    capfd.readouterr()
    assert main(["run", "config.yaml"]) == 1
    told = capfd.readouterr().err
    assert "train_final" in told
    assert "respend: true" in told
