"""How sure a model is, from the config to the page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import Workspace

from dpladder.cli import main


@pytest.mark.ci
def test_calibration_is_bought_and_drawn_and_its_statement_follows(project: Workspace) -> None:
    project.configure(
        {
            "evaluate": {"measures": "calibration", "epsilon": 8.0},
            "privacy": {"epsilon": 20.0, "lifetime": {"epsilon": 60.0}},
            "final": {"targets": [20.0]},
        }
    )
    project.finish()
    [target] = json.loads(Path("results/main/summary.json").read_text())["targets"]
    test = target["test"]
    assert len(test["reliability"]) == 10
    assert test["figures"].keys() == {"calibration_error", "overconfidence"}
    assert Path("results/main/figures/reliability.svg").exists()
    page = Path("results/report.html").read_text("utf-8")
    assert "<h3>How sure, and how often right</h3>" in page
    assert "expected calibration error" in page
    assert main(["verify", "results"]) == 0
