"""The census: it shows the owner what would be read, and tells from counts, noised or not, which
data cannot be meant."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from extracted import KEYS, dataset_of
from PIL import Image

from dpladder.config.dataset_sections import Split, TrainedGroup, Unit
from dpladder.config.detectability import FEWEST_UNITS
from dpladder.config.label_sets import MANY
from dpladder.data.census import (
    Census,
    census,
    check_every_record,
    count_units,
    report,
)
from dpladder.data.equal_rows import most_different_rows
from dpladder.data.prepare import survey
from dpladder.data.stops import reason_to_stop, refuse_too_few_different_rows
from dpladder.errors import BadInput
from dpladder.learn.counts import units_by_class


def units(count: int) -> np.ndarray:
    return np.arange(count, dtype=">u8").repeat(2).view(np.uint8).reshape(count, 16)


def stops(*labels: tuple[int, int], expected: int | None = None, sd: float = 0.0) -> bool:
    """With so many units of each label, where so many are expected."""
    column = np.concatenate([np.full(count, label, np.int64) for label, count in labels])
    counts = units_by_class(units(len(column)), column, 2)
    seen = len(column) if expected is None else expected
    return reason_to_stop(counts, seen, "lost or lopsided", sd=sd) is not None


@pytest.mark.parametrize(
    "labels",
    [
        [(-1, 1000)],
        [(-1, 551), (0, 225), (1, 225)],
        [(0, 1000)],
        [(0, 950), (1, 49)],
        [(0, FEWEST_UNITS + 1)],
    ],
)
def test_what_is_mostly_lost_or_of_one_class_stops_a_run(labels: list[tuple[int, int]]) -> None:
    assert stops(*labels)


@pytest.mark.parametrize(
    "labels",
    [
        [(0, 500), (1, 500)],
        [(-1, 500), (0, 250), (1, 250)],
        [(0, 900), (1, 100)],
        [(0, 90), (1, 10)],
        [(-1, FEWEST_UNITS)],
        [(0, FEWEST_UNITS)],
        [(0, 1)],
    ],
)
def test_what_may_be_meant_and_what_is_small_stops_none(labels: list[tuple[int, int]]) -> None:
    assert not stops(*labels)


def test_units_that_are_declared_and_not_there_are_lost() -> None:
    assert stops((0, 100), (1, 100), expected=1000)
    assert not stops((0, 100), (1, 100), expected=300)


def test_units_of_one_kind_can_be_meant_where_nothing_is_told_apart() -> None:
    assert reason_to_stop(np.array([200, 200]), 200, "lost or lopsided") is None
    assert reason_to_stop(np.array([200, 200]), 900, "lost or lopsided") is not None


def test_findings_that_nobody_has_or_lacks_stop_a_run() -> None:
    for none, some, every in ((1000, 0, 0), (0, 0, 1000), (950, 50, 0)):
        counts = np.array([1000, none, some, every])
        assert reason_to_stop(counts, 1000, "lost or lopsided", MANY) is not None
        assert reason_to_stop(counts, 1000, "lost", MANY) is None
    assert reason_to_stop(np.array([1000, 800, 200, 0]), 1000, "lost or lopsided", MANY) is None


def test_noise_alone_stops_nobody_whose_data_lies_on_the_lines() -> None:
    """Once in a million by the declared noise; here the noise is as large as it comes once in ten
    thousand, against the data, and thrice as large as it may be where the data is far off."""
    sd = 130.0
    for half, tenth in ((5_000, 1_000), (50_000, 10_000)):
        on_line = np.array([half, half / 2, half / 2])
        on_line[0] -= 3.0 * sd
        assert reason_to_stop(on_line, 2 * half, "lost", sd=sd) is None
        on_line = np.array([10 * tenth, 9 * tenth, tenth]) + np.array([-1.0, 1.0, 0.0]) * 3.0 * sd
        assert reason_to_stop(on_line, 10 * tenth, "lost or lopsided", sd=sd) is None
    for counts in ([0.0, 0.0, 0.0], [20_000.0, 20_000.0, 0.0]):
        noised = np.array(counts) + np.array([1.0, -1.0, 1.0]) * 3.0 * sd
        assert reason_to_stop(noised, 20_000, "lost or lopsided", sd=sd) is not None


@pytest.mark.parametrize("classes", [2, 10])
def test_how_often_noise_stops_data_on_a_line_is_what_is_promised(
    classes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a promise of one in ten, which a thousand runs can tell from one in four."""
    monkeypatch.setattr("dpladder.config.detectability.STOPPED_BY_NOISE", 0.1)
    random, sd = np.random.default_rng(5), 100.0
    lost = np.array([10_000, *[10_000 / classes] * classes])
    lopsided = np.array([10_000, 9_000.0, *[1_000 / (classes - 1)] * (classes - 1)])
    for counts, expected in ((lost, 20_000), (lopsided, 10_000)):
        found = [
            reason_to_stop(
                counts + random.normal(0, sd, 1 + classes), expected, "lost or lopsided", sd=sd
            )
            for _ in range(1000)
        ]
        assert 0 < sum(why is not None for why in found) < 140


