"""A model of findings: a probability of each by itself, in Python, on the command line, by an
export alone and as one graph; and what its card says."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from counted import counts_of
from scipy.special import expit
from use.test_export import CONFIG, alone

import dpladder
from dpladder.cli import main
from dpladder.config.features_sections import Features
from dpladder.data.backbones import encoder
from dpladder.data.centre import Map
from dpladder.data.sources import Source
from dpladder.learn import weights
from dpladder.learn.interface import Constants
from dpladder.learn.trainings import scorer_of
from dpladder.methods.dp_gd import Descent
from dpladder.use import graph
from dpladder.use.card import card

NAMES = ("edema", "mass", "effusion")
MAP = {"radius": None, "length": 32.0, "constant": 0.2, "exact": False, "depths": None}


@pytest.fixture
def made(tmp_path: Path) -> tuple[Path, np.ndarray]:
    """A file such as train_final writes, and rows of features."""
    random = np.random.default_rng(0)
    rows = random.normal(size=(8, 6)).astype(np.float16)
    source = Source("features", lambda index: rows[index], (), width=6)
    features = Features(model="none")
    network = {**encoder(features, source, 1).facts, **features.model_dump(mode="json"), "width": 6}
    inference = {"classes": NAMES, "network": network, "map": MAP}
    config = CONFIG | {"dataset.labels": "many"}
    facts = {"inference": inference, "config": config, "target_epsilon": 1.0, "steps": 30}
    head = random.normal(size=(3, 7)).astype(np.float32) / 10
    weights.save(tmp_path / "weights.safetensors", (head,), facts, np.linspace(0, 0.3, 6))
    return tmp_path / "weights.safetensors", rows


def test_probabilities_are_those_that_a_test_counts(made: Any) -> None:
    file, rows = made
    constants = Constants(1, 3, 7, labels="many")
    layers, mean, _ = weights.load_with_mean(file)
    logits = scorer_of(Descent(), constants).logits(layers, Map(mean, **MAP)(rows))
    found = dpladder.load(file).predict(rows)
    assert found.probabilities == pytest.approx(expit(logits), rel=1e-12)
    said = [
        "|".join(name for name, one in zip(NAMES, row, strict=True) if one > 0) for row in logits
    ]
    assert found.labels == said
    assert len({*said}) > 3


def test_the_command_has_a_probability_of_each_finding(made: Any, tmp_path: Path) -> None:
    file, rows = made
    np.savez(tmp_path / "new.npz", features=rows)
    output = tmp_path / "out.csv"
    assert main(["predict", str(file), str(tmp_path / "new.npz"), "--output", str(output)]) == 0
    table = pd.read_csv(output, keep_default_na=False)
    found = dpladder.load(file).predict(rows)
    assert table["class"].tolist() == found.labels
    assert table[[f"p({name})" for name in NAMES]].to_numpy() == pytest.approx(
        found.probabilities, abs=1e-4
    )


@pytest.mark.few(1)
@pytest.mark.ci
@pytest.mark.parametrize("form", ["torch", "onnx"])
def test_an_export_says_the_same_by_itself(made: Any, form: str, tmp_path: Path) -> None:
    file, rows = made
    wanted = dpladder.load(file).predict(rows).probabilities
    if form == "onnx":
        pytest.importorskip("onnxruntime")
        pytest.importorskip("onnxscript")
    assert main(["export", str(file), str(tmp_path / "out"), "--to", form]) == 0
    if form == "onnx":
        each = graph.classify(tmp_path / "out", rows)
        with pytest.raises(ValueError, match="trained on records, not on people"):
            graph.together(tmp_path / "out", rows)
    else:
        each = alone(tmp_path / "out", f"c.classify({rows.astype(float).tolist()})")
    found = [[row[name] for name in NAMES] for row in each]
    assert np.asarray(found) == pytest.approx(wanted, abs=1e-3)


def test_a_card_tells_each_finding_and_what_noise_hides(made: Any) -> None:
    file, _ = made
    counts = np.full((3, 2, 2), 500.0)
    counts[2, 1] = 3.0
    told = counts_of(NAMES, "findings", by_finding=(counts, 5.0))
    file.with_name("metrics.json").write_text(json.dumps(asdict(told)))
    words = card(dpladder.load(file), with_header=False)
    assert "It tells 3 findings, each by itself: edema, mass, effusion." in words
    assert "the share of known findings that are told right" in words
    share = r"50\.0% \(46\.\d–53\.\d\)"
    mean = r"50\.0% \(47\.\d–52\.\d\)"
    assert re.search(rf"\| edema \| {share} \| {share} \| {mean} \|", words)
    assert re.search(rf"\| effusion \| hidden by noise \| {share} \| hidden by noise \|", words)
