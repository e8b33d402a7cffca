"""Learners that need more of the DAG than a ladder, or less: a covariance that trainings share, and
nothing to search."""

from __future__ import annotations

import json
import math
from collections import Counter

import numpy as np
import pytest
from support import mixture

from dpladder.config.load import load
from dpladder.learn import weights
from dpladder.plan.pictures import pictures_of
from dpladder.plan.resolve import resolve_defaults
from dpladder.privacy.accounting import gdp
from dpladder.privacy.statement.check import check, read_statement

pytestmark = pytest.mark.long

COVARIANCE = {"epsilon": 0.3}
RUNGS = [{"epsilon": 0.1, "trials": 1}, {"epsilon": 0.2, "trials": 1}]
SHARING = {
    "learner": {"name": "dp_fc", "shared": COVARIANCE},
    "sweep": {"rungs": RUNGS},
    "experiments": {"ridge": {"learner": {"name": "dp_ls", "shared": COVARIANCE}}},
}
THIRD = {
    "experiments": {"heavier": {"learner": {"name": "dp_ls", "shared": COVARIANCE, "alpha": 0.5}}}
}
ALONE = {
    "sweep": {"rungs": RUNGS},
    "experiments": {"single": {"learner": {"name": "one_step"}, "sweep": {"rungs": []}}},
}


STATISTICS = {
    "learner": {
        "name": "dp_ls",
        "radius": 4.0,
        "shared": {"epsilon": 0.8, "sums": "all", "alpha": [0.1, 1.0]},
    },
    "dataset": {"public_validation": "npz:validation.npz"},
    "sweep": {"rungs": [{"epsilon": 0.2, "trials": 2}]},
    "fit": {"using": "pooled"},
    "final": {"targets": [1.0, 2.0]},
    "experiments": {"open": {"sweep": {"select": {"by": "public"}}, "final": {"targets": [1.0]}}},
}
ANOTHER = {"experiments": {"heavier": {"learner": {"alpha": 0.5, "shared": {"alpha": []}}}}}


def rules(lines) -> Counter[str]:
    return Counter(line["rule"] for line in lines)


def test_a_covariance_is_released_once_for_all_that_share_it_and_paid_once(project, walk):
    project.configure(SHARING)
    project.finish()
    assert Counter(held.job.rule for held in project.held())["estimate_sums"] == 1
    statement = read_statement(project.results)
    assert check(statement, project.results) == []
    tiny = statement["datasets"]["tiny"]
    assert rules(line for line in tiny["spends"] if line["label"] == "sums") == {"estimate_sums": 1}
    for artifact in tiny["artifacts"].values():
        assert rules(artifact["jobs"])["estimate_sums"] == 1
        assert 0.9999 < artifact["epsilon"] <= 1.0
    _, facts = weights.load(project.results / "ridge/final/1/weights.safetensors")
    summary = json.loads((project.results / "ridge/summary.json").read_text())
    (target,) = summary["targets"]
    assert target["ridge"] == facts["ridge"] == pytest.approx(1 / target["r_star"])
    assert target["eta"] is None

    project.configure(SHARING, THIRD)
    found = walk()
    assert found.due["estimate_sums"] == 0
    assert found.charged == {"run_trial": 2, "train_final": 1, "evaluate": 1}


SEVERAL = {
    "learner": {"name": "dp_ls", "radius": 4.0, "shared": {"epsilon": 20.0, "sums": "all"}},
    "dataset": {
        "labels": 2,
        "nominal_size": 500,
        "split": {"test": 0.4},
        "group": {"column": "region", "names": ["north", "south"]},
    },
    "privacy": {"epsilon": 60.0, "lifetime": {"epsilon": 120.0}},
    "sweep": {"rungs": [{"epsilon": 4.0, "trials": 2}]},
    "fit": {"using": "pooled"},
    "evaluate": {"measures": "groups"},
}


