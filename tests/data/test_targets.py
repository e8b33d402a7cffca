"""Numbers as targets, in every kind of source: each record's label is its place in the public
range, whatever other records hold."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from extracted import KEYS, manifest_of
from PIL import Image
from support import each_row

from dpladder.config.dataset_sections import Dataset, NumberTarget, Split, Unit
from dpladder.config.images_with_table import as_source_text
from dpladder.config.label_sets import NUMBER, TARGET_STEPS, number_of_target
from dpladder.data import csv_rows
from dpladder.data.census import census, check_every_record, report
from dpladder.data.prepare import Survey, survey
from dpladder.data.reading import ABOVE, BELOW, WRONG_LABEL
from dpladder.errors import BadInput

ENDS = (-10.0, 90.0)
NUMBERS = [35.0, 1.5, math.nan, math.inf, -math.inf, 1e308, -1e308, 90.0, -10.0, 90.01, 0.1, 35.0]
NAN = math.nan


def label_of(number: float) -> int:
    least, largest = ENDS
    share = (min(max(number, least), largest) - least) / (largest - least)
    return round(share * TARGET_STEPS) if math.isfinite(number) else -1


def looked(source: str, **more: Any) -> Survey:
    keys = {
        "target": NumberTarget(column="age", range=ENDS),
        "split": Split(test=0.0, validation=0.0),
    }
    given = keys | {"label": "age", "labels": NUMBER, "classes": 1} | more  # config/load.py
    return survey(Dataset(lineage="ages", source=source, nominal_size=12, **given), KEYS)


def labels_of(found: Survey) -> list[int]:
    return [row.label for row in sorted(each_row(found.rows), key=lambda row: row.index)]


def text_of_table(numbers: list[Any], between: str = ",", point: str = ".") -> str:
    rows = [f"x{between}age"]
    for place, number in enumerate(numbers):
        rows.append(f"{place}{between}{str(number).replace('.', point)}")
    return "\n".join(rows) + "\n"


def as_float32(numbers: Any) -> Any:
    with np.errstate(over="ignore"):
        return numbers.astype(np.float32)


def written(folder: Path, kind: str) -> str:
    name, ages = kind.partition(" ")[0], np.array(NUMBERS)
    path, x = folder / f"t.{name}", np.arange(float(len(ages)))
    if name == "csv":
        points = (";", ",") if kind.endswith("comma") else (",", ".")
        path.write_text(text_of_table(NUMBERS, *points), "utf-8")
    elif name == "parquet":
        kept = as_float32(ages) if kind.endswith("float32") else ages
        kept = [str(age) for age in NUMBERS] if kind.endswith("texts") else kept
        pq.write_table(pa.table({"x": x, "age": kept}), path)
    elif name == "jsonl":
        lines = [json.dumps({"text": f"t{one}", "age": age}) for one, age in enumerate(NUMBERS)]
        path.write_text("\n".join(lines), "utf-8")
    elif name == "npz":
        np.savez(path, features=x[:, None], age=ages)
    else:
        with h5py.File(path, "w") as file:
            file["features"], file["age"] = x[:, None], ages
    return f"{name}:{path}"


KINDS = [
    *("csv", "csv comma", "parquet", "parquet float32", "parquet texts", "jsonl", "npz", "hdf5"),
]


@pytest.mark.parametrize("kind", KINDS)
def test_each_record_is_told_by_its_place_in_the_range(kind: str, tmp_path: Path) -> None:
    columns = ("x",) if kind.startswith(("csv", "parquet")) else ()
    found = looked(written(tmp_path, kind), columns=columns)
    numbers = as_float32(np.array(NUMBERS)).tolist() if kind.endswith("float32") else NUMBERS
    assert labels_of(found) == [label_of(number) for number in numbers]
    beyond = [1e308, -1e308, 90.01]
    whys = [why for _, why in found.problems]
    if not kind.endswith("float32"):  # which knows no 1e308
        assert whys.count(BELOW) + whys.count(ABOVE) == len(beyond)
        assert whys.count(WRONG_LABEL[NUMBER]) == 3
    said = report(census(found))
    assert "5 %, median and 95 % of the target" in said


def test_what_is_no_number_counts_as_nothing(tmp_path: Path) -> None:
    cells = ["12", "", "old", "1e999", "nan", "0x10", " 13 ", "1e1", "-0", "None", "12;5"]
    (tmp_path / "t.csv").write_text(text_of_table(cells), "utf-8")
    numbers = [12, NAN, NAN, NAN, NAN, NAN, 13, 10, 0, NAN, NAN]
    found = looked(f"csv:{tmp_path / 't.csv'}", columns=("x",))
    assert labels_of(found) == [label_of(number) for number in numbers]


def test_of_folders_the_names_are_the_numbers(tmp_path: Path) -> None:
    wanted = {"35": 35.0, "1.5": 1.5, "old": NAN, "nan": NAN, "1e9": 90.0, "-10": -10.0}
    for place, name in enumerate(wanted):
        (tmp_path / "ages" / name).mkdir(parents=True)
        pixels = np.full((9, 9), place, np.uint8)
        Image.fromarray(pixels).save(tmp_path / "ages" / name / "a.png")
    found = looked(f"folder:{tmp_path / 'ages'}", target=NumberTarget(range=ENDS), label=None)
    files = found.source.files
    assert files is not None
    told = {Path(files[row.index]).parent.name: row.label for row in each_row(found.rows)}
    assert told == {name: label_of(number) for name, number in wanted.items()}


def test_of_images_with_a_table_a_column_has_the_numbers(tmp_path: Path) -> None:
    lines = ["image,age"]
    wanted = {"a": "35", "b": "", "c": "95", "d": "old"}
    (tmp_path / "images").mkdir()
    for place, (name, age) in enumerate(wanted.items()):
        Image.fromarray(np.full((9, 9), place, np.uint8)).save(tmp_path / "images" / f"{name}.png")
        lines.append(f"{name},{age}")
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n", "utf-8")
    apart = {"images": str(tmp_path / "images"), "table": str(tmp_path / "t.csv"), "key": "image"}
    found = looked(as_source_text(apart))
    assert labels_of(found) == [label_of(number) for number in (35.0, NAN, 90.0, NAN)]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_other_rows_decide_nothing_about_a_records_number(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither what they hold nor where a block ends."""
    monkeypatch.setattr(csv_rows, "BLOCK", 40)

    def told(folder: str, others: list[Any]) -> list[int]:
        path, ages = tmp_path / folder / f"t.{kind}", [*others, "0.1", "35", "1.5", *others]
        path.parent.mkdir()
        if kind == "csv":
            path.write_text(text_of_table(ages), "utf-8")
        else:
            table = pa.table({"x": np.arange(float(len(ages))), "age": [str(age) for age in ages]})
            pq.write_table(table, path, row_group_size=2)
        found = labels_of(looked(f"{kind}:{path}", columns=("x",)))
        return found[len(others) : len(others) + 3]

    wanted = [label_of(number) for number in (0.1, 35.0, 1.5)]
    for place, others in enumerate(([], ["old"] * 9, ["1e308", "", "nan"] * 5, [7] * 20)):
        assert told(str(place), others) == wanted


