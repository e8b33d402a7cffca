"""Private trials that choose among candidates, through the whole workflow."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dpladder.cli import main
from dpladder.learn import weights
from dpladder.report.summary import read_test
from dpladder.search.prior import prior_of_learner

pytestmark = pytest.mark.ci

LAYERS = [["blocks.2"], ["blocks.1", "blocks.3"], "last"]
NAMES = ("blocks.2", "blocks.1 + blocks.3", "last")
FINAL = "results/main/final/20/weights.safetensors"
CHOOSE: dict[str, Any] = {
    "dataset": {"source": "folder:photos", "classes": ["dark", "light"], "nominal_size": 60},
    "features": {
        "model": "efficientnet_lite0",
        "image_size": 32,
        "batch_size": 8,
        "mean": {"epsilon": 2.0},
    },
    "privacy": {"epsilon": 20.0, "lifetime": {"epsilon": 40.0}},
    "sweep": {
        "rungs": [{"epsilon": 4.0, "trials": 3}, {"epsilon": 6.0, "trials": 2}],
        "choose": {"features": {"layers": LAYERS}},
        "select": {"share": 0.5},
    },
    "fit": {"using": "pooled"},
}


LEARNERS = ("dp_gd", "dp_ls")


def test_the_learner_that_trials_choose_trains_the_model_that_is_released(photos):
    sweep = {
        "rungs": [{"epsilon": 6.0, "trials": 2}],
        "choose": {"learner": {"name": [*LEARNERS]}},
        "select": {"share": 0.5},
    }
    features = CHOOSE["features"] | {"layers": "last"}
    photos.configure(CHOOSE | {"sweep": sweep, "features": features})
    photos.finish("results/privacy.json", "results/main/summary.json", "results/report.html")
    assert main(["verify", "results"]) == 0
    # each record is of what Snakemake knows the job by, whichever candidate it ran as
    assert "Changed since" not in photos.finish("results/report.html").stderr
    spends = [
        spend for held in photos.held() if held.job.rule == "run_trial" for spend in held.spends
    ]
    assert Counter(spend.label for spend in spends) == {"weights": 2, "score": 2}

    [best] = [json.loads(Path("results/main/rungs/0/best.json").read_text())]
    winner = best["best"]["candidate"]
    trained_by = [
        weights.load(Path(f"results/main/rungs/0/trials/{trial}/weights.safetensors"))[1]["learner"]
        for trial in range(2)
    ]
    assert tuple(one["name"] for one in trained_by) == LEARNERS
    _, facts = weights.load(Path(FINAL))
    assert facts["candidate"] == winner
    assert facts["config"]["learner"]["name"] == LEARNERS[winner]
    # r near the middle of its own learner's prior: the other's is 70 times as large, or as small
    median = prior_of_learner(LEARNERS[winner], True).median
    assert facts["kappa"] == pytest.approx(median, rel=0.05)

    summary = json.loads(Path("results/main/summary.json").read_text())
    assert summary["learner"] == LEARNERS[winner]
    assert summary["targets"][0]["candidate"] == LEARNERS[winner]
    # each in its own learner's words
    first, second = summary["rungs"][0]["trials"]
    assert first["eta"] is not None
    assert second["ridge"] is not None
    assert f"{LEARNERS[winner]} was chosen" in Path("results/main/figures/choice.svg").read_text()
    assert f"among {'; '.join(LEARNERS)}" in Path("results/report.html").read_text()
    assert main(["predict", FINAL, "photos", "--output", "predictions.csv"]) == 0
    lines = [line.split(",") for line in Path("predictions.csv").read_text().splitlines()[1:]]
    assert len(lines) == 80


SIZES = (32, 40)


def test_each_network_extracts_and_centres_its_own_features(photos):
    photos.configure(
        CHOOSE
        | {
            "features": {
                "model": "efficientnet_lite0",
                "batch_size": 8,
                "layers": "last",
                "mean": {"epsilon": 2.0},
            },
            "sweep": {
                "rungs": [{"epsilon": 6.0, "trials": 2}],
                "choose": {"features": {"image_size": [*SIZES]}},
                "select": {"share": 0.5},
            },
        }
    )
    photos.finish("results/privacy.json", "results/main/summary.json", "results/report.html")
    assert main(["verify", "results"]) == 0
    charged = Counter(held.job.rule for held in photos.held())
    assert (charged["estimate_mean"], charged["run_trial"], charged["count_units"]) == (2, 2, 0)
    means = {held.job.experiment for held in photos.held() if held.job.rule == "estimate_mean"}
    assert means == {"main", "main-network-2"}

    _, facts = weights.load(Path(FINAL))
    winner = facts["candidate"]
    assert facts["inference"]["network"]["image_size"] == SIZES[winner]
    summary = json.loads(Path("results/main/summary.json").read_text())
    assert [trial["candidate"] for trial in summary["rungs"][0]["trials"]] == [
        f"{size} pixels" for size in SIZES
    ]
    assert summary["targets"][0]["candidate"] == f"{SIZES[winner]} pixels"
    assert summary["targets"][0]["test"]["accuracy"] > 0.7
    assert main(["predict", FINAL, "photos", "--output", "predictions.csv"]) == 0
    lines = [line.split(",") for line in Path("predictions.csv").read_text().splitlines()[1:]]
    assert sum(f"/{named}/" in record for _, record, named, *_ in lines) > 60
    assert "Changed since" not in photos.finish("results/report.html").stderr


def test_every_candidate_is_charged_and_the_best_by_noised_counts_is_released(photos, capsys):
    photos.configure(CHOOSE)
    assert main(["plan", "config.yaml"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"3 candidates ({'; '.join(NAMES)}) are tried" in said
    photos.finish("results/privacy.json", "results/main/summary.json", "results/report.html")
    assert main(["verify", "results"]) == 0

    # two spends for each of five trials: its training and its count
    charged = Counter(held.job.rule for held in photos.held())
    assert charged["run_trial"] == 5
    spends = [
        spend for held in photos.held() if held.job.rule == "run_trial" for spend in held.spends
    ]
    assert Counter(spend.label for spend in spends) == {"weights": 5, "score": 5}

    rungs = [
        json.loads(Path(f"results/main/rungs/{rung}/best.json").read_text()) for rung in range(2)
    ]
    tried = [[trial["candidate"] for trial in rung["trials"]] for rung in rungs]
    assert tried[0] == [0, 1, 2]
    by_score = sorted(rungs[0]["trials"], key=lambda trial: -trial["score"])
    assert tried[1] == [trial["candidate"] for trial in by_score[:2]]
    scores = [trial["score"] for rung in rungs for trial in rung["trials"]]
    # noise lies on a grid of eighths of its deviation or finer, and raw counts are whole
    assert any(score % 1 for score in scores)
    winner = rungs[1]["best"]["candidate"]
    _, facts = weights.load(Path(FINAL))
    assert facts["candidate"] == winner
    expected = LAYERS[winner] if isinstance(LAYERS[winner], list) else [LAYERS[winner]]
    assert facts["inference"]["map"]["depths"]["layers"] == expected

    summary = json.loads(Path("results/main/summary.json").read_text())
    [target] = summary["targets"]
    assert target["candidate"] == NAMES[winner]
    assert charged["evaluate"] == 1
    tested = read_test("results/main/final/20/metrics.json")
    assert target["test"]["accuracy"] == pytest.approx(tested.accuracy)
    assert tested.accuracy > 0.7
    assert [trial["candidate"] for trial in summary["rungs"][0]["trials"]] == [*NAMES]
    page = Path("results/report.html").read_text()
    assert f"{NAMES[winner]} was chosen" in Path("results/main/figures/choice.svg").read_text()
    assert "Which candidate was chosen" in page

    # the model is used as it was trained
    assert main(["predict", FINAL, "photos", "--output", "predictions.csv"]) == 0
    lines = [line.split(",") for line in Path("predictions.csv").read_text().splitlines()[1:]]
    assert sum(f"/{named}/" in record for _, record, named, *_ in lines) > 60
