"""Bags: HDF5 files with many rows of features, as CLAM and STAMP write one for each slide. Each is
one record, the mean of its rows, and a file that is none counts as nothing by itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import yaml
from extracted import KEYS, dataset_of, extract_part, manifest_of, open_part
from support import TINY

from dpladder.config.dataset_sections import Split, Unit
from dpladder.config.features_sections import Features
from dpladder.config.images_with_table import apart_of, as_source_text
from dpladder.config.load import load
from dpladder.data import bags
from dpladder.data.bags import bag_of
from dpladder.data.cache import FeatureCache, merge
from dpladder.data.census import check_every_record, report
from dpladder.data.prepare import survey
from dpladder.errors import BadInput

WIDTH = 4
RANDOM = np.random.default_rng(0)
ROWS = RANDOM.normal(size=(7, WIDTH)).astype(np.float16)


def bag(path: Path, name: str = "feats", rows: Any = ROWS) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        file[name] = rows
        file["coords"] = np.zeros((len(rows), 2))
    return path


@pytest.mark.parametrize("name", ["feats", "features"])
def test_a_bag_is_the_mean_of_its_finite_rows(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = ROWS.copy()
    rows[2, 1], rows[5] = np.nan, np.inf
    wanted = rows[[0, 1, 3, 4, 6]].astype(float).mean(axis=0)
    file = bag(tmp_path / "a.h5", name, rows)
    assert bag_of(file, WIDTH) == pytest.approx(wanted)
    monkeypatch.setattr(bags, "BLOCK", 2 * WIDTH)  # read in pieces
    assert bag_of(file, WIDTH) == pytest.approx(wanted)


def spoiled(folder: Path) -> dict[str, Path]:
    """Files that are no bags of this width."""
    elsewhere = bag(folder.parent / "elsewhere.h5")
    made = {
        "wide": bag(folder / "wide.h5", rows=RANDOM.normal(size=(3, WIDTH + 1))),
        "flat": bag(folder / "flat.h5", rows=np.zeros(WIDTH)),
        "words": bag(folder / "words.h5", rows=np.array([[b"x"] * WIDTH])),
        "unnamed": bag(folder / "unnamed.h5", "rows"),
        "garbage": folder / "garbage.h5",
        "cut": bag(folder / "cut.h5"),
        "linked": folder / "linked.h5",
        "claims": folder / "claims.h5",
        "group": folder / "group.h5",
    }
    made["garbage"].write_bytes(b"no bag at all")
    made["cut"].write_bytes(made["cut"].read_bytes()[:900])
    with h5py.File(made["linked"], "w") as file:
        file["feats"] = h5py.ExternalLink(str(elsewhere), "feats")
    with h5py.File(made["claims"], "w") as file:  # a few bytes that say they are very many
        file.create_dataset("feats", (2**12, WIDTH), "f4", chunks=(1024, WIDTH))
    with h5py.File(made["group"], "w") as file:
        file.create_group("feats")
    return made


def test_a_file_that_is_no_bag_counts_as_nothing_and_a_check_says_why(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bags, "LARGEST", 2**12)
    held = tmp_path / "bags"
    wrong = spoiled(held)
    bag(held / "empty.h5", rows=np.zeros((0, WIDTH)))
    bag(held / "infinite.h5", rows=np.full((2, WIDTH), np.inf))
    (held / "nothing.h5").write_bytes(b"")
    none = [*wrong, "empty", "infinite", "nothing", "absent"]
    good = [f"good{place}" for place in range(6)]
    for place, name in enumerate(good):
        bag(held / f"{name}.h5", rows=ROWS[: place + 1])
    cache, told = told_of(tmp_path, [*none, *good])
    assert (cache.labels >= 0).sum() == len(good)
    assert not np.any(cache.features[cache.labels < 0])
    seen = sorted(map(tuple, np.asarray(cache.features[cache.labels >= 0], float).round(3)))
    means = [ROWS[: place + 1].astype(float).mean(axis=0) for place in range(6)]
    assert np.asarray(seen) == pytest.approx(np.asarray(sorted(map(tuple, means))), abs=2e-3)
    assert "bag cannot be used: its feats are 5 wide: 1 (" in told
    assert "bag cannot be used: it holds no feats: 2 (" in told
    assert "bag cannot be used: it is not readable as HDF5: " in told
    assert "bag cannot be used: its feats are too many: 1 (" in told
    out, err = capfd.readouterr()
    assert "HDF5" not in out + err


def told_of(folder: Path, names: list[str], **keys: Any) -> tuple[FeatureCache, str]:
    """What a training sees of the bags of these names, two of a patient each, and what a check
    says."""
    lines = [f"{name},{'ab'[place // 2 % 2]},{place // 2}" for place, name in enumerate(names)]
    (folder / "slides.csv").write_text("\n".join(["slide,target,patient", *lines]) + "\n")
    says = {
        "bags": str(folder / "bags"),
        "table": str(folder / "slides.csv"),
        "key": "slide",
        "width": WIDTH,
    }
    reads = {"classes": ("a", "b"), "label": "target", "user": "patient"}
    dataset = dataset_of(as_source_text(says), split=Split(test=0.0), **reads, **keys)
    said = report(check_every_record(survey(dataset, KEYS)))
    manifest_of(folder, dataset)
    shard = extract_part(folder, Features(model="none", batch_size=4, dtype="float32"), "shard.h5")
    merge([shard], folder / "root", folder / "train.h5", KEYS.cache)
    return open_part(folder / "train.h5"), said


def test_slides_of_a_patient_are_one_record_the_mean_of_their_means(tmp_path: Path) -> None:
    for place, name in enumerate("abcd"):
        bag(tmp_path / "bags" / f"{name}.h5", rows=ROWS[: place + 1])
    unit = Unit(by="user", pool="mean")
    cache, _ = told_of(tmp_path, [*"abcd"], unit=unit)
    means = [ROWS[: place + 1].astype(float).mean(axis=0) for place in range(4)]
    wanted = sorted(map(tuple, [(means[0] + means[1]) / 2, (means[2] + means[3]) / 2]))
    seen = sorted(map(tuple, np.asarray(cache.features, float)))
    assert np.asarray(seen) == pytest.approx(np.asarray(wanted), abs=2e-3)


def test_threads_that_read_bags_print_nothing(tmp_path: Path) -> None:
    """HDF5 keeps a stack of errors in each thread, and prints it where nobody says otherwise."""
    bag(tmp_path / "a.h5")
    (tmp_path / "a.h5").write_bytes((tmp_path / "a.h5").read_bytes()[:900])
    code = (
        "import sys, threading; from pathlib import Path; from dpladder.data.bags import bag_of; "
        "t = threading.Thread(target=bag_of, args=(Path(sys.argv[1]), 4)); t.start(); t.join()"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "a.h5")]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (ended.stdout, ended.stderr) == ("", "")


def test_a_config_names_bags_and_how_wide_they_are(tmp_path: Path) -> None:
    (tmp_path / "bags").mkdir()
    (tmp_path / "slides.csv").write_text("slide,label\na,0\n")
    says = {"bags": f"{tmp_path}/bags", "table": f"{tmp_path}/slides.csv", "key": "slide"}

    def source(given: dict[str, Any], **features: Any) -> str:
        dataset = TINY["dataset"] | {"source": given}
        changed = {"dataset": dataset, "features": TINY["features"] | features}
        (tmp_path / "config.yaml").write_text(yaml.safe_dump(TINY | changed))
        return load([tmp_path / "config.yaml"]).main.dataset.source

    found = source(says | {"width": 1024})
    assert found.startswith("bags:")
    apart = apart_of(found)
    assert apart is not None
    assert (apart.what, apart.width, apart.folder) == ("bags", 1024, f"{tmp_path}/bags")
    assert apart_of(found.replace("bags:", "images:", 1)) is None
    with pytest.raises(BadInput, match="bags need it"):
        source(says)
    with pytest.raises(BadInput, match="give a folder of images, or one of bags"):
        source(says | {"width": 1024, "images": f"{tmp_path}/bags"})
    with pytest.raises(BadInput, match="a feature matrix needs model: none"):
        source(says | {"width": 1024}, model="efficientnet_lite0")
