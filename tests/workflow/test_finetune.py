"""Training the network itself, through the whole workflow: one cached trunk, rungs, targets,
statement, resumption, use."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import dpladder
from dpladder.cli import main
from dpladder.data.cache import open_cache
from dpladder.learn import weights
from dpladder.privacy.ledger.home import open_home, subkey

CLASSES = ("blue", "green", "red")
TUNED = {
    "dataset": {"source": "folder:images", "nominal_size": 60, "classes": list(CLASSES)},
    "features": {
        "model": "test_efficientnet",
        "weights": "random",
        "image_size": 32,
        "until": "blocks.3",
        "dtype": "float16",
    },
    "learner": {"name": "dp_finetune", "trains": "last_block", "bias": True},
    "sweep": {"rungs": [{"epsilon": 0.3, "trials": 1}, {"epsilon": 0.6, "trials": 1}]},
    "final": {"targets": [1.0, 2.0]},
    "experiments": {
        "adapted": {
            "learner": {
                "trains": "lora",
                "lora": {"rank": 2},
                "optimizer": "adam",
                "sampling_rate": 0.5,
            },
            "sweep": {"rungs": []},
            "final": {"targets": [1.0]},
        },
        "free": {
            "learner": {
                "name": "hyfree_finetune",
                "trains": "last_block",
                "bias": True,
                "steps": 20,
            },
            "sweep": {"rungs": []},
            "final": {"targets": [1.0]},
        },
    },
}
FINAL = Path("results/main/final/2/weights.safetensors")
FREE = Path("results/free/final/1/weights.safetensors")
LEARNERS = {"main": "dp_finetune", "adapted": "dp_finetune", "free": "hyfree_finetune"}


def draw_images(seed: int = 0) -> None:
    """Of one colour each, under so much noise that a random network tells them apart all the
    same."""
    random = np.random.default_rng(seed)
    for channel, name in enumerate(reversed(CLASSES)):
        folder = Path("images", name)
        folder.mkdir(parents=True)
        for number in range(30):
            pixels = random.integers(0, 128, (32, 32, 3), np.uint8)
            pixels[..., channel] += 100
            Image.fromarray(pixels).save(folder / f"{number}.png")


@pytest.fixture
def tuned(project):
    draw_images()
    project.configure(TUNED)
    project.finish("results/privacy.json", *(f"results/{name}/summary.json" for name in LEARNERS))
    return project


@pytest.mark.ci
def test_a_network_is_tuned_through_the_workflow(project) -> None:
    """One training of it; all that is made of several is left to the night."""
    draw_images()
    one = {"sweep": {"rungs": []}, "final": {"targets": [2.0]}, "experiments": {}}
    project.configure({**TUNED, **one})
    project.finish("results/privacy.json")
    assert main(["verify", "results"]) == 0
    assert Counter(held.job.rule for held in project.held()) == {"train_final": 1, "evaluate": 1}
    _, facts = weights.load(FINAL)
    assert facts["tensors"][0].startswith("network.blocks.4.")


@pytest.mark.long
def test_a_network_is_tuned_from_data_to_statement_and_used_from_its_file_alone(tuned) -> None:
    assert main(["verify", "results"]) == 0
    assert Counter(held.job.rule for held in tuned.held()) == {
        "run_trial": 2,
        "train_final": 4,
        "evaluate": 4,
    }
    # The trunk ran once for all.
    assert not any(Path(f"results/{name}/features").exists() for name in ("adapted", "free"))

    found, facts = weights.load(FINAL)
    network = facts["inference"]["network"]
    assert (network["model"], network["until"]) == ("test_efficientnet", "blocks.3")
    assert len(network["weights_sha256"]) == 64
    assert "mean" in network["transform"]
    assert facts["tensors"][0].startswith("network.blocks.4.")
    assert facts["tensors"][-1] == "head.weight"
    assert found[-1].shape == (3, 257)
    _, adapted = weights.load(Path("results/adapted/final/1/weights.safetensors"))
    assert {name.rsplit(".", 2)[1] for name in adapted["tensors"][:-1]} == {"down", "up"}

    (path,) = tuned.folder.glob("private/tiny/features/*/test.h5")
    cache = open_cache(path, subkey(open_home(create=False), "cache"))
    for file in (FINAL, FREE):
        model = dpladder.load(file)
        logits = model.logits(np.asarray(cache.features))
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        odds /= odds.sum(axis=1, keepdims=True)
        told = model.predict("images")
        assert told.classes == CLASSES
        # Rows lie elsewhere in their batches here, which float64 rounds in another way in its last
        # digits.
        apart = np.abs(odds[:, None] - told.probabilities[None]).max(axis=2).min(axis=1)
        assert apart.max() < 1e-12

    assert main(["export", str(FREE), "exported"]) == 0
    assert "above its layer blocks.3" in Path("exported/README.md").read_text()

    for experiment, learner in LEARNERS.items():
        summary = json.loads(Path(f"results/{experiment}/summary.json").read_text())
        assert summary["learner"] == learner
        assert all(0.999 * one["target_epsilon"] < one["epsilon"] for one in summary["targets"])

    held, released = tuned.held(), FINAL.read_bytes()
    FINAL.unlink()
    tuned.finish(str(FINAL))
    assert FINAL.read_bytes() == released
    assert tuned.held() == held
