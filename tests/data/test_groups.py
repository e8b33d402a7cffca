"""Where a record's group stands, in every kind of source that can say it; and groups in feature
caches."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
from extracted import KEYS, dataset_of, extract_part, manifest_of, open_part

from dpladder.config.dataset_sections import TrainedGroup
from dpladder.config.features_sections import Features
from dpladder.config.records import Grouping
from dpladder.data.cache import merge
from dpladder.data.datasets import open_source
from dpladder.data.layout import Layout
from dpladder.errors import BadInput

NAMES = ("north", "south")
TABLE = pd.DataFrame(
    {"age": [1.0, 2.0, 3.0], "label": ["ill", "well", "ill"], "region": ["south", "north", "moon"]}
)


def written(folder: Path, kind: str) -> str:
    path = folder / f"t.{kind}"
    if kind == "csv":
        TABLE.to_csv(path, index=False)
    elif kind == "parquet":
        TABLE.to_parquet(path)
    elif kind == "jsonl":
        TABLE.assign(text=["a", "b", "c"]).to_json(path, orient="records", lines=True)
    elif kind == "npz":
        np.savez(
            path,
            features=TABLE[["age"]],
            labels=TABLE["label"].tolist(),
            region=TABLE["region"].tolist(),
        )
    else:
        with h5py.File(path, "w") as file:
            file["features"] = TABLE[["age"]].to_numpy()
            file["labels"] = TABLE["label"].tolist()
            file["region"] = TABLE["region"].tolist()
    return f"{kind}:{path}"


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl", "npz", "hdf5"])
def test_a_column_holds_the_group_and_is_no_feature(kind: str, tmp_path: Path) -> None:
    columns = ("age",) if kind in ("csv", "parquet") else ()
    name = written(tmp_path, kind)
    source = open_source(name, Layout(columns, Grouping(NAMES, "region")))
    given = [value.decode() if isinstance(value, bytes) else value for value in source.groups or ()]
    assert given == ["south", "north", "moon"]
    assert source.width == (0 if kind == "jsonl" else 1)
    assert open_source(name, Layout(columns)).groups is None


@pytest.mark.parametrize("kind", ["csv", "npz"])
def test_a_column_that_is_not_there_is_told(kind: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="has no place"):
        open_source(written(tmp_path, kind), Layout(("age",), Grouping(NAMES, "place")))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_beside_a_column_of_groups_features_are_named(kind: str, tmp_path: Path) -> None:
    """Else predictions would be made of a table whose group is a feature."""
    with pytest.raises(BadInput, match=r"dataset\.columns must name"):
        open_source(written(tmp_path, kind), Layout(grouping=Grouping(NAMES, "region")))


@pytest.mark.parametrize("level", [1, 2])
def test_a_folder_on_the_way_is_the_group_and_the_other_the_class(
    level: int, tmp_path: Path
) -> None:
    for group, name in (("south", "ill"), ("north", "well")):
        way = [group, name] if level == 1 else [name, group]
        folder = tmp_path.joinpath(*way, "deeper")
        folder.mkdir(parents=True)
        (folder / "a.txt").write_text("words")
    (tmp_path / "ill" / "b.txt").parent.mkdir(exist_ok=True)
    (tmp_path / "ill" / "b.txt").write_text("words")
    source = open_source(f"texts:{tmp_path}", Layout(grouping=Grouping(NAMES, level=level)))
    found = dict(
        zip(
            map(str, source.files or ()),
            zip(source.labels, source.groups or (), strict=True),
            strict=True,
        )
    )
    assert {pair for file, pair in found.items() if "deeper" in file} == {
        ("ill", "south"),
        ("well", "north"),
    }
    [lost] = [pair for file, pair in found.items() if "deeper" not in file]
    assert lost == (("", "ill") if level == 1 else ("ill", None))  # neither is a group


def test_groups_lie_beside_the_features_of_their_records(tmp_path: Path) -> None:
    rows = 90
    names = [("north", "south", "moon")[place % 3] for place in range(rows)]
    np.savez(
        tmp_path / "data.npz",
        features=np.arange(rows, dtype=np.float32)[:, None] + 1.0,
        labels=np.arange(rows) % 2,
        region=names,
    )
    group = TrainedGroup(names=NAMES, column="region")
    dataset = dataset_of(f"npz:{tmp_path / 'data.npz'}", classes=2, group=group)
    manifest_of(tmp_path, dataset)
    features = Features(model="none", dtype="float32")
    shards = [
        extract_part(tmp_path, features, f"{shard}.h5", shard=shard, shards=2) for shard in (0, 1)
    ]
    merge(shards, tmp_path / "root", tmp_path / "whole.h5", KEYS.cache)
    found = open_part(tmp_path / "whole.h5")
    assert found.groups is not None
    assert len(found.groups) > 40
    for features, label, group in zip(found.features, found.labels, found.groups, strict=True):
        # of the record in its source; blank where it counts as nothing
        place = round(float(features[0])) - 1
        assert (group, label) == ((-1, -1) if place < 0 else (place % 3, place % 2))
