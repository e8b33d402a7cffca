"""`dpladder tune`: a public network trained on public records, from images to a checkpoint that a
run reads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from dpladder import cli
from dpladder.config.features_sections import Features
from dpladder.data.backbones import encoder
from dpladder.data.datasets import open_source
from dpladder.errors import BadInput
from dpladder.learn.finetune import public_network
from dpladder.network.public import model_of

CONFIG = """
dataset:
  {{lineage: made, source: "npz:{private}", classes: [a, b], nominal_size: 40{sample}}}
features: {{model: test_efficientnet, weights: random, image_size: 32, batch_size: 8}}
privacy: {{epsilon: 1, delta: 1.0e-3}}
"""
SAMPLE = ', public_sample: "npz:{public}", public_size: 40'


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPLADDER_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def project(labels: np.ndarray | None = None, sample: str = SAMPLE) -> list[str]:
    """Two classes of images, bright above or below, and a config that names some as public."""
    rng = np.random.default_rng(0)
    for name in ("private", "public"):
        own = rng.integers(0, 2, 40) if labels is None or name == "private" else labels
        images = rng.integers(0, 120, (40, 32, 32), np.uint8)
        images[own == 0, :16] += 100
        images[own == 1, 16:] += 100
        np.savez(f"{name}.npz", images=images, labels=np.array(["a", "b", "?"])[own])
    text = CONFIG.format(private="private.npz", sample=sample.format(public="public.npz"))
    Path("config.yaml").write_text(text)
    return ["tune", "networks/tuned.safetensors", "--until", "blocks.1"]


def features_of(weights: str, until: str | None = None) -> np.ndarray:
    features = Features(
        model="test_efficientnet", weights=weights, image_size=32, batch_size=8, until=until
    )
    source = open_source("npz:private.npz")
    network = encoder(features, source, 1)
    loaded = [network.load(source.read(place), 0) for place in range(40)]
    return np.concatenate([*network.encode(np.split(np.stack(loaded), 5))])


@pytest.mark.ci
def test_a_tuned_network_is_a_checkpoint_and_differs_above_the_cut_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(public_network, "RATE", 3e-3)  # random weights have far to go
    assert cli.main([*project(), "--epochs", "6"]) == 0
    told = capsys.readouterr().out
    assert "40 public records: " in told
    assert "weights: networks/tuned.safetensors" in told
    as_it_was, tuned = features_of("random"), features_of("networks/tuned.safetensors")
    assert not np.allclose(as_it_was, tuned, atol=1e-2)
    below = (
        features_of("random", until="blocks.1"),
        features_of("networks/tuned.safetensors", until="blocks.1"),
    )
    np.testing.assert_allclose(*below, atol=1e-5)


@pytest.mark.ci
def test_a_network_is_tuned_to_the_same_bytes_again() -> None:
    words = project()
    found = []
    for _ in range(2):
        cli.main([*words, "--epochs", "2"])
        file = Path("networks/tuned.safetensors")
        found.append(file.read_bytes() if file.exists() else b"")
        file.unlink(missing_ok=True)
    assert found[0] == found[1]


@pytest.mark.ci
def test_where_no_epoch_helps_nothing_is_written(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(public_network, "RATE", 1e20)  # all is lost, in numbers that are none
    assert cli.main([*project(), "--epochs", "1"]) == 1
    assert "nothing is written" in capsys.readouterr().out
    assert not Path("networks/tuned.safetensors").exists()


@pytest.mark.ci
def test_records_without_a_class_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    cli.main([*project(np.arange(40) % 3), "--epochs", "1"])
    assert "27 public records (13 more name no class" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("sample", "words", "wanted"),
    [
        ("", [], "needs dataset.public_sample"),
        (SAMPLE, ["--epochs", "0"], "--epochs 0: it must be 1 or more."),
        (SAMPLE, ["--until", "blocks.99"], "blocks.99"),
    ],
)
def test_what_cannot_be_tuned_is_refused_with_what_can(
    capsys: pytest.CaptureFixture[str], sample: str, words: list[str], wanted: str
) -> None:
    assert cli.main([*project(sample=sample), *words]) == BadInput.exit_code
    assert wanted in capsys.readouterr().err


@pytest.mark.ci
def test_products_of_small_arrays_take_one_thread() -> None:
    """Of two, on cores that others use too, the public head took six times as long."""
    told = (
        "from dpladder import cli\nassert cli.main(['tune', 'x.pt']) == 2\nimport threadpoolctl\n"
        "print(*{pool['num_threads'] for pool in threadpoolctl.threadpool_info() "
        "if pool['internal_api'] == 'openblas'})"
    )
    alone = {name: value for name, value in os.environ.items() if "NUM_THREADS" not in name}
    ended = subprocess.run([sys.executable, "-c", told], env=alone, stdout=subprocess.PIPE)
    assert ended.stdout.strip() == b"1"


def test_a_file_that_is_there_stays(capsys: pytest.CaptureFixture[str]) -> None:
    words = project()
    Path("networks").mkdir()
    Path("networks/tuned.safetensors").write_bytes(b"mine")
    assert cli.main(words) == BadInput.exit_code
    assert "is there already" in capsys.readouterr().err
    assert Path("networks/tuned.safetensors").read_bytes() == b"mine"


def test_a_bundled_network_is_written_under_the_name_that_reads_it_back() -> None:
    state = model_of(Features(model="efficientnet_lite0", weights="bundled")).state_dict()
    from safetensors.torch import save_file

    save_file(state, "same.safetensors")
    again = model_of(Features(model="tf_efficientnet_lite0", weights="same.safetensors"))
    assert all(torch.equal(tensor, state[name]) for name, tensor in again.state_dict().items())
