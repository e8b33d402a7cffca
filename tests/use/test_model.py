"""A model in use: records go the way that they went in the workflow, and what does not fit is
refused in one sentence."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import re
import subprocess
import sys
import traceback
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import h5py
import numpy as np
import pandas as pd
import pytest
import timm
import torch
from data.test_hostile import CUT, DAMAGE, damaged
from extracted import dataset_of, extract_part, manifest_of, open_part
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from PIL import Image

import dpladder
from dpladder.cli import main
from dpladder.config.dataset_sections import Split
from dpladder.config.features_sections import Features
from dpladder.data.centre import Map
from dpladder.data.depths import depths_by_name, stored_depths
from dpladder.errors import BadInput
from dpladder.learn import weights
from dpladder.learn.scorers import ClassScorer
from dpladder.network.public import _random_network

RANDOM = np.random.default_rng(0)
IMAGES = RANDOM.integers(0, 256, (11, 20, 24, 3), np.uint8)
MAP = {"radius": None, "length": 32.0, "constant": 0.2, "exact": False, "depths": None}


def extracted(folder: Path, arrays: dict[str, Any], features: Features) -> Any:
    """The cache that a run would make, in the order of the source."""
    np.savez(folder / "data.npz", **arrays, labels=np.arange(11) % 3)
    source = f"npz:{folder / 'data.npz'}"
    manifest = manifest_of(folder, dataset_of(source, classes=3, split=Split(test=0.0)))
    cache = open_part(extract_part(folder, features))
    order = np.argsort(manifest.index)
    return cache, np.asarray(cache.features)[order]


def model_of(
    folder: Path, cache: Any, classes: tuple[str, ...] = ("a", "b", "c"), **more: Any
) -> Path:
    """A file such as train_final writes, of random weights."""
    known = stored_depths(cache.attrs)
    depths = depths_by_name([known[0][0], known[-1][0]], known, 32.0) if known else None
    mapped = MAP | {"depths": depths and depths.facts}
    width = depths.width if depths else int(cache.attrs["width"])
    inference = {
        "task": "classification",
        "classes": classes,
        "network": dict(cache.attrs),
        "map": mapped,
    } | more
    head = RANDOM.normal(size=(len(classes), width + 1)).astype(np.float32)
    mean = np.linspace(0.0, 1.0, width)
    weights.save(folder / "weights.safetensors", (head,), {"inference": inference}, mean)
    return folder / "weights.safetensors"


@pytest.fixture
def matrix(tmp_path: Path) -> tuple[Path, np.ndarray, np.ndarray]:
    """A model on features of one's own, those features, and what a run made of them."""
    rows = RANDOM.normal(size=(11, 6))
    cache, stored = extracted(tmp_path, {"features": rows}, Features(model="none"))
    return model_of(tmp_path, cache), rows, stored


def expected(file: Path, stored: np.ndarray) -> list[int]:
    """The workflow's own way from a stored row to a class."""
    layers, mean, facts = weights.load_with_mean(file)
    seen = facts["inference"]["map"]["depths"]
    known = stored_depths(facts["inference"]["network"])
    depths = seen and depths_by_name(seen["layers"], known, seen["length"])
    return ClassScorer().predict(layers, Map(mean, **{**MAP, "depths": depths})(stored)).tolist()


def test_features_are_predicted_as_evaluate_does_to_the_last_bit(matrix: Any) -> None:
    file, rows, stored = matrix
    model = dpladder.load(file)
    mean = weights.load_with_mean(file)[1]
    assert np.array_equal(model.preprocess(rows), Map(mean, **MAP)(stored))
    found = model.predict(rows)
    assert found.labels == ["abc"[place] for place in expected(file, stored)]
    assert found.probabilities.sum(axis=1) == pytest.approx(1.0)