def test_where_noise_is_too_large_to_tell_a_run_goes_on() -> None:
    assert stops((-1, 200))
    assert not stops((-1, 200), sd=130.0)
    assert not stops((0, 200), sd=130.0)


def test_a_class_that_is_rare_by_declaration_stops_no_run_however_few_are_of_it(
    tmp_path: Path,
) -> None:
    """No line follows the declared share: it could be moved until it told how many there are."""
    labels = np.repeat([0, 1], [970, 30])
    np.savez(
        tmp_path / "a.npz",
        features=np.random.default_rng(0).normal(size=(1000, 4)) + labels[:, None],
        labels=labels,
    )
    source, many = f"npz:{tmp_path / 'a.npz'}", np.array([1000, 999, 1])
    assert counted(source, classes=2)[0].stops
    for said in ({"rare": 0.03}, {"majority": 0.97}, {"rare": 0.0999}, {"census": None}):
        assert not counted(source, classes=2, **said)[0].stops
    for said in ({"rare": 0.3}, {"majority": 0.6}):
        assert counted(source, classes=2, **said)[0].stops
    # of twenty classes nineteen are the others
    assert counted(source, classes=20, rare=0.01)[0].stops
    assert not counted(source, classes=20, rare=0.005)[0].stops
    assert reason_to_stop(many, 1000, "lost") is None
    assert reason_to_stop(many, 3000, "lost") is not None


def test_one_person_of_many_rows_is_one_unit() -> None:
    assert count_units(np.repeat(units(3), 40, axis=0)) == 3
    ids = np.concatenate([np.repeat(units(1), 400, axis=0), units(101)[1:]])
    labels = np.concatenate([np.tile([-1, 0, 1, 1], 100), np.tile([0, 1], 50)])
    assert units_by_class(ids, labels, 2).tolist() == [101, 51, 50]


def test_a_unit_adds_one_to_all_and_to_one_class_whatever_its_records_and_its_neighbours_are() -> (
    None
):
    random = np.random.default_rng(3)
    # (MANY, 27): the last number says that no finding is known, and no source makes it
    for most, end in ((1, 3), (2, 15), (MANY, 27)):
        labels = np.concatenate([random.integers(-1, end, 60), [end - 1]])
        owners = np.concatenate([random.integers(1, 20, 60), [0]])
        before = units_by_class(units(20)[owners], labels, 3, most)
        for own in range(20):
            there = owners != own
            moved = before - units_by_class(units(20)[owners[there]], labels[there], 3, most)
            counts = bool((labels[~there] >= 0).any())
            assert moved[0] == int(counts)
            assert sorted(moved[1:].tolist()) == [0, 0, int(counts)]


def folders(root: Path, names: list[str], each: int, size: int = 24) -> Path:
    rng = np.random.default_rng(0)
    for name in names:
        (root / name).mkdir(parents=True)
        for place in range(each):
            pixels = rng.integers(0, 256, (size, size + 8, 3), np.uint8)
            Image.fromarray(pixels).save(root / name / f"{place}.png")
    return root


def counted(source: str, **dataset: Any) -> tuple[Census, Any]:
    found = survey(dataset_of(source, nominal_size=10, **dataset), KEYS)
    return check_every_record(found), found


