"""Where answers stand, through the whole workflow: trials and tests scored by noised counts of
right answers, with articles as units."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from languages import WORDS, tiny_language_model
from support import Workspace

import dpladder
from dpladder.cli import main
from dpladder.errors import BadInput
from dpladder.use.export import export
from dpladder.use.generate import Writing, samples

CANARY = "zanzibar"


def asked(number: int, random: np.random.Generator) -> dict[str, Any]:
    """A question whose answer is the word "dog" and what follows it, in an article of two."""
    words = [str(word) for word in random.permutation([word for word in WORDS if word != "dog"])]
    place = int(random.integers(0, 8))
    words = [*words[:place], "dog", *words[place:8]]
    found = " ".join(words[place : place + 2])
    context = " ".join([*words, CANARY])
    answers = {"text": [found], "answer_start": [context.index(found)]}
    if number % 10 == 9:
        answers = {"text": [], "answer_start": []}
    return {
        "id": f"q{number}",
        "title": f"{CANARY} {number // 2}",
        "question": f"the cat {CANARY}",
        "context": context,
        "answers": answers,
    }


def write(path: Path, count: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    rows: list[Any] = [asked(number, random) for number in range(count)]
    rows += [{}, 3, rows[0] | {"id": "elsewhere", "answers": {"text": ["x"], "answer_start": [0]}}]
    path.write_text("\n".join(map(json.dumps, rows)))


@pytest.fixture(name="questions")
def _questions(project: Workspace) -> Workspace:
    write(project.folder / "asked.jsonl", 90, 0)
    model = tiny_language_model(project.folder / "model", positions=128)
    project.configure(
        {
            "task": "question_answering",
            "dataset": {
                "source": "squad:asked.jsonl",
                "user": "title",
                "nominal_size": 36,
                "classes": None,
                "unit": {"by": "user", "cap": 2},
            },
            "features": {
                "model": f"hf:{model}",
                "weights": "pretrained",
                "tokens": 128,
                "batch_size": 32,
            },
            "privacy": {"epsilon": 40.0, "lifetime": {"epsilon": 60.0}},
            "learner": {"name": "dp_finetune", "trains": "norm_and_bias", "bias": True},
            "sweep": {
                "rungs": [{"epsilon": 2.0, "trials": 2}],
                "search": {"steps": [3, 3], "expected": [1.0, 2.0]},
            },
            "fit": {"using": "pooled"},
        }
    )
    return project


@pytest.mark.long
def test_it_is_tuned_on_trained_on_and_measured_by_right_answers(questions: Workspace) -> None:
    ended = questions.finish(
        "results/privacy.json", "results/main/summary.json", "results/report.html"
    )
    assert main(["verify", "results"]) == 0
    summary = json.loads(Path("results/main/summary.json").read_text())
    test = summary["targets"][0]["test"]
    assert (test["noised"], test["perplexity"]) == (True, None)
    assert 0.0 <= test["accuracy"] <= 1.0
    assert summary["classes"] is None
    statement = json.loads(Path("results/privacy.json").read_text())
    assert statement["datasets"]["tiny"]["unit"] == "user"
    assert [one.job.rule for one in questions.held()].count("run_trial") == 2

    public = [*Path("results").rglob("*"), *Path("logs").rglob("*"), *Path(".snakemake").rglob("*")]
    assert [
        path for path in public if path.is_file() and CANARY.encode() in path.read_bytes()
    ] == []
    assert CANARY not in ended.stdout + ended.stderr
    model = dpladder.load("results/main/final/40/weights.safetensors")
    rows = [json.loads(line) for line in Path("asked.jsonl").read_text().splitlines()[:30]]
    asked = [(row["question"], row["context"]) for row in rows]
    found = model.answer([*asked, ("cat " * 200, "the dog"), ("the cat", "")])
    assert found[-2:] == [None, None]
    assert all(told in context for told, (_, context) in zip(found[:-2], asked, strict=True))
    with pytest.raises(BadInput, match="names no classes"):
        model.predict(["the cat"])
    with pytest.raises(BadInput, match="is no language model: it finds answers"):
        samples(model, "the cat", Writing())
    with pytest.raises(BadInput, match="which no form of export holds"):
        export(model, Path("out"), "torch")


@pytest.mark.long
def test_public_questions_choose_among_trials_and_measure_it_for_free(
    questions: Workspace, capfd: pytest.CaptureFixture
) -> None:
    write(Path("read.jsonl"), 20, 1)
    values = yaml.safe_load(Path("config.yaml").read_text("utf-8"))
    public = {"public_validation": "squad:read.jsonl", "public_test": "squad:read.jsonl"}
    own = {"user": None, "unit": {"by": "record", "cap": 1}, "nominal_size": 90}
    chosen = {"dataset": public | own, "sweep": {"select": {"by": "public"}}}
    questions.configure(values, chosen)
    assert main(["check", "config.yaml"]) == 0
    assert "21 that count" in capfd.readouterr().out
    questions.finish("results/privacy.json", "results/main/summary.json")
    test = json.loads(Path("results/main/summary.json").read_text())["targets"][0]["test"]
    assert (test["noised"], test["total"]) == (False, 20)
    assert test["correct"] == int(test["correct"])