def saved(folder: Path, **preprocessing: Any) -> Path:
    """A tiny network as timm saves one for others, whose config says how images are prepared."""
    timm.models.save_for_hf(_random_network("test_vit"), folder)
    config = json.loads((folder / "config.json").read_text())
    config["pretrained_cfg"] |= preprocessing
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.ci
def test_a_network_in_a_folder_is_used_with_the_preprocessing_that_its_config_says(
    tmp_path: Path,
) -> None:
    folders = [
        saved(tmp_path / "own", mean=[0.1, 0.2, 0.3], input_size=[3, 48, 48]),
        saved(tmp_path / "plain"),
    ]
    found = {}
    for folder in folders:
        (tmp_path / folder.name / "run").mkdir()
        features = Features(model=f"local-dir:{folder}", weights="pretrained", image_size=48)
        found[folder.name] = extracted(folder / "run", {"images": IMAGES}, features)
    cache, stored = found["own"]
    assert "mean (0.1, 0.2, 0.3)" in str(cache.attrs["transform"]).replace("[", "(").replace(
        "]", ")"
    )
    assert not np.allclose(stored, found["plain"][1], atol=1e-3)

    file = model_of(tmp_path, cache)
    (tmp_path / "own").rename(tmp_path / "moved")
    with pytest.raises(BadInput, match="own is not here: give its path as the network"):
        dpladder.load(file)
    wanted = ["abc"[place] for place in expected(file, stored)]
    assert dpladder.load(file, tmp_path / "moved").predict(list(IMAGES)).labels == wanted


@pytest.mark.parametrize("damage", ["no weights", "code", "another network", "no json"])
def test_a_folder_that_is_no_network_is_refused_and_its_code_is_not_run(
    damage: str, tmp_path: Path
) -> None:
    folder = saved(tmp_path / "network")
    for weights_file in folder.glob("*.bin"):
        weights_file.unlink()
    for weights_file in folder.glob("*.safetensors"):
        weights_file.unlink()
    if damage == "code":
        torch.save(Marked(str(tmp_path / "ran")), folder / "pytorch_model.bin")
    if damage == "another network":
        torch.save(_random_network("test_resnet").state_dict(), folder / "pytorch_model.bin")
    if damage == "no json":
        (folder / "config.json").write_text("{")
    features = Features(model=f"local-dir:{folder}", weights="pretrained")
    with pytest.raises(BadInput, match=r"local-dir:.* cannot be read"):
        extracted(tmp_path, {"images": IMAGES}, features)
    assert not (tmp_path / "ran").exists()


class Marked:
    """Leaves a mark where it is unpickled."""

    def __init__(self, mark: str) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return Path.touch, (Path(self.mark),)


def test_a_network_of_a_hub_that_cannot_be_reached_is_one_message_without_a_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(BadInput, match=r"could not be fetched.*needs your own token") as refused:
        extracted(
            tmp_path,
            {"images": IMAGES},
            Features(model="hf-hub:nobody/nothing", weights="pretrained"),
        )
    assert "hf_secret" not in "".join(traceback.format_exception(refused.value))


@pytest.mark.ci
def test_images_are_predicted_as_evaluate_does_to_the_last_bit_however_they_come(
    tmp_path: Path,
) -> None:
    features = Features(batch_size=4, image_size=32)
    cache, stored = extracted(tmp_path, {"images": IMAGES}, features)
    file = model_of(tmp_path, cache)
    wanted = ["abc"[place] for place in expected(file, stored)]
    (tmp_path / "pictures").mkdir()
    for place, pixels in enumerate(IMAGES):
        Image.fromarray(pixels).save(tmp_path / "pictures" / f"{place:02}.png")
    paths = sorted((tmp_path / "pictures").iterdir())
    model = dpladder.load(file)
    for images in (
        IMAGES,
        paths,
        tmp_path / "pictures",
        tmp_path / "data.npz",
        [*map(Image.open, paths)],
    ):
        assert model.predict(images).labels == wanted
    assert np.array_equal(model.preprocess(IMAGES[3:5]), model.preprocess(IMAGES)[3:5])


