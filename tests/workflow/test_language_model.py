"""A language model through the whole workflow: trials and tests scored by clipped losses with
noise, and samples of it."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import yaml
from languages import WORDS, tiny_causal_model
from support import Workspace
from transformers import AutoModelForCausalLM, AutoTokenizer

import dpladder
from dpladder.cli import main
from dpladder.config.load import overlay
from dpladder.errors import BadInput
from dpladder.use.generate import Writing, samples

pytestmark = pytest.mark.long

CANARY = "zanzibar"


def speeches(count: int, random: np.random.Generator) -> list[dict[str, str]]:
    firsts = random.integers(0, 14, count)
    return [
        {"text": " ".join([*WORDS[first : first + 6], CANARY]), "user": f"u{place // 2}"}
        for place, first in enumerate(firsts)
    ]


@pytest.fixture(name="spoken")
def _spoken(project: Workspace) -> Workspace:
    """Speeches of so many speakers, each of whom has a habit that all share: words come in the
    list's order."""
    lines = [
        *speeches(160, np.random.default_rng(0)),
        {"text": "", "user": "u1"},
        {"text": CANARY, "user": "u2"},
    ]
    (project.folder / "speeches.jsonl").write_text("\n".join(map(json.dumps, lines)))
    model = tiny_causal_model(project.folder / "model")
    project.configure(
        {
            "task": "language_model",
            "dataset": {
                "source": "jsonl:speeches.jsonl",
                "columns": ["user"],
                "nominal_size": 64,
                "classes": None,
                "unit": {"by": "user", "cap": 2},
            },
            "features": {
                "model": f"hf:{model}",
                "weights": "pretrained",
                "tokens": 12,
                "batch_size": 8,
            },
            "privacy": {"epsilon": 40.0, "lifetime": {"epsilon": 40.0}},
            "learner": {"name": "dp_finetune", "trains": "all", "optimizer": "adam"},
            "sweep": {
                "rungs": [{"epsilon": 2.0, "trials": 2}],
                "search": {"steps": [20, 20], "expected": [1.0, 2.0], "eta": [0.001, 0.5]},
            },
            "fit": {"using": "pooled"},
        }
    )
    return project


def test_it_is_tuned_on_trained_on_measured_by_perplexity_and_writes(
    spoken: Workspace, capfd: pytest.CaptureFixture
) -> None:
    """And measured on other people's texts, whose words come in any order."""
    ended = spoken.finish(
        "results/privacy.json", "results/main/summary.json", "results/report.html"
    )
    assert main(["verify", "results"]) == 0
    summary = json.loads(Path("results/main/summary.json").read_text())
    assert "perplexity" in Path("results/report.html").read_text()
    found = summary["targets"][0]["test"]["perplexity"]
    assert found["most"] == pytest.approx(math.log(24))
    assert found["value"] == pytest.approx(math.exp(found["loss"]))
    assert found["low"] < found["value"] < found["high"] <= 24.1
    assert found["high"] < 15  # knowing nothing is 24
    assert [one.job.rule for one in spoken.held()].count("run_trial") == 2
    assert "perplexity" in Path("results/main/summary.csv").read_text()

    public = [*Path("results").rglob("*"), *Path("logs").rglob("*"), *Path(".snakemake").rglob("*")]
    assert [
        path for path in public if path.is_file() and CANARY.encode() in path.read_bytes()
    ] == []
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
    assert main(["export", file, "plain"]) == 0
    network, cut = (
        AutoModelForCausalLM.from_pretrained("plain"),
        AutoTokenizer.from_pretrained("plain"),
    )
    ids = network.generate(
        **cut("the cat", return_tensors="pt"), max_new_tokens=5, do_sample=False
    )[0]
    (written,) = samples(dpladder.load(file), "the cat", Writing(5, temperature=0.0))
    assert cut.decode(ids, skip_special_tokens=True) == written
    assert "Perplexity on held-out data" in Path("plain/README.md").read_text()
    with pytest.raises(BadInput, match="names no classes"):
        dpladder.load(file).predict(["the cat"])


def test_documents_are_cut_and_public_ones_choose_among_trials_and_measure_it_for_free(
    spoken: Workspace, capfd: pytest.CaptureFixture
) -> None:
    random = np.random.default_rng(1)
    for name, count in (("letters", 90), ("heard", 6), ("read", 7)):
        said = speeches(3 * count, random)
        lines = [
            {"text": " ".join(one["text"] for one in said[3 * at : 3 * at + 3])}
            for at in range(count)
        ]
        lines += [{"text": ""}, {"text": "the"}]
        (spoken.folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)))
    values = yaml.safe_load(Path("config.yaml").read_text("utf-8"))
    dataset = {
        "source": "jsonl:letters.jsonl",
        "columns": [],
        "spans": True,
        "unit": {"by": "document", "cap": 2},
        "public_validation": "jsonl:heard.jsonl",
        "public_test": "jsonl:read.jsonl",
    }
    spoken.configure(overlay(values, {"dataset": dataset, "sweep": {"select": {"by": "public"}}}))
    assert main(["check", "config.yaml"]) == 0
    told = capfd.readouterr().out
    assert "over its unit's cap" in told
    spoken.finish("results/report.html")
    assert main(["verify", "results"]) == 0
    statement = json.loads(Path("results/privacy.json").read_text())
    assert statement["datasets"]["tiny"]["unit"] == "document"
    page = Path("results/privacy.md").read_text()
    assert "differentially private for each document" in page
    assert "each document, of which at most 2 spans count" in page
    summary = json.loads(Path("results/main/summary.json").read_text())
    trials = summary["rungs"][0]["trials"]
    # spans of public documents, all of them
    assert [trial["counted"] for trial in trials] == [20, 20]
    assert all(0.0 < trial["score"] < 20 for trial in trials)
    test = summary["targets"][0]["test"]
    assert not test["noised"]
    assert test["perplexity"]["low"] == test["perplexity"]["value"] == test["perplexity"]["high"]
    assert sorted(one.job.rule for one in spoken.held()) == [
        "run_trial",
        "run_trial",
        "train_final",
    ]
    public = [
        path for folder in ("results", "logs") for path in Path(folder).rglob("*") if path.is_file()
    ]
    assert [path for path in public if CANARY.encode() in path.read_bytes()] == []
