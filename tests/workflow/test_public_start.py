"""Trainings that start from a head of the public sample, through the whole workflow."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from support import Workspace, mixture

from dpladder.cli import main

HEAD, FINAL = "results/main/start/head.safetensors", "results/main/final/1/weights.safetensors"


@pytest.mark.long
def test_a_public_head_is_where_trainings_start_and_a_part_of_what_they_ask(
    project: Workspace,
) -> None:
    np.savez("public.npz", **mixture(150, seed=7))
    public = {"dataset": {"public_sample": "npz:public.npz"}, "learner": {"init": "public"}}
    project.configure(public, {"sweep": {"rungs": []}, "learner": {"weight_decay": 0.0}})
    project.finish("results/report.html")
    assert main(["verify", "results"]) == 0

    head, found = load_file(HEAD)["head"], load_file(FINAL)["layers.0"]
    away = np.linalg.norm(found - head)
    assert 0 < away < np.linalg.norm(found)
    record = json.loads(Path("results/main/start/privacy.json").read_text("utf-8"))
    assert "declares public" in record["free"]
    assert (
        json.loads(Path("results/main/summary.json").read_text("utf-8"))["targets"][0]["test"][
            "accuracy"
        ]
        > 0.7
    )

    before = project.held()
    np.savez("public.npz", **mixture(150, seed=8))
    assert project.run(FINAL).returncode == 1  # another head is another question
    assert "respend: true" in project.log("main/final/1/train.log")
    assert project.held() == before


@pytest.mark.long
def test_a_public_sample_guides_each_step_and_pays_for_a_look(project: Workspace) -> None:
    np.savez("public.npz", **mixture(150, seed=7))
    project.configure(
        {"dataset": {"public_sample": "npz:public.npz"}},  # unasked
        {"sweep": {"rungs": []}},
    )
    project.finish("results/report.html")
    assert main(["verify", "results"]) == 0

    assert {*load_file(HEAD)} == {"head", "claim"}
    record = json.loads(Path("results/main/final/1/privacy.json").read_text("utf-8"))
    assert len(record["spends"]) == 2  # the steps, and a look
    summary = json.loads(Path("results/main/summary.json").read_text("utf-8"))
    assert summary["targets"][0]["test"]["accuracy"] > 0.7

    before = project.held()
    moved = mixture(150, seed=7)
    moved["features"] = moved["features"] + np.float32(1e-3)
    np.savez("public.npz", **moved)
    assert project.run(FINAL).returncode == 1  # other bytes are another question
    assert "respend: true" in project.log("main/final/1/train.log")
    assert project.held() == before
