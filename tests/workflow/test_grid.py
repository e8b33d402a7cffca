"""A grid through the whole workflow: cells share what they can, and stand in one table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import Workspace

from dpladder.cli import main

pytestmark = pytest.mark.long

GRID: dict[str, Any] = {
    "mode": "research",
    "dataset": {"declared_public": True},
    "sweep": {"rungs": []},
    "fit": {"using": "pooled"},
    "final": {"targets": [0.5, 2.0]},
    "grid": {"learner": {"fast": {"momentum": 0.9}, "plain": {"momentum": 0.0}}},
}


@pytest.mark.long
def test_every_cell_is_trained_and_told_in_one_table(project: Workspace) -> None:
    project.configure(GRID)
    project.finish()
    assert main(["verify", "results"]) == 0
    lines = Path("results/tables/grid.md").read_text().splitlines()
    assert lines[0] == "| learner | ε = 0.5 | ε = 2 |"
    assert [line.split("|")[1].strip() for line in lines[2:]] == ["fast", "plain"]
    assert not Path("results/plain/features").exists()  # main's
    targets = json.loads(Path("results/plain/summary.json").read_text())["targets"]
    assert all(target["distance"] > 0 for target in targets)
    page = Path("results/report.html").read_text()
    assert 'data-name="distance"' in page
    assert "a row for each combination of the grid" in page
