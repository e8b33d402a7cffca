"""What one DAG can do: several targets, parabolas, shared sweeps, users, scoring parts, public
sources, research; and refuse."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from dpladder.cli import main

TRIAL = "results/main/rungs/0/trials/0/score.json"


def statement() -> dict:
    return json.loads(Path("results/privacy.json").read_text())


def summary(experiment: str = "main") -> dict:
    return json.loads(Path(f"results/{experiment}/summary.json").read_text())


@pytest.mark.long
def test_one_sweep_serves_several_targets_through_a_parabola(project):
    targets = [0.5, 1.0, 2.0, 4.0]
    rungs = [{"epsilon": epsilon, "trials": 2} for epsilon in (0.05, 0.1, 0.15)]
    lifetime = {"privacy": {"lifetime": {"epsilon": 6.0}}}
    project.configure(
        {"sweep": {"rungs": rungs}, "fit": {"degree": 2}, "final": {"targets": targets}}, lifetime
    )
    project.finish("results/report.html")
    assert main(["verify", "results"]) == 0

    tiny = statement()["datasets"]["tiny"]
    assert [artifact["target_epsilon"] for artifact in tiny["artifacts"].values()] == targets
    for path, artifact in tiny["artifacts"].items():
        assert (
            0.999 * artifact["target_epsilon"] < artifact["epsilon"] <= artifact["target_epsilon"]
        )
        assert Path(path).is_file()
    assert max(targets) < tiny["epsilon"] <= tiny["lifetime_epsilon"]
    trials = [spend for spend in tiny["spends"] if spend["rule"] == "run_trial"]
    assert len(trials) == 2 * 6  # weights and score of each, once for all targets

    found = summary()
    assert [len(rung["trials"]) for rung in found["rungs"]] == [2, 2, 2]
    assert all(rung["best"]["r"] > 0 for rung in found["rungs"])
    for target in found["targets"]:
        assert target["fit"]["degree"] == 2
        assert 0 <= target["test"]["accuracy"] <= 1
    assert [target["target_epsilon"] for target in found["targets"]] == targets
    shares = [target["search_share"] for target in found["targets"]]
    assert shares == sorted(shares, reverse=True)


@pytest.mark.long
def test_users_replaced_units_a_noised_mean_and_a_scoring_part(project):
    """The rarer ways of every stage at once, at a lifetime that is the total exactly."""
    with np.load("data.npz") as arrays:
        np.savez("data.npz", **arrays, users=np.arange(300) // 3)
    project.configure(
        {
            "dataset": {
                "nominal_size": 80,
                "unit": {"by": "user", "cap": 2},
                "split": {"test": 0.2, "validation": 0.2},
            },
            "features": {"shards": 2, "mean": {"epsilon": 0.1, "radius": 5.0}},
            "privacy": {"relation": "replace_one", "lifetime": {"epsilon": 1.0}},
            "sweep": {"search": {"prior": "proportional"}, "select": {"part": "validation"}},
            "fit": {"against": "mu", "using": "pooled"},
        }
    )
    project.finish("results/report.html")
    assert main(["verify", "results"]) == 0
    tiny = statement()["datasets"]["tiny"]
    assert (tiny["unit"], tiny["cap"]) == ("user", 2)
    assert 0.999 < tiny["epsilon"] <= 1.0
    reads = {(spend["rule"], spend["label"]): spend["partition"] for spend in tiny["spends"]}
    assert reads["estimate_mean", "mean"] == "train"
    assert reads["run_trial", "score"] == "validation"
    assert reads["evaluate", "test score"] == "test"
    assert len(list(Path("results/main/features").glob("*/shards/*"))) == 3 * 2
    assert all(path.stat().st_mode & 0o077 == 0 for path in Path("private").rglob("*.h5"))
    again = project.finish("results/main/summary.json")
    assert "Nothing to be done" in again.stdout + again.stderr


@pytest.mark.long
def test_users_who_are_one_record_each(project):
    """At full weight: as many rows as users behind every mechanism, and no cap."""
    with np.load("data.npz") as arrays:
        users = np.arange(300) // 3
        np.savez("data.npz", features=arrays["features"], labels=users % 3, users=users)
    unit = {"by": "user", "pool": "mean"}
    project.configure({"dataset": {"nominal_size": 80, "unit": unit}, "features": {"shards": 2}})
    project.finish("results/report.html")
    assert main(["verify", "results"]) == 0
    tiny = statement()["datasets"]["tiny"]
    assert (tiny["unit"], tiny["cap"]) == ("user", 1)
    assert "each user, who counts as one record at most" in Path("results/privacy.md").read_text()
    (model,) = Path("results/main/final").glob("*/weights.safetensors")
    arrays = np.load("data.npz")
    np.savez("new.npz", features=arrays["features"][:9], users=users[:9])
    assert main(["predict", str(model), "new.npz", "--output", "out.csv"]) == 0
    told = [line.split(",")[1] for line in Path("out.csv").read_text().splitlines()]
    assert told == ["user", "0", "1", "2"]
    again = project.finish("results/main/summary.json")
    assert "Nothing to be done" in again.stdout + again.stderr


@pytest.mark.long
def test_research_on_public_sources_shares_a_sweep_between_experiments(project):
    rng = np.random.default_rng(1)
    for part in ("test", "validation"):
        labels = rng.integers(0, 3, 60)
        labels[:4] = -1  # without a label
        np.savez(
            f"{part}.npz", features=rng.normal(size=(60, 16)).astype(np.float32), labels=labels
        )
    project.configure(
        {
            "mode": "research",
            "dataset": {
                "declared_public": True,
                "public_test": "npz:test.npz",
                "public_validation": "npz:validation.npz",
            },
            "research": {"repeats": 2},
            "sweep": {"select": {"by": "public"}},
            "experiments": {"flat": {"fit": {"against": "mu"}}},
        }
    )
    project.finish(
        *("results/report.html", "results/summary.csv", "results/tables/grid.md"),
        *(f"results/{name}/figures/gap.svg" for name in ("main", "flat")),
    )
    assert main(["verify", "results"]) == 0
    assert not Path("results/flat/rungs").exists()
    jobs = Counter((held.job.experiment, held.job.rule) for held in project.held())
    assert jobs == {
        ("main", "run_trial"): 4,
        ("main", "train_final"): 1,
        ("flat", "train_final"): 1,
        ("main-2", "run_trial"): 4,
        ("main-2", "train_final"): 1,
        ("flat-2", "train_final"): 1,
    }
    trials = {
        name: [t["score"] for t in summary(name)["rungs"][0]["trials"]]
        for name in ("main", "main-2", "flat-2")
    }
    assert trials["main"] != trials["main-2"] == trials["flat-2"]
    trial = json.loads(Path(TRIAL).read_text())["trial"]
    assert (trial["sd"], trial["counted"]) == (0.0, 56)
    assert summary("flat")["targets"][0]["test"]["noised"] is False
    assert "not a release" in Path("results/privacy.md").read_text()
    compared = Path("results/tables/grid.md").read_text().splitlines()
    assert [line.split("|")[1].strip() for line in compared[2:]] == ["main", "flat"]
    with Path("results/summary.csv").open() as file:
        rows = [row["experiment"] for row in csv.DictReader(file)]
    assert rows == ["main", "main-2", "flat", "flat-2"]
    page = Path("results/report.html").read_text()
    assert ": main</h3>" in page
    assert ": main-2</h3>" not in page


REFUSED = {
    "an infeasible target": (
        {"final": {"targets": [0.3, 1.0]}},
        "total epsilon 0.3 is infeasible.*raise",
    ),
    "more than a lifetime": (
        {
            "privacy": {"lifetime": {"epsilon": 1.0}},
            "experiments": {"more": {"learner": {"momentum": 0.5}}},
        },
        "above its lifetime limit of 1",
    ),
}


@pytest.mark.parametrize(("change", "why"), REFUSED.values(), ids=REFUSED.keys())
def test_an_unaffordable_plan_is_refused_before_anything_is_read(change, why, project, walk, capfd):
    project.configure(change)
    with pytest.raises(SystemExit) as ended:
        walk()
    assert ended.value.code == 1
    assert re.search(why, capfd.readouterr().err)
    assert not Path("results").exists()
    assert not project.home.exists()