def test_a_persons_records_are_told_by_the_mean_of_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    lines = ["x,user,age", "1,a,10", "2,a,20", "3,b,30", "4,b,", "5,c,old"]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    for rule, wanted in (("mean", [15.0, 30.0]), ("nothing", [30.0])):
        unit = Unit(by="user", pool="mean", conflicts=rule)
        found = looked(f"csv:{path}", columns=("x",), unit=unit)
        labels = {row.unit: row.label for row in each_row(found.rows) if row.label >= 0}
        assert sorted(labels.values()) == sorted(map(label_of, wanted))


def test_a_manifest_says_that_its_labels_are_numbers(tmp_path: Path) -> None:
    keys = {"target": NumberTarget(column="age", range=ENDS), "labels": NUMBER, "classes": 1}
    source = written(tmp_path, "csv")
    dataset = Dataset(
        lineage="a", source=source, nominal_size=9, label="age", columns=("x",), **keys
    )
    assert manifest_of(tmp_path, dataset).attrs["labels"] == NUMBER


def test_a_warning_says_where_nearly_all_numbers_lie_in_a_tenth_of_the_range(
    tmp_path: Path,
) -> None:
    for spread, warned in ((4.0, True), (40.0, False)):
        ages = np.random.default_rng(0).normal(40.0, spread / 2, 300).clip(*ENDS)
        path = tmp_path / f"{spread}.csv"
        pd.DataFrame({"x": np.arange(300.0), "age": ages}).to_csv(path, index=False)
        said = report(check_every_record(looked(f"csv:{path}", columns=("x",))))
        assert ("nearly all targets lie in a tenth" in said) == warned


def test_a_column_that_is_not_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x,old\n1,2\n", "utf-8")
    with pytest.raises(BadInput, match="age"):
        looked(f"csv:{tmp_path / 't.csv'}", columns=("x",))


def test_a_column_that_also_says_whose_a_record_is_keeps_what_it_says(tmp_path: Path) -> None:
    """007 and 7 are two people, whatever is learnt of that column."""
    table = tmp_path / "people.csv"
    table.write_text("id,a,b\n007,1,2\n7,3,4\n7.5,5,6\nx,7,8\n")
    known = {
        column: looked(
            f"csv:{table}",
            target=NumberTarget(range=(0, 10)),
            label=column,
            columns=("a",),
        )
        for column in ("b", "id")
    }
    assert known["b"].units == known["id"].units == 4
    assert np.array_equal(known["b"].everybody, known["id"].everybody)


def test_images_are_named_by_what_a_cell_says_though_it_is_the_target(tmp_path: Path) -> None:
    for name in ("p_07", "p_7"):
        Image.new("L", (8, 8), int(name[2:])).save(tmp_path / f"{name}.png")
    table = tmp_path / "ages.csv"
    table.write_text("age\n07\n7\n")
    source = {"images": str(tmp_path), "table": str(table), "key": "p_{age}.png"}
    found = looked(
        as_source_text(source), target=NumberTarget(column="age", range=(0, 10)), label="age"
    )
    assert found.units == 2
    assert sorted(found.rows.label.tolist()) == [number_of_target(7.0, 0.0, 10.0)] * 2


@pytest.mark.parametrize("shape", [(6, 1), (6,)])
def test_a_target_may_stand_in_a_single_column_of_an_array(
    tmp_path: Path, shape: tuple[int, ...]
) -> None:
    file = tmp_path / "a.npz"
    np.savez(file, features=np.eye(6), labels=np.arange(6.0).reshape(shape))
    found = looked(f"npz:{file}", target=NumberTarget(range=(0, 5)), label=None)
    assert sorted(found.rows.label.tolist()) == [number_of_target(n, 0.0, 5.0) for n in range(6)]


def test_a_target_of_several_numbers_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.npz"
    np.savez(file, features=np.eye(6), labels=np.ones((6, 2)))
    with pytest.raises(BadInput, match="one number for each record"):
        looked(f"npz:{file}", target=NumberTarget(range=(0, 5)), label=None)