@pytest.mark.ci
def test_the_command_writes_tables_and_says_what_cannot_be_read(
    tmp_path: Path, capsys: Any
) -> None:
    cache, stored = extracted(tmp_path, {"images": IMAGES}, Features(batch_size=4, image_size=32))
    file = model_of(tmp_path, cache)
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    Image.fromarray(IMAGES[0]).save(pictures / "a.png")
    (pictures / "b.png").write_text("no image")
    output = tmp_path / "out.parquet"
    assert (
        main(
            [
                "predict",
                str(file),
                str(pictures),
                str(tmp_path / "data.npz"),
                "--output",
                str(output),
            ]
        )
        == 0
    )
    table = pd.read_parquet(output)
    assert [*table.columns] == ["input", "record", "class", "problem", "p(a)", "p(b)", "p(c)"]
    assert table["problem"].tolist() == ["", "record cannot be decoded", *[""] * 11]
    assert table["class"].tolist()[2:] == ["abc"[place] for place in expected(file, stored)]
    assert table.loc[1, ["p(a)", "p(b)", "p(c)"]].isna().all()
    assert main(["predict", str(file), str(pictures / "a.png")]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[1].split(",")[2] == table["class"][0]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            RANDOM.normal(size=(2, 7)),
            "takes features of 6 numbers for each record; given were features of 7",
        ),
        ([IMAGES[0]], "takes features of 6 numbers for each record; given were image files"),
        (3, "give paths, a sequence of images"),
    ],
)
def test_what_the_model_does_not_take_is_refused(matrix: Any, rows: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        dpladder.load(matrix[0]).predict(rows)


@pytest.mark.ci
def test_a_model_of_images_takes_no_features_and_no_other_network(tmp_path: Path) -> None:
    cache, _ = extracted(tmp_path, {"images": IMAGES}, Features(batch_size=4, image_size=32))
    with pytest.raises(
        BadInput, match="takes images, which efficientnet_lite0 reads; given were features"
    ):
        dpladder.load(model_of(tmp_path, cache)).predict(_features(tmp_path))
    cache.attrs["weights_sha256"] = "0" * 64
    with pytest.raises(BadInput, match="not those that this model was trained with"):
        dpladder.load(model_of(tmp_path, cache)).predict(IMAGES)
    cache.attrs["weights"] = "local"
    with pytest.raises(BadInput, match="a checkpoint of your own: give its path"):
        dpladder.load(model_of(tmp_path, cache))


def _features(folder: Path) -> Path:
    np.savez(folder / "features.npz", features=np.eye(3))
    return folder / "features.npz"


def test_a_table_of_numbers_may_have_other_columns_beside_them(matrix: Any, tmp_path: Path) -> None:
    file, rows, stored = matrix
    table = pd.DataFrame(rows, columns=[f"x{place}" for place in range(6)]).assign(
        label="unknown", id=range(11)
    )
    wanted = ["abc"[place] for place in expected(file, stored)]
    table.to_csv(tmp_path / "rows.csv", index=False)
    table.to_parquet(tmp_path / "rows.parquet", index=False)
    for name in ("rows.csv", "rows.parquet"):
        found = dpladder.load(file).predict(tmp_path / name)
        assert found.labels == wanted
        assert found.ids == tuple(map(str, range(11)))


def test_a_threshold_names_the_second_of_two_classes_from_a_probability_on(
    tmp_path: Path, capsys: Any
) -> None:
    rows = RANDOM.normal(size=(11, 6))
    cache, _ = extracted(tmp_path, {"features": rows}, Features(model="none"))
    file = model_of(tmp_path, cache, classes=("well", "ill"))
    np.savez(tmp_path / "new.npz", features=rows)
    said = dpladder.load(file).predict(rows)
    threshold = float(np.sort(said.probabilities[:, 1])[3])
    command = ["predict", str(file), str(tmp_path / "new.npz"), "--output", str(tmp_path / "o.csv")]
    assert main([*command, "--threshold", repr(threshold)]) == 0
    named = pd.read_csv(tmp_path / "o.csv")["class"].tolist()
    assert named == ["ill" if p >= threshold else "well" for p in said.probabilities[:, 1]]
    assert named.count("ill") == 8
    assert "were not calibrated" in capsys.readouterr().err
    assert main([*command, "--threshold", "1"]) == 2
    assert "above 0 and below 1" in capsys.readouterr().err


def test_a_threshold_of_several_classes_is_refused(matrix: Any) -> None:
    said = dpladder.load(matrix[0]).predict(matrix[1])
    with pytest.raises(BadInput, match=r"for two classes or for findings, .*a, b, c"):
        said.labels_at(0.5)


@pytest.mark.parametrize(("columns", "told"), [([], True), (["b", "a"], False)])
def test_where_columns_are_known_by_their_place_a_person_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], columns: list[str], told: bool
) -> None:
    rows = RANDOM.normal(size=(11, 2))
    cache, _ = extracted(tmp_path, {"features": rows}, Features(model="none"))
    file = model_of(tmp_path, cache, columns=columns)
    pd.DataFrame(rows, columns=["b", "a"]).to_csv(tmp_path / "rows.csv", index=False)
    np.savez(tmp_path / "rows.npz", features=rows)
    for name, by_place in (("rows.csv", told), ("rows.npz", False)):
        assert main(["predict", str(file), str(tmp_path / name)]) == 0
        assert ("in the order of then" in capsys.readouterr().err) == by_place


