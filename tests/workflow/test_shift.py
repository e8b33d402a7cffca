"""Further tests through the whole workflow: other sources by name, and corrupted images, public and
private."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import Workspace, mixture

from dpladder.cli import main

pytestmark = pytest.mark.long

SHIFTED: dict[str, Any] = {
    "dataset": {"source": "npz:images.npz", "classes": ["dark", "light"], "nominal_size": 60},
    "features": {
        "model": "efficientnet_lite0",
        "image_size": 32,
        "batch_size": 8,
        "mean": {"epsilon": 30.0},
    },
    "privacy": {"epsilon": 100.0, "lifetime": {"epsilon": 110.0}},
    "sweep": {"rungs": []},
    "evaluate": {
        "also": [
            {
                "name": "turned",
                "source": "npz:turned.npz",
                "declared_public": True,
                "classes": ["light", "dark", None],
            },
            {"name": "noisy", "of": "turned", "corruption": "noise", "severities": [5]},
            {"name": "dim", "of": "test", "corruption": "blur", "severities": [2], "epsilon": 4.0},
        ]
    },
}


def images(labels: np.ndarray, seed: int) -> np.ndarray:
    """Dark ones and light ones, in grey."""
    random = np.random.default_rng(seed)
    return (random.integers(0, 100, (len(labels), 12, 14)) + 140 * labels[:, None, None]).astype(
        np.uint8
    )


def test_a_model_is_measured_off_its_distribution(project: Workspace) -> None:
    labels = np.arange(80) % 2
    np.savez("images.npz", images=images(labels, 0), labels=np.array(["dark", "light"])[labels])
    shades = np.arange(60) % 2
    # The same classes, counted the other way round, and some of a class that the model has not.
    np.savez(
        "turned.npz", images=images(shades, 1), labels=np.where(np.arange(60) < 12, 2, 1 - shades)
    )
    project.configure(SHIFTED)
    project.finish()
    assert main(["verify", "results"]) == 0

    [target] = json.loads(Path("results/main/summary.json").read_text())["targets"]
    found = {one["name"]: one["test"] for one in target["also"]}
    assert list(found) == ["turned", "noisy-5", "dim-2"]
    assert (found["turned"]["noised"], found["turned"]["total"]) == (False, 48)
    assert found["turned"]["accuracy"] > 0.9  # by name; by number it would be below 0.1
    assert found["dim-2"]["noised"]

    spends = json.loads(Path("results/privacy.json").read_text())["datasets"]["tiny"]["spends"]
    [paid] = [line for line in spends if line["rule"] == "evaluate_also"]
    assert (paid["partition"], paid["wildcards"]["test"]) == ("test", "dim-2")
    assert 'data-name="shift"' in Path("results/report.html").read_text()
    assert "turned" in Path("results/main/tables/shift.md").read_text()
    again = project.finish()
    assert "Nothing to be done" in again.stdout + again.stderr


OPEN: dict[str, Any] = {
    "mode": "research",
    "dataset": {"declared_public": True},
    "final": {"targets": [0.2, 2.0], "without_noise": True},
    "sweep": {"rungs": []},
    "fit": {"using": "pooled"},
    "evaluate": {
        "also": [
            {
                "name": "far",
                "source": "npz:far.npz",
                "declared_public": True,
                "classes": {"0": "0", "1": "1"},
            }
        ]
    },
}


def test_research_tells_the_gap_to_a_training_without_noise(project: Workspace) -> None:
    far = mixture(90, seed=1)
    np.savez("far.npz", features=far["features"] + 1.0, labels=far["labels"])
    project.configure(OPEN)
    ended = project.finish()
    assert "WITHOUT NOISE" in ended.stdout + ended.stderr
    assert main(["verify", "results"]) == 0

    found = json.loads(Path("results/main/summary.json").read_text())
    least, most = (target["test"]["accuracy"] for target in found["targets"])
    assert found["open"]["test"]["accuracy"] > 0.95
    assert found["open"]["test"]["accuracy"] >= max(least, most) - 0.05
    assert not found["open"]["test"]["noised"]
    assert set(found["open"]["also"]) == {"far"}
    table = Path("results/main/tables/shift.md").read_text()
    assert table.count("∞") == 2
    for figure in ("main/figures/shift.svg", "figures/pareto.svg"):
        assert "no privacy" in Path("results", figure).read_text()
    assert not list(Path("results/main/open").glob("*.safetensors"))  # it is no release
    rules = {
        line["rule"]
        for line in json.loads(Path("results/privacy.json").read_text())["datasets"]["tiny"][
            "spends"
        ]
    }
    assert rules == {"train_final"}
    assert not any(target["test"]["noised"] for target in found["targets"])
    assert "its tests are counted exactly" in Path("results/privacy.md").read_text()
    page = Path("results/report.html").read_text()
    assert "over sampling alone, for its counts are exact" in page