def test_folders_that_are_no_class_are_named_with_their_counts(tmp_path: Path) -> None:
    found, _ = counted(f"folder:{folders(tmp_path, ['cat', 'dog'], 5)}", classes=("cat", "retina"))
    assert found.labels == {"dog": 5}
    assert sum(count for part in found.parts.values() for count in part.values()) == 5
    assert len(found.problems["label is not in dataset.classes"]) == 5
    assert "'dog' is not in dataset.classes: 5 rows" in report(found)


def test_images_that_cannot_be_decoded_are_named_with_the_reason(tmp_path: Path) -> None:
    root = folders(tmp_path, ["cat", "dog"], 3)
    (root / "cat" / "0.png").write_text("<html>not found</html>")
    found, _ = counted(f"folder:{root}", classes=("cat", "dog"))
    assert found.problems == {
        "image cannot be decoded: cannot identify image file": [str(root / "cat" / "0.png")]
    }
    assert "24, 24, 24" in found.sizes


def test_an_image_above_the_limit_is_told_the_key(tmp_path: Path) -> None:
    source = f"folder:{folders(tmp_path, ['cat', 'dog'], 1)}"
    found = check_every_record(counted(source, classes=("cat", "dog"))[1], largest=100)
    assert [*found.problems] == [
        "image cannot be decoded: more than 100 pixels, features.largest_image"
    ]