def of_two_classes(records: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Each record lies between two of mixture's, and is of the classes of both."""
    one, other = mixture(records, seed), mixture(records, seed + 1)
    labels = np.stack([one["labels"], other["labels"]], axis=1)
    region = np.array(["north", "south"])[np.arange(records) % 2]
    return {
        "features": (one["features"] + other["features"]) / 2,
        "labels": labels,
        "region": region,
    }


def test_records_of_several_classes_are_trained_on_and_each_of_theirs_is_right(project):
    data = of_two_classes(900)
    np.savez(project.folder / "data.npz", **data)
    project.configure(SEVERAL)
    project.finish()
    assert check(read_statement(project.results), project.results) == []
    (target,) = json.loads((project.results / "main/summary.json").read_text())["targets"]
    test = target["test"]
    found, _ = weights.load(project.results / "main/final/60/weights.safetensors")
    told = (data["features"] @ found[0][:, :16].T).argmax(axis=1)
    several, first = (
        (told[:, None] == data["labels"]).any(1).mean(),
        (told == data["labels"][:, 0]).mean(),
    )
    assert several > 0.9 > first + 0.1
    assert test["accuracy"] == pytest.approx(several, abs=0.06)
    assert {group["name"] for group in test["groups"]} == {"north", "south"}


def test_statistics_are_released_once_and_trials_pay_for_their_scores_alone(project, walk):
    np.savez(project.folder / "validation.npz", **mixture(60, seed=1))
    project.configure(STATISTICS)
    project.finish()
    assert rules({"rule": held.job.rule} for held in project.held()) == {
        "estimate_sums": 1,
        "run_trial": 2,
        "train_final": 3,
        "evaluate": 3,
    }
    statement = read_statement(project.results)
    assert check(statement, project.results) == []
    tiny = statement["datasets"]["tiny"]
    assert [line["label"] for line in tiny["spends"] if line["rule"] == "run_trial"] == [
        "score"
    ] * 2
    assert rules(line for line in tiny["spends"] if line["label"] == "sums") == {"estimate_sums": 1}
    for path, artifact in tiny["artifacts"].items():
        assert rules(artifact["jobs"])["run_trial"] == (0 if "/open/" in path else 2)
        assert 0.9999 < artifact["epsilon"] / artifact["target_epsilon"] <= 1.0

    for experiment in ("main", "open"):
        folder = project.results / experiment / "rungs/0"
        trials = json.loads((folder / "best.json").read_text())["trials"]
        assert [trial["epsilon"] for trial in trials] == [0.8, 0.8]
        assert [trial["mu"] for trial in trials] == pytest.approx(
            [gdp.mu_from_epsilon(0.8, 1e-5)] * 2
        )
        assert [(trial["sd"] > 0) for trial in trials] == [experiment == "main"] * 2
        told = [
            json.loads((folder / f"trials/{number}/score.json").read_text()) for number in (0, 1)
        ]
        assert [one["alpha"] for one in told] == [0.1, 1.0]
    for target in json.loads((project.results / "main/summary.json").read_text())["targets"]:
        fit = target["fit"]
        assert fit["mu"] == pytest.approx(
            math.hypot(target["mu_final"], gdp.mu_from_epsilon(0.8, 1e-5))
        )
        assert target["alpha"] == (0.1, 1.0)[fit["best"]["trial"]]

    project.configure(STATISTICS, ANOTHER)
    found = walk()
    assert found.due["estimate_sums"] == 0
    assert found.charged == {"run_trial": 2, "train_final": 2, "evaluate": 2}


def test_a_learner_that_searches_nothing_trains_at_once_with_all_of_its_total(project, walk):
    project.configure(ALONE)
    project.finish()
    single = [held.job.rule for held in project.held() if held.job.experiment == "single"]
    assert sorted(single) == ["evaluate", "train_final"]
    statement = read_statement(project.results)
    assert check(statement, project.results) == []
    artifact = statement["datasets"]["tiny"]["artifacts"][
        "results/single/final/1/weights.safetensors"
    ]
    assert rules(artifact["jobs"]) == {"train_final": 1, "evaluate": 1}
    assert 0.9999 < artifact["epsilon"] <= 1.0
    summary = json.loads((project.results / "single/summary.json").read_text())
    assert summary["rungs"] == []
    assert summary["targets"][0]["r_star"] is None
    ladders = {
        picture.experiment
        for picture in pictures_of(resolve_defaults(load(["config.yaml"])))
        if picture.name == "ladder"
    }
    assert "main" in ladders
    assert "single" not in ladders
