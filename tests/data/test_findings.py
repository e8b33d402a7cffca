"""Records of many findings (`dataset.labels: many`): as every kind of source may give them, what
counts that is unknown, and what the census says."""

from __future__ import annotations

import json
from collections.abc import Callable
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
from dpladder.config.label_sets import (
    ABSENT,
    PRESENT,
    UNKNOWN,
    number_of_findings,
    states_by_finding,
)
from dpladder.data.census import census, report, units_by_class
from dpladder.data.layout import as_attrs, from_attrs, layout_of
from dpladder.data.prepare import Survey, survey
from dpladder.data.stops import reason_to_stop
from dpladder.errors import BadInput

NAMES = ("edema", "mass", "effusion")
VALUES = [(1, 0, -1), (0, 0, 0), (None, None, None), (None, 1, 0), (2, 0, 0)]
KNOWN = [(PRESENT, ABSENT, UNKNOWN), (ABSENT,) * 3, None, (UNKNOWN, PRESENT, ABSENT), None]
"""What these are: of one nothing is known, and one holds what is none of 1, 0, -1."""


def number(states: tuple[int, ...] | None) -> int:
    return -1 if states is None else number_of_findings(states)


def columns() -> dict[str, Any]:
    held = pd.DataFrame(VALUES, columns=[*NAMES], dtype=float)
    return {"x": np.arange(5.0), **held}


def csv(path: Path) -> str:
    pd.DataFrame(columns()).to_csv(path, index=False)
    return "csv"


def parquet(path: Path) -> str:
    table = {name: pa.array([row[place] for row in VALUES]) for place, name in enumerate(NAMES)}
    pq.write_table(pa.table({"x": np.arange(5.0), **table}), path)
    return "parquet"


def lines(path: Path) -> str:
    each = [
        dict(zip(NAMES, row, strict=True)) | {"text": f"t{at}"} for at, row in enumerate(VALUES)
    ]
    path.write_text("".join(json.dumps(one) + "\n" for one in each))
    return "jsonl"


def arrays(path: Path) -> str:
    held = {name: np.array(values) for name, values in columns().items() if name != "x"}
    with path.open("wb") as file:
        np.savez(file, features=np.arange(5.0).reshape(-1, 1), **held)
    return "npz"


def dataset(source: str, **more: Any) -> Dataset:
    given = {"classes": NAMES, "labels": "many", "split": Split(test=0.0)} | more
    return Dataset(lineage="chests", source=source, nominal_size=5, **given)


def looked(source: str, **more: Any) -> Survey:
    return survey(dataset(source, **more), KEYS)


def numbers(found: Survey) -> list[int]:
    return [row.label for row in sorted(each_row(found.rows), key=lambda row: row.index)]


@pytest.mark.parametrize("write", [csv, parquet, lines, arrays])
def test_a_column_holds_each_class(write: Callable[[Path], str], tmp_path: Path) -> None:
    source = f"{write(tmp_path / 't')}:{tmp_path / 't'}"
    found = looked(source, label=NAMES)
    assert numbers(found) == [number(states) for states in KNOWN]
    assert found.source.width in (0, 1)  # a finding is no feature
    assert {text for _, text in found.problems} == {
        "no class is known, or one is not 1, 0, -1 or blank"
    }


def test_the_order_of_columns_is_that_of_the_classes(tmp_path: Path) -> None:
    csv(tmp_path / "t")
    found = looked(f"csv:{tmp_path / 't'}", label=NAMES[::-1], classes=("a", "b", "c"))
    assert numbers(found)[0] == number((UNKNOWN, ABSENT, PRESENT))


@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_rows_of_arrays_have_a_value_for_each_class(kind: type, tmp_path: Path) -> None:
    held = np.array([[1, 0, -1], [0, 0, 0], [-1, -1, -1], [2, 0, 0]], kind)
    np.savez(tmp_path / "t.npz", features=np.arange(4.0).reshape(-1, 1), labels=held)
    with h5py.File(tmp_path / "t.hdf5", "w") as file:
        file["features"], file["labels"] = np.arange(4.0).reshape(-1, 1), held
    for name in ("npz", "hdf5"):
        assert numbers(looked(f"{name}:{tmp_path / f't.{name}'}")) == [
            number(states) for states in (*KNOWN[:2], None, None)
        ]


NAMED = ["edema|mass", "No Finding", "", "-1", "mass | hernia", "effusion"]
HELD = [{0, 1}, set(), None, None, {1}, {2}]