def test_paths_that_are_all_wrong_are_as_many_lost_records(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text(
        "path,label\n" + "".join(f"no/{i}.png,{i % 2}\n" for i in range(200))
    )
    found, seen = counted(f"csv:{tmp_path / 'table.csv'}", classes=2)
    assert (found.units, found.usable) == (200, 0)
    assert len(found.problems["file is missing or empty"]) == 200
    assert seen.units == 200
    assert found.stops


def test_a_table_of_records_that_are_not_finite_counts_none_and_says_that_a_run_stops(
    tmp_path: Path,
) -> None:
    (tmp_path / "table.csv").write_text(
        "sex,label\n" + "".join(f"{'fm'[i % 2]},{i % 2}\n" for i in range(200))
    )
    source = f"csv:{tmp_path / 'table.csv'}"
    found, _ = counted(source, classes=2)
    assert (found.units, found.usable, found.stops) == (200, 0, True)  # of which two are kept
    (tmp_path / "table.csv").write_text(
        "id,sex,label\n" + "".join(f"{i},{'fm'[i % 2]},{i % 2}\n" for i in range(200))
    )
    found, _ = counted(source, classes=2)
    assert (found.units, found.usable, found.stops) == (200, 0, True)
    assert "this cannot be what the config means" in report(found)


def test_a_row_with_a_number_is_known_by_what_it_says(tmp_path: Path) -> None:
    rows = "".join(f"{height},,{i % 2}\n" for i, height in enumerate([1, 1, 2, ""] * 50))
    (tmp_path / "table.csv").write_text("height,weight,label\n" + rows)
    found, _ = counted(f"csv:{tmp_path / 'table.csv'}", classes=2)
    assert (found.units, found.records, found.usable) == (53, 4, 0)  # 1, 1 and 2, and 50 blank rows


def test_a_part_that_is_misspelt_counts_among_what_is_lost(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "data.npz",
        features=np.eye(200),
        labels=np.arange(200) % 2,
        splits=["learning"] * 200,
    )
    found, _ = counted(f"npz:{tmp_path / 'data.npz'}", classes=2, split=Split(rule="given"))
    assert (found.rows, found.records, found.units, found.usable) == (200, 0, 200, 0)


def test_lengths_of_features_and_the_units_of_users_are_told(tmp_path: Path) -> None:
    features = np.eye(12) * np.arange(12)[:, None]
    np.savez(
        tmp_path / "data.npz", features=features, labels=np.arange(12) % 3, users=np.arange(12) // 4
    )
    found, _ = counted(f"npz:{tmp_path / 'data.npz'}", classes=3, unit=Unit(by="user", cap=2))
    assert (found.rows, found.records, found.units) == (12, 6, 3)
    assert "length of a feature vector, least, median, most: 1, 6, 11" in found.sizes
    assert found.problems["features are all zero, or not finite"] == [0]
    assert len(found.problems["over its unit's cap"]) == 6
    told = report(found)
    for part, records in found.counting.items():
        units = found.units_of_parts[part]
        assert units < records
        assert f"part     {part}: {records} records of {units} units that count" in told
    assert sum(found.units_of_parts.values()) == found.usable


def test_groups_are_counted_by_part_and_those_not_trained_on_are_none_of_it(tmp_path: Path) -> None:
    names = np.array(["north", "south", "moon"])[np.arange(90) % 3]
    rows = np.arange(90.0)[:, None] + 1.0
    np.savez(tmp_path / "data.npz", features=rows, labels=np.arange(90) % 2, region=names)
    group = TrainedGroup(names=("north", "south"), column="region", train=("north",))
    split = Split(test=0.5)
    dataset = dataset_of(f"npz:{tmp_path / 'data.npz'}", classes=2, group=group, split=split)
    found = census(survey(dataset, KEYS))
    assert found.groups["train"]["south"] == 0
    assert found.groups["train"]["north"] + found.groups["test"]["north"] == 30
    assert 0 < found.groups["test"]["south"] < 30
    told = report(found)
    assert f"groups   train, in records: north {found.groups['train']['north']}, south 0" in told
    assert "group is none of the declared ones: 30" in told
    assert "\ngroups" not in report(
        census(survey(dataset.model_copy(update={"group": None}), KEYS))
    )


ANSWERS = ({"name": "a", "levels": ("x", "y")}, {"name": "b", "levels": ("x", "y")})


def answers(folder: Path, rows: int, ids: bool = False, more: str = "") -> str:
    told = [f"{'xy'[i % 2]},{'xy'[i // 2 % 2]},{i % 2}" for i in range(rows)]
    header = "a,b,label" + (",id" if ids else "") + more
    lines = [line + (f",{place}" if ids else "") for place, line in enumerate(told)]
    (folder / "answers.csv").write_text("\n".join([header, *lines]) + "\n")
    return f"csv:{folder / 'answers.csv'}"


def test_equal_rows_without_ids_are_told_with_two_ways_out(tmp_path: Path) -> None:
    few = {"columns": ANSWERS, "classes": 2}
    told = report(counted(answers(tmp_path, 100), **few)[0])
    assert "96 of 100 rows equal another one" in told
    assert "dataset.id" in told
    assert "dataset.equal_rows: one_record" in told
    said = counted(answers(tmp_path, 100), equal_rows="one_record", **few)[0]
    named = counted(answers(tmp_path, 100, ids=True), **few)[0]
    assert said.equal == named.equal == 0
    accident = counted(answers(tmp_path, 53), **few)[0]
    assert "equal another one" not in report(accident)


def test_header_and_levels_say_how_many_rows_can_differ(tmp_path: Path) -> None:
    few = {"columns": ANSWERS, "classes": 3}
    _, found = counted(answers(tmp_path, 10), **few)
    assert most_different_rows(found) == 2 * 2 * 3
    refuse_too_few_different_rows(found, 12)
    with pytest.raises(BadInput, match=r"allow 12 different rows.*dataset\.equal_rows"):
        refuse_too_few_different_rows(found, 13)
    for table, said in (
        ({"ids": True}, {}),
        ({"more": ",note"}, {}),  # any text may stand there
        ({}, {"equal_rows": "one_record"}),
    ):
        source = answers(tmp_path, 10, **table)
        assert most_different_rows(counted(source, **few, **said)[1]) is None


def test_files_of_other_suffixes_are_told_and_a_phones_with_the_command(tmp_path: Path) -> None:
    root = folders(tmp_path / "photos", ["cat", "dog"], 3)
    for name in ("a.HEIC", "b.heic", "notes.txt", ".DS_Store"):
        (root / "cat" / name).write_bytes(b"x")
    (root / "__MACOSX").mkdir()
    (root / "__MACOSX" / "c.heic").write_bytes(b"x")
    found, _ = counted(f"folder:{root}", classes=("cat", "dog"))
    assert found.skipped == {".heic": 2, ".txt": 1}
    assert re.search(r"skipped  2 files \(\.heic\).*heif-convert", report(found))
    assert "skipped  1 files (.txt)" in report(found)
