"""Records of several classes: in every kind of source that can hold them, and as the census counts
them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from extracted import KEYS
from support import each_row

from dpladder.config.dataset_sections import Dataset, Split
from dpladder.config.label_sets import number_of
from dpladder.data.census import census, report
from dpladder.data.prepare import Survey, survey
from dpladder.data.stops import reason_to_stop
from dpladder.learn.counts import units_by_class

NAMES = ("cat", "dog", "bird")
PETS = [["cat"], ["dog", "cat"], [], ["bird", "dog", "cat"], ["fish", "dog"], ["dog", "dog"]]
HELD = {0: {0}, 1: {0, 1}, 5: {1}}
"""What counts of these where a record may be of two classes: one has none, one too many, one
something that is none."""


def numbered(pets: list[str]) -> list[int]:
    """As a row of an array, filled up."""
    return [*[(*NAMES, "fish").index(pet) for pet in pets], *[-1] * 3][:3]


def written(folder: Path, kind: str) -> str:
    x, path = np.arange(6.0).reshape(-1, 1), folder / f"t.{kind.partition(' ')[0]}"
    bars = ["|".join(pets) for pets in PETS]
    if kind == "csv":
        pd.DataFrame({"x": x[:, 0], "label": bars}).to_csv(path, index=False)
    elif kind == "parquet":
        pq.write_table(pa.table({"x": x[:, 0], "label": PETS}), path)
    elif kind == "jsonl":
        pd.DataFrame({"text": list("abcdef"), "label": PETS}).to_json(
            path, orient="records", lines=True
        )
    elif kind == "npz":
        np.savez(path, features=x, labels=np.array([numbered(pets) for pets in PETS]))
    elif kind == "npz names":
        np.savez(path, features=x, labels=bars)
    else:
        with h5py.File(path, "w") as file:
            file["features"], file["labels"] = x, np.array([numbered(pets) for pets in PETS])
    return f"{path.suffix[1:]}:{path}"


def dataset(source: str, **more: Any) -> Dataset:
    given = {"classes": NAMES, "labels": 2, "split": Split(test=0.0, validation=0.0)} | more
    return Dataset(lineage="pets", source=source, nominal_size=6, **given)


def looked(source: str, **more: Any) -> Survey:
    return survey(dataset(source, **more), KEYS)


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl", "npz", "npz names", "hdf5"])
def test_a_record_is_of_each_class_that_its_label_names(kind: str, tmp_path: Path) -> None:
    columns = ("x",) if kind in ("csv", "parquet") else ()
    found = looked(written(tmp_path, kind), columns=columns)
    wanted = [number_of(HELD.get(index, ()), 3) for index in range(len(PETS))]
    assert [row.label for row in sorted(each_row(found.rows), key=lambda row: row.index)] == wanted
    assert {text for _, text in found.problems} == {
        "label is not in dataset.classes, or it has more than dataset.labels"
    }


@pytest.mark.parametrize("kind", [bool, np.uint8, np.int64, np.float32])
def test_an_array_of_truth_values_has_a_column_for_each_class(kind: type, tmp_path: Path) -> None:
    held = np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0]], kind)
    np.savez(tmp_path / "t.npz", features=np.arange(3.0).reshape(-1, 1), labels=held)
    found = looked(f"npz:{tmp_path / 't.npz'}")
    labels = [row.label for row in sorted(each_row(found.rows), key=lambda row: row.index)]
    assert labels == [number_of({0, 2}, 3), -1, 1]


def test_of_two_classes_whole_numbers_are_their_numbers(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "t.npz",
        features=np.arange(2.0).reshape(-1, 1),
        labels=np.array([[0, 1], [1, -1]]),
    )
    found = looked(f"npz:{tmp_path / 't.npz'}", classes=NAMES[:2])
    labels = [row.label for row in sorted(each_row(found.rows), key=lambda row: row.index)]
    assert labels == [number_of({0, 1}, 2), 1]


def test_the_order_of_labels_decides_nothing(tmp_path: Path) -> None:
    for name, label in (("one", "cat|dog"), ("other", " dog | cat | cat ")):
        pd.DataFrame({"x": [1.0], "label": [label]}).to_csv(tmp_path / f"{name}.csv", index=False)
    one, other = (looked(f"csv:{tmp_path / name}.csv", columns=("x",)) for name in ("one", "other"))
    assert [row.label for row in each_row(one.rows)] == [row.label for row in each_row(other.rows)]


def test_a_source_of_single_labels_is_the_same_data_whether_or_not_it_may_have_several(
    tmp_path: Path,
) -> None:
    pd.DataFrame({"x": [1.0, 2.0], "label": ["cat", "bird"]}).to_csv(
        tmp_path / "t.csv", index=False
    )
    one, other = (
        looked(f"csv:{tmp_path / 't.csv'}", columns=("x",), labels=most) for most in (1, 2)
    )
    assert each_row(one.rows) == each_row(other.rows)


def test_a_record_counts_in_each_of_its_classes_and_once_in_all(tmp_path: Path) -> None:
    found = census(looked(written(tmp_path, "csv"), columns=("x",)))
    assert found.parts == {"train": {"cat": 2, "dog": 2, "bird": 0}}
    assert found.counting == {"train": 3}
    assert "3 that count: cat 2, dog 2, bird 0" in report(found)
    assert found.labels == {"": 1, "bird|dog|cat": 1, "fish|dog": 1}


def test_a_class_that_all_share_is_nearly_all_of_one_class() -> None:
    units = np.arange(400, dtype=np.uint64).repeat(2).view(np.uint8).reshape(400, 16)
    mixed, shared = ([{0}, {1}, {0, 1}, {1, 2}], [{0}, {0, 1}, {0, 2}, {0, 1}])
    for sets, stops in ((mixed, False), (shared, True)):
        labels = np.array([number_of(own, 3) for own in sets] * 100)
        why = reason_to_stop(units_by_class(units, labels, 3, 2), 400, "lost or lopsided", 2)
        assert (why is not None) == stops