def test_chosen_columns_are_found_by_name_wherever_they_stand(tmp_path: Path) -> None:
    rows = RANDOM.normal(size=(11, 2))
    cache, stored = extracted(tmp_path, {"features": rows}, Features(model="none"))
    file = model_of(tmp_path, cache, columns=["b", "a"])
    wanted = ["abc"[place] for place in expected(file, stored)]
    table = pd.DataFrame({"a": rows[:, 1], "patient": ["x"] * 11, "b": rows[:, 0]})
    table.to_csv(tmp_path / "rows.csv", index=False, sep=";")
    table.to_parquet(tmp_path / "rows.parquet")
    for name in ("rows.csv", "rows.parquet"):
        assert dpladder.load(file).predict(tmp_path / name).labels == wanted


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no.png", "does not exist"),
        ("notes.md", "of no kind that is known"),
        ("empty", "holds no images"),
        ("words.csv", "features of 6 numbers for each record; given were features of 2"),
    ],
)
def test_inputs_that_are_none_are_named(
    matrix: Any, tmp_path: Path, name: str, message: str, capsys: Any
) -> None:
    (tmp_path / "notes.md").write_text("a")
    (tmp_path / "empty").mkdir()
    (tmp_path / "words.csv").write_text("a,b\nx,y\n")
    assert main(["predict", str(matrix[0]), str(tmp_path / name)]) == 2
    assert message in capsys.readouterr().err


def test_a_folder_of_results_names_its_only_model(matrix: Any, tmp_path: Path, capsys: Any) -> None:
    final = tmp_path / "results/main/final/1"
    final.mkdir(parents=True)
    for path in (tmp_path / "results", final / "weights.safetensors"):  # before any run
        assert main(["predict", str(path), str(tmp_path / "data.npz")]) == 2
        assert "Start dpladder run first" in capsys.readouterr().err
    matrix[0].rename(final / "weights.safetensors")
    assert main(["predict", str(tmp_path / "results"), str(tmp_path / "data.npz")]) == 0
    (tmp_path / "results/main/final/2").mkdir()
    (tmp_path / "results/main/final/2/weights.safetensors").touch()
    assert main(["predict", str(tmp_path / "results"), str(tmp_path / "data.npz")]) == 2
    assert "Name one file" in capsys.readouterr().err


@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_weights_that_are_no_numbers_predict_nothing(tmp_path: Path, odd: float) -> None:
    cache, _ = extracted(
        tmp_path, {"features": RANDOM.normal(size=(11, 2))}, Features(model="none")
    )
    file = model_of(tmp_path, cache)
    (head,), mean, facts = weights.load_with_mean(file)
    head[0, 0] = odd
    weights.save(file, (head,), facts, mean)
    with pytest.raises(BadInput, match="no numbers, so it predicts nothing"):
        dpladder.load(file)


