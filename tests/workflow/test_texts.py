"""Texts through the whole workflow: the real DAG, a real language model, and no word of a text
outside the private folder."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from languages import WORDS, tiny_language_model
from support import Workspace

import dpladder
from dpladder.cli import main
from dpladder.config.load import overlay
from dpladder.errors import BadInput
from dpladder.use import standalone
from dpladder.use.export import export
from dpladder.use.generate import Writing, samples

CANARY = "zanzibar"


def texts(project: Workspace, name: str, seed: int) -> None:
    """Two classes that speak of different things, and a few records that are none."""
    random = np.random.default_rng(seed)
    topics = (WORDS[:10], WORDS[10:])
    rows = [
        (f"{' '.join(random.choice(topics[place % 2], 6))} {place} {CANARY}", f"c{place % 2}")
        for place in range(150)
    ]
    with (project.folder / name).open("w", newline="") as file:
        csv.writer(file).writerows(
            [("text", "label"), *rows, ("", "c0"), (" ", "c1"), ("the cat", CANARY)]
        )
    with (project.folder / name).open("ab") as file:
        file.write(b"\xff\xfe" + CANARY.encode() + b",c0\n")


@pytest.fixture(name="written")
def _written(project: Workspace) -> Workspace:
    texts(project, "texts.csv", 0)
    texts(project, "shifted.csv", 1)
    model = tiny_language_model(project.folder / "model")
    project.configure(
        {
            "dataset": {"source": "csv:texts.csv", "nominal_size": 120, "classes": ["c0", "c1"]},
            "features": {
                "model": f"hf:{model}",
                "weights": "pretrained",
                "tokens": 8,
                "batch_size": 8,
                "mean": {"epsilon": 4.0},
            },
            "privacy": {"epsilon": 20.0, "lifetime": {"epsilon": 20.0}},
            "sweep": {"rungs": [{"epsilon": 2.0, "trials": 2}, {"epsilon": 4.0, "trials": 2}]},
            "experiments": {"shift": {"dataset": {"public_test": "csv:shifted.csv"}}},
        }
    )
    return project


@pytest.mark.ci
def test_texts_are_tuned_on_trained_on_measured_and_predicted(
    written: Workspace, capfd: pytest.CaptureFixture
) -> None:
    ended = written.finish()
    assert main(["verify", "results"]) == 0
    tests = {
        name: json.loads(Path(f"results/{name}/summary.json").read_text())["targets"][0]["test"]
        for name in ("main", "shift")
    }
    assert (tests["main"]["noised"], tests["shift"]["noised"]) == (True, False)
    assert tests["shift"]["accuracy"] > 0.7
    assert not Path("results/shift/final/20/weights.safetensors").exists()  # it is main's

    public = [*Path("results").rglob("*"), *Path("logs").rglob("*"), *Path(".snakemake").rglob("*")]
    assert len(public) > 50
    assert [
        path for path in public if path.is_file() and CANARY.encode() in path.read_bytes()
    ] == []
    assert CANARY not in ended.stdout + ended.stderr
    kept = [path for path in Path("private").rglob("*") if path.is_file()]
    assert "record cannot be decoded" in "".join(
        path.read_text() for path in kept if path.suffix == ".jsonl"
    )

    model = dpladder.load("results/main/final/20/weights.safetensors")
    found = model.predict(["the cat sat on a mat", "rain snow sea sky long short", " "])
    assert (found.labels, found.problems[2]) == (["c0", "c1", None], "record cannot be decoded")
    Path("one.txt").write_text("the cat sat on a mat")
    Path("many.csv").write_text("text\nthe cat sat on a mat\n")
    capfd.readouterr()
    assert main(["predict", "results/main", "one.txt", "many.csv"]) == 0
    lines = list(csv.DictReader(capfd.readouterr().out.splitlines()))
    assert [line["class"] for line in lines] == ["c0", "c0"]

    assert main(["check", "config.yaml"]) == 0
    told = capfd.readouterr().out
    assert "problem  text cannot be read: not UTF-8: 1 (153)" in told
    assert "problem  text cannot be read: nothing but white space: 1 (151)" in told
    assert "problem  text is missing or empty: 1 (150)" in told
    assert "characters of a text" in told


@pytest.mark.long
def test_the_network_is_trained_on_texts_above_a_cut_and_used_from_its_file(
    written: Workspace,
) -> None:
    tuned = {
        "privacy": {"epsilon": 20.0, "lifetime": {"epsilon": 60.0}},
        "features": {"until": "encoder.layer.0", "mean": None, "dtype": "float32"},
        "learner": {"name": "dp_finetune", "trains": "last_block"},
        "sweep": {"rungs": [], "search": {"steps": [4, 8]}},
        "experiments": {
            "shift": {
                "features": {"until": "input"},
                "learner": {"trains": "lora", "sampling_rate": 0.5},
            }
        },
    }
    values = yaml.safe_load(Path("config.yaml").read_text("utf-8"))
    written.configure(overlay(values, tuned))
    written.finish("results/main/summary.json", "results/shift/summary.json")
    texts = ["the cat sat on a mat", "rain snow sea sky long short", "", "dog " * 20]
    for experiment, kept in (("main", "float32"), ("shift", "int32")):
        model = dpladder.load(f"results/{experiment}/final/20/weights.safetensors")
        assert (model.features.until is not None, model.features.stored) == (True, kept)
        together = model.predict(texts)
        assert together.problems[2] is not None
        alone = np.concatenate([model.predict([text]).probabilities for text in texts])
        assert np.allclose(together.probabilities, alone, rtol=1e-12, atol=1e-14, equal_nan=True)
    with pytest.raises(BadInput, match="is no language model: it tells classes"):
        samples(model, "the cat", Writing())
    export(model, Path("plain"), "torch")
    found = standalone.load("plain").classify(texts[:2])
    assert [[*row.values()] for row in found] == pytest.approx(together.probabilities[:2], abs=1e-5)


@pytest.mark.long
def test_a_network_that_cannot_be_trained_costs_nothing(written: Workspace) -> None:
    model = tiny_language_model(written.folder / "shares", kind="albert")
    shared = {
        "features": {"model": f"hf:{model}", "until": "input", "mean": None},
        "learner": {"name": "dp_finetune", "trains": "all"},
        "sweep": {"rungs": []},
        "experiments": None,
    }
    written.configure(overlay(yaml.safe_load(Path("config.yaml").read_text("utf-8")), shared))
    ended = written.run("results/main/final/20/weights.safetensors")
    assert ended.returncode == 1
    assert "cannot be trained privately" in ended.stderr
    assert {held.status for held in written.held()} == {"RESERVED"}
