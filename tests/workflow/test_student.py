"""A student of the final head, taught on public records, through the whole workflow."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from support import Workspace, mixture

import dpladder
from dpladder.cli import main

STUDENT = "results/main/student/1/weights.safetensors"


def mixed(path: str, records: int, seed: int, **others: np.ndarray) -> None:
    np.savez(path, **(mixture(records, seed=seed) | others))


@pytest.mark.long
def test_a_student_costs_nothing_and_reads_no_label(project: Workspace) -> None:
    mixed("test.npz", 200, seed=8)
    project.configure({"dataset": {"public_test": "npz:test.npz"}, "sweep": {"rungs": []}})
    project.finish("results/privacy.json", "results/main/summary.json")
    paid = project.held()

    mixed("open.npz", 300, seed=7)
    own = {"public_test": "npz:test.npz", "public_unlabelled": "npz:open.npz"}
    project.configure({"dataset": own, "sweep": {"rungs": []}})
    project.finish("results/privacy.json", "results/main/summary.json", "results/report.html")
    assert project.held() == paid
    assert main(["verify", "results"]) == 0
    record = json.loads(Path("results/main/student/1/privacy.json").read_text("utf-8"))
    assert "taught by a release" in record["free"]
    [target] = json.loads(Path("results/main/summary.json").read_text("utf-8"))["targets"]
    assert target["student"]["total"] == 200
    assert target["student"]["accuracy"] > 0.7
    rows = Path("results/main/summary.csv").read_text("utf-8").splitlines()
    assert [row.split(",")[0].strip('"') for row in rows[1:]] == ["main", "main"]
    found = dpladder.load(STUDENT)
    assert len(found.predict(mixture(5)["features"]).labels) == 5

    before = Path(STUDENT).read_bytes()
    mixed("open.npz", 300, seed=7, labels=np.zeros(300, np.int64))
    project.finish(STUDENT)
    taught = dpladder.load(STUDENT).weights[0]
    Path(STUDENT).write_bytes(before)
    assert np.allclose(taught, dpladder.load(STUDENT).weights[0], rtol=1e-4, atol=1e-6)


@pytest.mark.long
def test_beside_a_private_test_a_student_is_not_counted(project: Workspace) -> None:
    mixed("open.npz", 300, seed=7)
    project.configure({"dataset": {"public_unlabelled": "npz:open.npz"}, "sweep": {"rungs": []}})
    project.finish("results/privacy.json", "results/main/summary.json")
    [target] = json.loads(Path("results/main/summary.json").read_text("utf-8"))["targets"]
    assert target["student"] is None
    assert Path(STUDENT).is_file()
