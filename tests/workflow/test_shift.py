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
from dpladder.config.load import overlay
from dpladder.report.summary import read_test

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
    assert 'aria-label="shift"' in Path("results/report.html").read_text()
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
    for name in ("shift", "utility"):
        assert "no privacy" in Path(f"results/main/figures/{name}.svg").read_text()
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
    assert "of sampling alone, for its counts are exact" in page


OTHERS: dict[str, Any] = {
    "features": {"mean": {"epsilon": 0.2}},
    "final": {"targets": [1.0, 2.0]},
    "sweep": {"rungs": []},
    "experiments": {
        "others": {
            "evaluate": {"of": "main"},
            "dataset": {
                "lineage": "others",
                "source": "npz:others.npz",
                "nominal_size": 40,
                "unit": {"by": "user", "cap": 2},
                "split": {"test": 0.8},
            },
            "privacy": {
                "epsilon": 3.0,
                "delta": 1e-4,
                "relation": "replace_one",
                "lifetime": {"epsilon": 12.0},
            },
        }
    },
}
WEIGHTS = Path("results/main/final/1/weights.safetensors")


@pytest.mark.ci
def test_other_peoples_records_are_counted_on_a_lineage_of_their_own(project: Workspace) -> None:
    others = mixture(400, seed=1)
    users = np.arange(400) // 2
    np.savez("others.npz", features=others["features"] + 0.5, labels=others["labels"], users=users)
    project.configure(OTHERS)
    project.finish()
    assert main(["verify", "results"]) == 0
    assert main(["ledger", "verify", "results"]) == 0

    stated = json.loads(Path("results/privacy.json").read_text())["datasets"]
    assert {line["experiment"] for line in stated["tiny"]["spends"]} == {"main"}
    paid = [
        (line["rule"], line["wildcards"], line["partition"]) for line in stated["others"]["spends"]
    ]
    assert paid == [("evaluate_of", {"target": total}, "test") for total in ("1", "2")]
    terms = [
        stated["others"][key] for key in ("relation", "delta", "unit", "cap", "lifetime_epsilon")
    ]
    assert terms == ["replace_one", 1e-4, "user", 2, 12.0]
    assert list(stated["others"]["artifacts"]) == [
        f"results/others/tests/{total}/metrics.json" for total in (1, 2)
    ]

    [one, two] = json.loads(Path("results/main/summary.json").read_text())["targets"]
    for target in (one, two):
        [test] = target["also"]
        assert (test["name"], test["lineage"], test["test"]["noised"]) == ("others", "others", True)
    assert two["also"][0]["test"]["accuracy"] > 0.6
    assert "others" in Path("results/main/tables/shift.md").read_text()
    assert "others" in Path("results/main/figures/shift.svg").read_text()
    assert not Path("results/others/summary.json").exists()
    again = project.finish()
    assert "Nothing to be done" in again.stdout + again.stderr

    for path in ("others/summary.json", "others/final/1/metrics.json", "main/tests/1/metrics.json"):
        asked = project.run(f"results/{path}")
        assert "MissingRuleException" in asked.stderr  # neither has what the other has

    # Their records change: as another version of the data theirs alone are paid for again.
    others["features"][0] += 1.0
    np.savez("others.npz", features=others["features"] + 0.5, labels=others["labels"], users=users)
    kept = Path("results/others/tests/1/metrics.json")
    before = kept.read_bytes()
    project.finish()
    assert kept.read_bytes() == before
    changed = {"dataset": {"version": 2}, "privacy": {"epsilon": 5.0}}
    project.configure(OTHERS, {"experiments": {"others": changed}})
    project.finish()
    assert kept.read_bytes() != before
    assert main(["verify", "results"]) == 0
    stated = json.loads(Path("results/privacy.json").read_text())["datasets"]
    assert len(stated["others"]["spends"]) == 2  # those of before count in the lifetime
    tiny = stated["tiny"]["spends"]
    assert len(tiny) == len({line["released"] for line in tiny})


def test_other_people_are_counted_group_by_group_in_one_release(project: Workspace) -> None:
    """In the east the classes are counted the other way round, and what is nowhere counts as
    nothing."""
    found, regions = (
        mixture(400, seed=1),
        np.array(["north", "east", "nowhere"])[np.arange(400) % 3],
    )
    labels = np.where(regions == "east", 2 - found["labels"], found["labels"])
    np.savez(
        "others.npz",
        features=found["features"],
        labels=labels,
        users=np.arange(400) // 2,
        region=regions,
    )
    group = {"column": "region", "names": ["north", "east"]}
    by_group = {"dataset": {"group": group}, "evaluate": {"measures": "groups"}}
    generous = {"privacy": {"epsilon": 40.0, "lifetime": {"epsilon": 100.0}}}
    project.configure(
        OTHERS,
        generous,
        {"final": {"targets": [40.0]}},
        {"experiments": {"others": overlay(by_group, generous)}},
    )
    project.finish()
    assert main(["verify", "results"]) == 0

    counted = read_test("results/others/tests/40/metrics.json")
    [target] = json.loads(Path("results/main/summary.json").read_text())["targets"]
    metrics = target["also"][0]["test"]
    assert metrics["accuracy"] == counted.accuracy
    assert [(one["name"], one["trained"]) for one in metrics["groups"]] == [
        ("north", False),
        ("east", False),
    ]
    north, east = metrics["groups"]
    assert north["accuracy"] > east["accuracy"] + 0.3
    assert metrics["worst"]["name"] == "east"
    assert metrics["total"] == pytest.approx(0.8 * 400 * 2 / 3, abs=50)
    [paid] = json.loads(Path("results/privacy.json").read_text())["datasets"]["others"]["spends"]
    assert (paid["count"], paid["label"]) == (1, "test score")
    table = Path("results/main/tables/shift.md").read_text()
    assert "worst-group accuracy" in table
    assert "east" in table
    assert "others, worst group" in Path("results/main/figures/shift.svg").read_text()
    assert "east" in Path("results/report.html").read_text()

    # Without them in the config nothing tells of them, and what was counted stays free.
    alone = {key: value for key, value in OTHERS.items() if key != "experiments"} | {
        "final": {"targets": [40.0]}
    }
    project.configure(alone, generous)
    project.finish()
    for path in ("tables/shift.md", "figures/shift.svg"):
        assert not Path(f"results/main/{path}").exists()
    assert "others" not in Path("results/main/summary.json").read_text()
    assert ">others<" not in Path("results/report.html").read_text()
    again = project.finish()
    assert "Nothing to be done" in again.stdout + again.stderr


@pytest.mark.ci
def test_what_nobody_released_is_counted_for_nobody(project: Workspace) -> None:
    """A model that was edited would cost other people as much as the one that was meant."""
    np.savez("others.npz", **mixture(400, seed=1), users=np.arange(400) // 2)
    project.configure(OTHERS)
    project.finish(str(WEIGHTS), "results/others/features/test/privacy.json")
    edited = bytearray(WEIGHTS.read_bytes())
    edited[-1] ^= 1
    WEIGHTS.chmod(0o644)
    WEIGHTS.write_bytes(edited)
    refused = project.run("results/others/tests/1/metrics.json")
    assert "is not what was released under another lineage" in refused.stderr
    assert "Nothing was charged" in refused.stderr
    assert all(
        held.status == "RESERVED" for held in project.held() if held.job.rule == "evaluate_of"
    )
