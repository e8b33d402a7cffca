"""A model that takes a user's records as one: a prediction for each user, of the mean of what can
be read, in Python, on the command line and by an export alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import pytest
from PIL import Image
from use.test_export import CONFIG, alone

import dpladder
from dpladder.cli import main
from dpladder.config.features_sections import Features
from dpladder.data.backbones import encoder
from dpladder.data.sources import Source
from dpladder.errors import BadInput
from dpladder.learn import weights
from dpladder.use import graph
from dpladder.use.card import card

MAP = {"radius": None, "length": 32.0, "constant": 0.2, "exact": False, "depths": None}
USERS = ["7", "3", "7", "3", "7"]
RANDOM = np.random.default_rng(0)


def saved(path: Path, features: Features, source: Source) -> Path:
    """A file such as train_final writes, of random weights, for users."""
    found = encoder(features, source, 1)
    network = {**features.model_dump(mode="json"), **found.facts, "width": found.width}
    inference = {"classes": ("cat", "dog"), "network": network, "map": MAP}
    config = CONFIG | {"dataset.unit": {"by": "user", "cap": 1, "pool": "mean"}}
    facts = {"inference": inference, "config": config, "target_epsilon": 1.0, "steps": 30}
    head = RANDOM.normal(size=(2, found.width + 1)).astype(np.float32)
    weights.save(path, (head,), facts, np.linspace(0, 0.3, found.width))
    return path


@pytest.fixture
def made(tmp_path: Path) -> tuple[Path, np.ndarray]:
    rows = RANDOM.normal(size=(5, 6)).astype(np.float16)
    source = Source("features", lambda index: rows[index], (), width=6)
    return saved(tmp_path / "weights.safetensors", Features(model="none"), source), rows


def test_a_prediction_is_of_the_mean_of_a_users_records(made: Any) -> None:
    file, rows = made
    model = dpladder.load(file)
    found = model.predict(rows, users=USERS)
    assert found.users == ("7", "3")
    means = [rows[own].mean(axis=0, dtype=np.float64) for own in ([0, 2, 4], [1, 3])]
    wanted = model.predict(np.array(means, np.float16))
    assert wanted.users is None
    assert np.array_equal(found.probabilities, wanted.probabilities)

    bad = rows.astype(np.float64)
    bad[[1, 3, 4]] = np.nan
    some = model.predict(bad, users=USERS)
    assert some.problems == (None, "features are not finite")
    (alone_of_two,) = model.predict(rows[[0, 2]], users=["7", "7"]).probabilities
    assert np.array_equal(some.probabilities[0], alone_of_two)
    assert np.isnan(some.probabilities[1]).all()
    with pytest.raises(BadInput, match="2 users were given for 5 records"):
        model.predict(rows, users=["7", "3"])


def test_the_command_has_a_row_for_each_user(made: Any, tmp_path: Path) -> None:
    file, rows = made
    table = pd.DataFrame(rows.astype(float)).assign(user=[*USERS[:4], None], id=[*"abcde"])
    table.to_csv(tmp_path / "new.csv", index=False)
    assert (
        main(["predict", str(file), str(tmp_path / "new.csv"), "--output", str(tmp_path / "o.csv")])
        == 0
    )
    told = pd.read_csv(tmp_path / "o.csv", dtype=str)
    assert told["user"].tolist() == ["7", "3", "record 4"]  # whose record is nobody's is by itself
    found = dpladder.load(file).predict(rows, users=[*USERS[:4], None])
    assert told["class"].tolist() == found.labels


def test_of_a_folder_the_first_folder_on_the_way_says_whose_an_image_is(tmp_path: Path) -> None:
    features = Features(model="test_vit", weights="random", image_size=32)
    file = saved(tmp_path / "weights.safetensors", features, Source("files", bytes, ()))
    ways = ["p1/s1/a.png", "p1/s2/b.png", "p2/c.png", "d.png"]
    pixels = RANDOM.integers(0, 256, (4, 32, 32, 3), np.uint8)
    for way, image in zip(ways, pixels, strict=True):
        (tmp_path / "in" / way).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(tmp_path / "in" / way)
    model = dpladder.load(file)
    _, found = model.predict_file(tmp_path / "in")
    assert found.users == (str(tmp_path / "in" / "d.png"), "p1", "p2")
    wanted = model.predict(list(pixels[[3, 0, 1, 2]]), users=["d", "p1", "p1", "p2"])
    assert np.array_equal(found.probabilities, wanted.probabilities)


def test_bags_of_a_folder_are_predicted_as_they_were_trained_on(tmp_path: Path) -> None:
    source = Source("features", bytes, (), width=6, bags=True)
    file = saved(tmp_path / "weights.safetensors", Features(model="none"), source)
    rows = RANDOM.normal(size=(4, 6)).astype(np.float16)
    for place, way in enumerate(("p1/a.h5", "p1/b.h5", "p2/c.h5")):
        (tmp_path / "in" / way).parent.mkdir(parents=True, exist_ok=True)
        with h5py.File(tmp_path / "in" / way, "w") as held:
            held["feats"] = rows[: place + 1] if place < 2 else rows[:, :5]
    model = dpladder.load(file)
    found = model.predict(tmp_path / "in")
    means = np.array([rows[: place + 1].astype(float).mean(axis=0) for place in range(2)])
    wanted = model.predict(means, users=["p1", "p1"])
    assert found.users == ("p1", "p2")
    assert found.problems == (None, "record cannot be decoded")
    assert np.array_equal(found.probabilities[0], wanted.probabilities[0])
    _, one = model.predict_file(tmp_path / "in" / "p1" / "a.h5")
    assert np.array_equal(one.probabilities, model.predict(means[:1]).probabilities)


@pytest.mark.ci
def test_an_export_says_the_same_of_a_person_by_itself(made: Any, tmp_path: Path) -> None:
    file, rows = made
    wanted = dpladder.load(file).predict(rows[:3], users=["7", "7", "7"]).probabilities[0]
    assert main(["export", str(file), str(tmp_path / "out")]) == 0
    said = alone(tmp_path / "out", f"c.together({rows[:3].astype(float).tolist()})")
    assert [said["cat"], said["dog"]] == pytest.approx(wanted.tolist(), abs=1e-6)
    assert "classifier.together(" in card(dpladder.load(file), with_header=False)


@pytest.mark.ci
def test_a_graph_takes_all_that_it_is_given_as_one_persons(made: Any, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    onnxruntime = pytest.importorskip("onnxruntime")
    file, rows = made
    model = dpladder.load(file)
    folder = tmp_path / "out"
    assert main(["export", str(file), str(folder), "--to", "onnx"]) == 0
    for count in (1, 3, 5):
        [wanted] = model.predict(rows[:count], users=["7"] * count).probabilities
        said = graph.together(folder, rows[:count])
        assert [*said.values()] == pytest.approx(wanted.tolist(), abs=1e-6)
    each = [[*row.values()] for row in graph.classify(folder, rows)]
    assert np.asarray(each) == pytest.approx(model.predict(rows).probabilities, abs=1e-6)
    session = onnxruntime.InferenceSession(folder / "model.onnx")
    [logits] = session.run(["logits"], {"inputs": rows.astype(np.float32)})
    assert logits.shape == (1, 2)
