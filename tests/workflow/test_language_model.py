"""A language model through the whole workflow: trials and tests scored by clipped losses with noise, and samples of it."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from languages import WORDS, tiny_causal_model
from support import Workspace

import dpladder
from dpladder.cli import main
from dpladder.errors import BadInput

pytestmark = pytest.mark.long

CANARY = "zanzibar"


@pytest.fixture(name="spoken")
def _spoken(project: Workspace) -> Workspace:
    """Speeches of so many speakers, each of whom has a habit that all share: words come in the list's order."""
    random = np.random.default_rng(0)
    lines = []
    for place in range(160):
        first = random.integers(0, 14)
        text = " ".join(WORDS[first : first + 6]) + f" {CANARY}"
        lines.append({"text": text, "user": f"u{place // 2}"})
    lines += [{"text": "", "user": "u1"}, {"text": CANARY, "user": "u2"}]
    (project.folder / "speeches.jsonl").write_text("\n".join(map(json.dumps, lines)))
    model = tiny_causal_model(project.folder / "model")
    project.configure(
        {
            "task": "language_model",
            "dataset": {
                "source": "jsonl:speeches.jsonl", "columns": ["user"], "nominal_size": 64, "classes": None,
                "unit": {"by": "user", "cap": 2},
            },
            "features": {
                "model": f"hf:{model}", "weights": "pretrained", "tokens": 12, "batch_size": 8,
            },
            "privacy": {"epsilon": 40.0, "lifetime": {"epsilon": 40.0}},
            "learner": {"name": "dp_finetune", "trains": "all", "optimizer": "adam"},
            "sweep": {
                "rungs": [{"epsilon": 2.0, "trials": 2}],
                "search": {"steps": [20, 20], "expected": [1.0, 2.0], "eta": [0.001, 0.5]},
            },
            "fit": {"using": "pooled"},
        }
    )  # fmt: skip
    return project


def test_it_is_tuned_on_trained_on_measured_by_perplexity_and_writes(
    spoken: Workspace, capfd: pytest.CaptureFixture
) -> None:
    ended = spoken.finish("results/privacy.json", "results/main/summary.json", "results/report.html")
    assert main(["verify", "results"]) == 0
    summary = json.loads(Path("results/main/summary.json").read_text())
    found = summary["targets"][0]["test"]["perplexity"]
    assert found["most"] == pytest.approx(math.log(24))
    assert found["value"] == pytest.approx(math.exp(found["loss"]))
    assert found["low"] < found["value"] < found["high"] <= 24.1
    assert found["high"] < 15  # knowing nothing is 24
    assert [one.job.rule for one in spoken.held()].count("run_trial") == 2
    assert "perplexity" in Path("results/main/summary.csv").read_text()

    public = [*Path("results").rglob("*"), *Path("logs").rglob("*"), *Path(".snakemake").rglob("*")]
    assert [path for path in public if path.is_file() and CANARY.encode() in path.read_bytes()] == []
    assert CANARY not in ended.stdout + ended.stderr

    file = "results/main/final/40/weights.safetensors"
    capfd.readouterr()
    asked = ["generate", file, "the cat", "--tokens", "5", "--samples", "2", "--seed", "3"]
    assert main(asked) == 0
    first = capfd.readouterr()
    assert first.out.count("the cat") == 2
    assert "post-processing, free" in first.err
    assert main(asked) == 0
    assert capfd.readouterr().out == first.out
    with pytest.raises(BadInput, match="names no classes"):
        dpladder.load(file).predict(["the cat"])
