"""Findings through the whole workflow: from a table with a column each to what is told of each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support import Workspace

from dpladder.cli import main

NAMES = ["edema", "mass", "effusion", "fracture"]
COLUMNS = [f"x{place}" for place in range(8)]
CONFIG: dict[str, Any] = {
    "dataset": {
        "source": "csv:data.csv",
        "columns": COLUMNS,
        "label": NAMES,
        "labels": "many",
        "classes": None,
        "blank": 0,
        "nominal_size": 900,
        "split": {"test": 0.4},
    },
    "privacy": {"epsilon": 60.0, "lifetime": {"epsilon": 120.0}},
    "learner": {"link": "sigmoid"},
    "sweep": {"rungs": [{"epsilon": 5.0, "trials": 2}]},
    "fit": {"using": "pooled"},
    "evaluate": {"measures": "auc", "epsilon": 30.0},
}


def table(records: int = 1500) -> pd.DataFrame:
    """Three findings that features tell, and one that nobody has; a tenth of what is there is
    uncertain, a tenth of what is not there is not mentioned."""
    random = np.random.default_rng(0)
    x = random.normal(size=(records, len(COLUMNS)))
    truth = (x @ random.normal(size=(len(COLUMNS), len(NAMES))) > 1.0).astype(float)
    truth[:, 3] = 0.0
    doubt = random.random(truth.shape) < 0.1
    states = np.where(doubt, np.where(truth == 1, -1.0, np.nan), truth)
    return pd.DataFrame(x, columns=COLUMNS).join(pd.DataFrame(states, columns=NAMES))


@pytest.mark.long
def test_findings_are_trained_tested_and_predicted_each_by_itself(project: Workspace) -> None:
    given = table()
    given.to_csv("data.csv", index=False)
    project.configure(CONFIG)
    project.finish()
    assert main(["verify", "results"]) == 0

    summary = json.loads(Path("results/main/summary.json").read_text())
    assert summary["findings"]
    assert summary["classes"] is None
    test = summary["targets"][0]["test"]
    each = {one["name"]: one for one in test["findings"]}
    assert [*each] == NAMES
    for name in NAMES[:3]:
        assert each[name]["figures"]["balanced"]["value"] > 0.65
        assert each[name]["figures"]["auc"]["value"] > 0.75
    fracture = each["fracture"]["figures"]  # nobody has it
    assert fracture["sensitivity"] is fracture["auc"] is None
    assert fracture["specificity"]["value"] > 0.6
    assert test["figures"]["auc"] is test["figures"]["balanced"] is None
    page = Path("results/report.html").read_text()
    assert "Finding by finding" in page
    assert "effusion" in page

    [model] = Path("results/main/final").glob("*/weights.safetensors")
    assert main(["predict", str(model), "data.csv", "--output", "told.csv"]) == 0
    odds = pd.read_csv("told.csv")["p(mass)"].to_numpy()
    known = given["mass"].to_numpy()
    assert odds[known == 1].mean() > odds[known == 0].mean() + 0.2