def of(held: set[int] | None) -> int:
    return number(None if held is None else tuple(int(place in held) for place in range(3)))


def test_names_stand_between_bars_and_other_findings_count_as_none(tmp_path: Path) -> None:
    table = pd.DataFrame({"x": np.arange(6.0), "Finding Labels": NAMED})
    table.to_csv(tmp_path / "t.csv", index=False)
    found = looked(f"csv:{tmp_path / 't.csv'}", label="Finding Labels")
    assert numbers(found) == [of(held) for held in HELD]
    assert census(found).labels == {"No Finding": 1, "hernia": 1, "-1": 1}


def test_names_stand_in_a_list_that_may_be_empty(tmp_path: Path) -> None:
    held = [["edema", "mass"], [], None, ["hernia"]]
    pq.write_table(pa.table({"x": np.arange(4.0), "label": held}), tmp_path / "t.parquet")
    found = looked(f"parquet:{tmp_path / 't.parquet'}")
    assert numbers(found) == [of(one) for one in ({0, 1}, set(), None, set())]


@pytest.mark.parametrize(
    ("unknown", "blank", "first", "third", "fourth"),
    [
        ("ignore", None, (1, 0, 2), None, (2, 1, 0)),
        (0, None, (1, 0, 0), (0, 0, 0), (0, 1, 0)),
        (1, None, (1, 0, 1), (1, 1, 1), (1, 1, 0)),
        ("ignore", 0, (1, 0, 2), (0, 0, 0), (0, 1, 0)),
        (1, 0, (1, 0, 1), (0, 0, 0), (0, 1, 0)),
        (1, "ignore", (1, 0, 1), None, (2, 1, 0)),
    ],
)
def test_what_is_unknown_counts_as_the_config_says(
    unknown: Any, blank: Any, first: Any, third: Any, fourth: Any, tmp_path: Path
) -> None:
    csv(tmp_path / "t")
    found = looked(f"csv:{tmp_path / 't'}", label=NAMES, unknown=unknown, blank=blank)
    one, _, other, another, wrong = numbers(found)
    assert [one, other, another] == [number(first), number(third), number(fourth)]
    assert wrong == -1  # whatever is unknown


@pytest.mark.parametrize(
    "label", [{"edema": 1}, [1, 0], [1, 0, 0.5], [1, 0, [0]], 7.5, [[]], "x" * 9]
)
def test_what_a_hostile_line_holds_is_its_own_record_alone(label: Any, tmp_path: Path) -> None:
    rows = [{"text": "a", "label": label}, {"text": "b", "label": ["mass"]}]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    first, second = numbers(looked(f"jsonl:{tmp_path / 't.jsonl'}"))
    assert first in (-1, of(set()))
    assert second == of({1})


def test_a_column_that_is_missing_is_told(tmp_path: Path) -> None:
    csv(tmp_path / "t")
    with pytest.raises(BadInput, match=r"has no nodule.*dataset\.label"):
        looked(f"csv:{tmp_path / 't'}", label=(*NAMES[:2], "nodule"))


def test_a_manifest_remembers_the_columns() -> None:
    layout = layout_of(dataset("csv:t.csv", label=NAMES))
    assert from_attrs(as_attrs(layout), labelled=True) == layout


def test_the_census_counts_each_finding(tmp_path: Path) -> None:
    csv(tmp_path / "t")
    found = census(looked(f"csv:{tmp_path / 't'}", label=NAMES))
    assert found.parts == {"train": {"edema": 1, "mass": 1, "effusion": 0}}
    assert "3 that count: edema 1, mass 1, effusion 0" in report(found)


def test_data_without_any_finding_cannot_be_meant() -> None:
    units = np.arange(800, dtype=np.uint64).view(np.uint8).reshape(400, 16)

    def stops(present: int, state: int = PRESENT, rest: int = ABSENT) -> bool:
        some, none = (number_of_findings((one, rest)) for one in (state, rest))
        labels = np.array([some] * present + [none] * (400 - present))
        counts = units_by_class(units, labels, 2, "many")
        return reason_to_stop(counts, 400, "lost or lopsided", "many") is not None

    assert stops(0)
    assert stops(30)
    assert not stops(60)
    assert stops(400, rest=PRESENT)  # nobody lacks any
    assert stops(30, ABSENT, PRESENT)
    assert not stops(60, ABSENT, PRESENT)


def test_every_digit_of_nothing_is_unknown() -> None:
    assert all(not known.any() for _, known in states_by_finding(np.array([-1]), 39))
