"""A private head that trainings of the network start from, through the whole workflow: bought once,
shared, counted by itself, a part of what each training asks."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from support import Workspace

from dpladder.cli import main
from dpladder.learn import weights
from tests.workflow.test_finetune import CLASSES, draw_images

HEAD = Path("results/main/head/head.safetensors")
FINAL = Path("results/main/final/2/weights.safetensors")
STARTED = {
    "dataset": {
        "source": "folder:images",
        "public_test": "folder:shown",
        "nominal_size": 60,
        "classes": list(CLASSES),
    },
    "features": {
        "model": "test_efficientnet",
        "weights": "random",
        "image_size": 32,
        "until": "blocks.3",
    },
    "learner": {
        "name": "dp_finetune",
        "trains": "last_block",
        "bias": True,
        "head": {"epsilon": 0.7},
    },
    "sweep": {"rungs": []},
    "final": {"targets": [1.0, 2.0]},
    "experiments": {
        "adapted": {"learner": {"trains": "lora"}, "final": {"targets": [1.0]}},
        "free": {
            "learner": {
                "name": "hyfree_finetune",
                "bias": True,
                "steps": 20,
                "head": {"epsilon": 0.7},
            },
            "final": {"targets": [1.0]},
        },
    },
}


@pytest.mark.long
def test_a_head_is_bought_once_and_shared_by_the_trainings_that_start_from_it(
    project: Workspace,
) -> None:
    draw_images(seed=1)
    shutil.move("images", "shown")
    draw_images()
    project.configure(STARTED)
    project.finish("results/privacy.json", *map(summary_of, ("main", "adapted", "free")))
    assert main(["verify", "results"]) == 0
    assert Counter(held.job.rule for held in project.held()) == {
        "estimate_head": 1,
        "train_final": 4,
    }
    datasets = json.loads(Path("results/privacy.json").read_text())["datasets"]
    for model in datasets["tiny"]["artifacts"].values():
        rules = Counter(job["rule"] for job in model["jobs"])
        assert rules == {"estimate_head": 1, "train_final": 1}
        assert 0.999 * model["target_epsilon"] < model["epsilon"] <= model["target_epsilon"]

    head, found = load_file(HEAD)["head"], weights.load(FINAL)[0][-1]
    assert 0 < np.linalg.norm(found - head) < np.linalg.norm(found)

    before, released = project.held(), HEAD.read_bytes()
    save_file({"head": head + np.float32(1)}, HEAD)
    assert project.run(str(FINAL), "--forcerun", "train_final").returncode == 1
    assert "not what was released" in project.log("main/final/2/train.log")
    HEAD.unlink()
    project.finish(str(HEAD), str(FINAL))
    assert HEAD.read_bytes() == released
    assert project.held() == before


def summary_of(experiment: str) -> str:
    return f"results/{experiment}/summary.json"


@pytest.mark.long
def test_a_sample_guides_the_head_and_its_look_is_paid_once(project: Workspace) -> None:
    draw_images(seed=1)
    shutil.move("images", "shown")
    draw_images()
    sample = {"dataset": {"public_test": None, "public_sample": "folder:shown"}}
    project.configure(STARTED, sample, {"experiments": None, "final": {"targets": [2.0]}})
    project.finish("results/privacy.json", str(FINAL))
    assert main(["verify", "results"]) == 0
    spends = {
        rule: len(json.loads(Path(f"results/main/{where}/privacy.json").read_text())["spends"])
        for rule, where in (("estimate_head", "head"), ("train_final", "final/2"))
    }
    assert spends == {"estimate_head": 2, "train_final": 1}  # its steps, and a look
    assert {*load_file(HEAD)} == {"head", "worth"}

    before = project.held()
    shutil.rmtree("shown")
    shutil.move("images", "kept")
    draw_images(seed=2)
    shutil.move("images", "shown")
    shutil.move("kept", "images")
    assert project.run(str(HEAD)).returncode == 1  # other public records are another question
    assert "respend: true" in project.log("main/estimate_head.log")
    assert project.held() == before
