"""Training on some groups and testing on all, through the whole workflow: what is counted, what it
costs, where it is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support import Workspace, mixture

from dpladder.cli import main

pytestmark = pytest.mark.long

COLUMNS = [f"x{place}" for place in range(16)]
GROUPED: dict[str, Any] = {
    "dataset": {
        "source": "csv:data.csv",
        "columns": COLUMNS,
        "group": {
            "column": "region",
            "names": ["north", "south", "east"],
            "train": ["north", "south"],
        },
        "split": {"test": 0.4},
    },
    "privacy": {"epsilon": 60.0, "lifetime": {"epsilon": 110.0}},
    "sweep": {"rungs": []},
    "fit": {"using": "pooled"},
    "evaluate": {
        "measures": "groups",
        "also": [
            {"name": "far", "of": "test", "groups": ["east"], "epsilon": 8.0},
            {
                "name": "other",
                "source": "csv:other.csv",
                "declared_public": True,
                "classes": {"0": "0", "1": "1", "2": "2"},
                "group": {"column": "region", "names": ["north", "moon"]},
            },
            {"name": "moon", "of": "other", "groups": ["moon"]},
        ],
    },
}


def table(records: int, seed: int, regions: tuple[str, ...]) -> pd.DataFrame:
    """In the east the classes are counted the other way round: who was not trained on it is wrong
    about it."""
    found = mixture(records, seed)
    region = np.array([regions[place % len(regions)] for place in range(records)])
    labels = np.where(region == "east", 2 - found["labels"], found["labels"])
    ids = [f"{seed}-{place}" for place in range(records)]
    return pd.DataFrame(found["features"], columns=COLUMNS).assign(
        label=labels, region=region, id=ids
    )


def test_each_group_is_measured_and_those_not_trained_on_change_nothing(project: Workspace) -> None:
    regions = ("north", "south", "east", "nowhere")
    table(800, 0, regions).to_csv("data.csv", index=False)
    table(120, 1, ("north", "moon")).to_csv("other.csv", index=False)
    project.configure(GROUPED)
    project.finish()
    assert main(["verify", "results"]) == 0

    [target] = json.loads(Path("results/main/summary.json").read_text())["targets"]
    test = target["test"]
    assert [(one["name"], one["trained"]) for one in test["groups"]] == [
        ("north", True),
        ("south", True),
        ("east", False),
    ]
    assert test["accuracy"] > 0.9
    assert test["figures"]["elsewhere"]["value"] < 0.7
    assert test["worst"]["name"] == "east"
    assert test["total"] == pytest.approx(0.4 * 400, abs=40)  # the trained groups' alone

    far, other, moon = (one["test"] for one in target["also"])
    assert far["noised"]
    assert (far["groups"][0]["trained"], len(far["groups"])) == (False, 1)
    assert abs(far["accuracy"] - test["figures"]["elsewhere"]["value"]) < 0.2
    assert [one["correct"] + one["wrong"] for one in other["groups"]] == [60, 60]
    assert (moon["total"], moon["noised"]) == (60, False)
    spends = json.loads(Path("results/privacy.json").read_text())["datasets"]["tiny"]["spends"]
    paid = {(line["rule"], line["partition"]) for line in spends}
    tests = {("evaluate", "test"), ("evaluate_also", "test")}
    assert paid == {("estimate_mean", "train"), ("train_final", "train")} | tests
    assert "worst-group accuracy" in Path("results/report.html").read_text()
    assert "far" in Path("results/main/tables/shift.md").read_text()
    again = project.finish()
    assert "Nothing to be done" in again.stdout + again.stderr