def test_weights_of_a_trial_are_no_model(tmp_path: Path) -> None:
    weights.save(tmp_path / "weights.safetensors", (np.zeros((2, 2), np.float32),), {})
    with pytest.raises(BadInput, match="is no final model"):
        dpladder.load(tmp_path / "weights.safetensors")


@pytest.mark.ci
def test_a_released_model_is_measured_on_a_lineage_of_other_people(
    matrix: tuple[Path, np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    """What a private source in evaluate.also is refused for: books, limit and statement of their
    own, and one answer."""
    rows = RANDOM.normal(size=(900, 6))
    found = np.array(dpladder.load(matrix[0]).predict(rows).labels)
    labels = np.where(np.arange(900) % 3 == 0, "none of them", found)
    np.savez(tmp_path / "other.npz", features=rows, labels=labels)
    example = Path(__file__).parents[2] / "examples" / "private_shift.py"

    def ask() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(example), matrix[0].name, "other.npz", "--lineage", "others"],
            cwd=tmp_path,
            env=os.environ | {"DPLADDER_HOME": str(tmp_path / "home")},
            capture_output=True,
            text=True,
            check=False,
        )

    ended = ask()
    told = re.search(r"accuracy (\S+) \+- (\S+) at epsilon = (\S+) of", ended.stdout)
    assert told, ended.stderr
    accuracy, sd, epsilon = map(float, told.groups())
    assert 0 < abs(accuracy - 2 / 3) < 6 * sd < 0.07
    assert 0.3 < epsilon < 0.5
    page = (tmp_path / "results-others" / "privacy.md").read_text("utf-8")
    assert "Lineage others" in page
    assert "(1, 1e-05)" in page
    assert "paid for" in ask().stderr


def _table(path: Path, rows: np.ndarray) -> None:
    if path.suffix == ".parquet":
        pd.DataFrame(rows, columns=[f"x{place}" for place in range(rows.shape[1])]).to_parquet(path)
    elif path.suffix == ".npz":
        np.savez(path, features=rows)
    elif path.suffix == ".csv":
        pd.DataFrame(rows).to_csv(path, index=False)
    else:
        with h5py.File(path, "w") as file:
            file["features"] = rows


@pytest.mark.ci
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@example(name="plain", suffix=".csv", damage=[(0.0, 34), (0.5, 34)], cut=None)
@given(
    name=st.sampled_from(["=1+1", "@SUM(1)", "\033[2J", "a\nb", "<script>", "plain"]),
    suffix=st.sampled_from([".parquet", ".npz", ".csv", ".h5"]),
    damage=DAMAGE | st.just([]),
    cut=CUT,
)
def test_whatever_is_to_be_predicted_ends_in_one_message_or_a_table_of_text(
    name: str, suffix: str, damage: list[tuple[float, int]], cut: float | None, matrix: Any
) -> None:
    file, rows, _ = matrix
    with TemporaryDirectory() as folder, contextlib.chdir(folder):
        given, told = Path(name + suffix), Path("told.csv")
        _table(given, rows)
        damaged(given, damage, cut)
        code = main(["predict", str(file), str(given), "--output", str(told)])
        assert code == 0 if told.exists() else code == BadInput.exit_code
        if not told.exists():
            return
        with told.open(newline="") as table:
            cells = [
                cell
                for row in csv.DictReader(table)
                for key, cell in row.items()
                if key[:2] != "p("
            ]
    assert all(cell.isprintable() and cell[:1] not in ("=", "+", "-", "@") for cell in cells)


@pytest.mark.parametrize("content", [None, b"", b"no weights", b"\x08\0\0\0\0\0\0\0{}      "])
def test_a_file_that_is_no_model_is_told_in_one_sentence(
    content: bytes | None, tmp_path: Path
) -> None:
    file = tmp_path / "weights.safetensors"
    if content is not None:
        file.write_bytes(content)
    wanted = "does not exist" if content is None else "holds no weights of dpladder"
    with pytest.raises(BadInput, match=wanted):
        dpladder.load(file)
