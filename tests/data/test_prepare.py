"""The manifest: who owns a record and where it lies follow from that unit's own records and a key,
nothing else."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from extracted import KEYS, dataset_of, manifest_of
from hypothesis import given, settings
from hypothesis import strategies as st

from dpladder.config.dataset_sections import Split, TrainedGroup, Unit
from dpladder.data.prepare import PARTS, Keys, Manifest, group_index
from dpladder.errors import BadInput

BY_USER = Unit(by="user", cap=3)


def manifest(
    folder: Path, rows: list[dict[str, Any]], *, keys: Keys = KEYS, **dataset: Any
) -> Manifest:
    """The manifest of rows that say `x`, `label` and perhaps `id`, `user`, `split`, `region`."""
    names = [name for name in ("label", "id", "user", "split") if name in rows[0]]
    features = np.array([[row["x"], row["x"] ** 2] for row in rows], np.float64)
    columns = {f"{name}s": [row[name] for row in rows] for name in names}
    if "region" in rows[0]:
        columns["groups"] = [row["region"] for row in rows]
    np.savez(folder / "data.npz", features=features, **columns)
    source = f"npz:{folder / 'data.npz'}"
    return manifest_of(folder, dataset_of(source, **{"classes": 10} | dataset), keys=keys)


def problems(folder: Path) -> list[tuple[int, str]]:
    lines = (folder / "problems.jsonl").read_text().splitlines()
    return [(line["record"], line["check"]) for line in map(json.loads, lines)]


def facts(found: Manifest) -> set[tuple[bytes, bytes, int, int]]:
    """What the manifest says of each record, wherever its source keeps it."""
    return set(ordered(found))


def ordered(found: Manifest) -> list[tuple[bytes, bytes, int, int]]:
    columns = (found.record_ids, found.units, found.labels, found.parts)
    return [
        (record.tobytes(), unit.tobytes(), int(label), int(part))
        for record, unit, label, part in zip(*columns, strict=True)
    ]


def contributions(found: Manifest) -> Counter[tuple[bytes, int, int]]:
    """What a sum over records sees: each content that counts, with its label and part."""
    columns = zip(found.contents, found.labels, found.parts, strict=True)
    return Counter(
        (content.tobytes(), int(label), int(part)) for content, label, part in columns if label >= 0
    )


def identity(row: dict[str, Any]) -> tuple[object, ...]:
    """Without an id column, a record is its whole row."""
    return tuple(sorted(row.items()))


def regions(*train: str) -> TrainedGroup:
    return TrainedGroup(names=("north", "south", "3"), column="groups", train=train)


def grouped(found: Manifest) -> Counter[tuple[bytes, int, int, int]]:
    """What a count by group sees: the same as a sum, with the group."""
    assert found.groups is not None
    columns = zip(found.contents, found.labels, found.parts, found.groups, strict=True)
    return Counter(
        (content.tobytes(), int(label), int(part), int(group))
        for content, label, part, group in columns
        if label >= 0
    )


records = st.lists(
    st.fixed_dictionaries(
        {"x": st.integers(0, 6), "label": st.integers(0, 9), "user": st.sampled_from("abcd")}
    ),
    min_size=2,
    max_size=12,
)


@pytest.mark.ci
@pytest.mark.parametrize("unit", [Unit(), BY_USER, Unit(by="user", cap=1)])
@given(rows=records, data=st.data())
@settings(max_examples=25, deadline=None)
def test_order_decides_nothing(
    tmp_path_factory: Any, unit: Unit, rows: list[dict[str, Any]], data: Any
) -> None:
    folder = tmp_path_factory.mktemp("prepare")
    shuffled = data.draw(st.permutations(rows))
    first, second = (manifest(folder, order, unit=unit) for order in (rows, shuffled))
    assert facts(first) == facts(second)
    assert first.commitment == second.commitment


@pytest.mark.few(1)
@pytest.mark.parametrize("unit", [Unit(), BY_USER])
@given(rows=records, data=st.data())
@settings(max_examples=25, deadline=None)
def test_one_unit_less_changes_that_units_rows_and_no_other(
    tmp_path_factory: Any, unit: Unit, rows: list[dict[str, Any]], data: Any
) -> None:
    folder = tmp_path_factory.mktemp("prepare")

    def unit_of(row: dict[str, Any]) -> object:
        return row["user"] if unit.by == "user" else identity(row)

    gone = data.draw(st.sampled_from([unit_of(row) for row in rows]))
    fewer = [row for row in rows if unit_of(row) != gone]
    if not fewer:
        return
    whole, rest = (facts(manifest(folder, some, unit=unit)) for some in (rows, fewer))
    lost = whole - rest
    assert rest <= whole
    assert len({unit for _, unit, _, _ in lost}) == 1
    assert len({part for _, _, _, part in lost}) == 1


@given(rows=records, cap=st.integers(1, 3))
@settings(max_examples=25, deadline=None)
def test_a_user_keeps_at_most_cap_rows_all_in_one_part(
    tmp_path_factory: Any, rows: list[dict[str, Any]], cap: int
) -> None:
    found = facts(manifest(tmp_path_factory.mktemp("prepare"), rows, unit=Unit(by="user", cap=cap)))
    for user in {unit for _, unit, _, _ in found}:
        own = [fact for fact in found if fact[1] == user]
        assert len(own) <= cap
        assert len({part for _, _, _, part in own}) == 1
    distinct = {
        user: len({identity(row) for row in rows if row["user"] == user}) for user in "abcd"
    }
    assert len(found) == sum(min(cap, count) for count in distinct.values())


def test_exact_copies_count_once_and_ids_tell_them_apart(tmp_path: Path) -> None:
    twice = [{"x": 1, "label": 0}, {"x": 1, "label": 0}, {"x": 2, "label": 0}]
    assert len(manifest(tmp_path, twice).labels) == 2
    assert problems(tmp_path) == [(1, "copy of another record")]
    named = [{**row, "id": place} for place, row in enumerate(twice)]
    assert len(manifest(tmp_path, named).labels) == 3


def test_one_content_under_two_labels_is_two_records(tmp_path: Path) -> None:
    rows = [{"x": 1, "label": label} for label in range(3)]
    assert sorted(manifest(tmp_path, rows).labels.tolist()) == [0, 1, 2]


def test_rows_that_claim_one_id_but_differ_count_as_nothing(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "x": 1, "label": 0},
        {"id": "a", "x": 2, "label": 0},
        {"id": "b", "x": 3, "label": 1},
    ]
    assert manifest(tmp_path, rows).labels.tolist() == [1]
    assert problems(tmp_path) == [
        (0, "differs from another row with its id"),
        (1, "differs from another row with its id"),
    ]


def test_no_user_takes_another_users_records_away_by_claiming_their_ids(tmp_path: Path) -> None:
    """Else one user more would move a sum by as many records as there are ids to claim."""
    others = [{"id": name, "user": f"user {name}", "x": 1, "label": 0} for name in "abc"]
    claims = [{"id": name, "user": "one more", "x": 2, "label": 1} for name in "abc"]
    unit = Unit(by="user", cap=1)
    alone, beside = (manifest(tmp_path, rows, unit=unit) for rows in (others, [*others, *claims]))
    assert facts(alone) < facts(beside)
    assert (beside.labels == 0).sum() == 3
    assert (beside.labels == 1).sum() == 1


def test_a_row_without_an_id_where_others_have_one_counts_as_nothing(tmp_path: Path) -> None:
    rows = [{"id": "a", "x": 1, "label": 0}, {"id": "", "x": 2, "label": 0}]
    assert sorted(manifest(tmp_path, rows).labels.tolist()) == [-1, 0]


ids = st.sampled_from(["a", "b", "c", "d"])


@pytest.mark.few(1)
@pytest.mark.parametrize("with_ids", [False, True])
@given(rows=records, more=records, names=st.lists(ids, min_size=20, max_size=20))
@settings(max_examples=40, deadline=None)
def test_any_row_more_adds_one_record_or_takes_one_away(
    tmp_path_factory: Any,
    with_ids: bool,
    rows: list[dict[str, Any]],
    more: list[dict[str, Any]],
    names: list[str],
) -> None:
    """The sensitivity that every sum over records is charged for: never one record in the place of
    another."""
    folder = tmp_path_factory.mktemp("prepare")
    every = [*rows, more[0]]
    if with_ids:
        every = [{**row, "id": name} for row, name in zip(every, names, strict=False)]
    before, after = (contributions(manifest(folder, some)) for some in (every[:-1], every))
    assert ((before - after) + (after - before)).total() <= 1


regional = st.lists(
    st.fixed_dictionaries(
        {
            "x": st.integers(0, 1),
            "label": st.integers(0, 1),
            "region": st.sampled_from(["north", "south", "moon"]),
        }
    ),
    min_size=2,
    max_size=12,
)


@pytest.mark.ci
@pytest.mark.parametrize("with_ids", [False, True])
@pytest.mark.parametrize("train", [(), ("north",)])
@given(rows=regional, names=st.lists(ids, min_size=20, max_size=20))
@settings(max_examples=50, deadline=None)
def test_any_row_more_adds_one_record_of_one_group_or_takes_one_away(
    tmp_path_factory: Any,
    with_ids: bool,
    train: tuple[str, ...],
    rows: list[dict[str, Any]],
    names: list[str],
) -> None:
    """A row that claims another one's id from another group must not put the one count in the place
    of the other."""
    folder = tmp_path_factory.mktemp("prepare")
    every = (
        [{**row, "id": name} for row, name in zip(rows, names, strict=False)] if with_ids else rows
    )
    before, after = (
        grouped(manifest(folder, some, group=regions(*train))) for some in (every[:-1], every)
    )
    assert ((before - after) + (after - before)).total() <= 1


def test_a_record_of_no_declared_group_counts_as_nothing(tmp_path: Path) -> None:
    groups = ["north", "south", "moon", 3.0, ""]
    rows = [{"x": place, "label": 1, "region": str(name)} for place, name in enumerate(groups)]
    found = manifest(tmp_path, rows, group=regions())
    told = {int(place): int(label) for place, label in zip(found.index, found.labels, strict=True)}
    assert told == {0: 1, 1: 1, 2: -1, 3: 1, 4: -1}
    assert [check for _, check in problems(tmp_path)] == ["group is none of the declared ones"] * 2
    assert group_index(("3",))(3.0) == 0 == group_index(("3",))(3)
    assert group_index(("3",))(None) == -1 == group_index(("None",))(None)


def test_rows_that_claim_one_id_from_two_groups_count_as_nothing(tmp_path: Path) -> None:
    rows = [{"id": "a", "x": 1, "label": 0, "region": region} for region in ("north", "south")]
    more = {"id": "b", "x": 3, "label": 1, "region": "south"}
    assert manifest(tmp_path, [*rows, more], group=regions()).labels.tolist() == [1]
    assert {check for _, check in problems(tmp_path)} == {"differs from another row with its id"}


def test_one_content_in_two_groups_is_two_records(tmp_path: Path) -> None:
    rows = [{"x": 1, "label": 0, "region": region} for region in ("north", "south", "south")]
    groups = manifest(tmp_path, rows, group=regions()).groups
    assert groups is not None
    assert sorted(groups) == [0, 1]


def test_groups_that_are_not_trained_on_are_in_the_test_part_alone(tmp_path: Path) -> None:
    names = ("north", "south", "3", "moon")
    rows = [{"x": place, "label": place % 3, "region": names[place % 4]} for place in range(400)]
    whole = manifest(tmp_path, rows, group=regions(), split=Split(test=0.3, validation=0.2))
    some = manifest(
        tmp_path, rows, group=regions("south", "3"), split=Split(test=0.3, validation=0.2)
    )
    wanted = {
        fact
        for fact, group in zip(ordered(whole), whole.groups, strict=True)  # type: ignore[arg-type]
        if group != 0 or fact[3] == PARTS.index("test")
    }
    assert facts(some) == wanted
    assert some.commitment != whole.commitment
    assert {check for _, check in problems(tmp_path)} == {"group is none of the declared ones"}


def test_ids_units_and_parts_need_the_keys(tmp_path: Path) -> None:
    rows = [{"x": place, "label": 0} for place in range(200)]
    base = manifest(tmp_path, rows)
    other_ids = manifest(tmp_path, rows, keys=replace(KEYS, units=b"v" * 32))
    assert not {fact[0] for fact in facts(base)} & {fact[0] for fact in facts(other_ids)}
    assert Counter(base.parts.tolist()) != Counter(other_ids.parts.tolist())
    assert (
        base.commitment
        != manifest(tmp_path, rows, keys=replace(KEYS, commitment=b"v" * 32)).commitment
    )


@pytest.mark.ci
def test_parts_have_their_declared_fractions(tmp_path: Path) -> None:
    """20,000 units: five standard deviations of a binomial are 0.0141 at a fraction of 0.2."""
    rows = [{"x": place, "label": 0} for place in range(20000)]
    found = manifest(tmp_path, rows, split=Split(test=0.2, validation=0.3))
    shares = [len(found.rows(part)) / 20000 for part in PARTS]
    assert shares == pytest.approx([0.5, 0.3, 0.2, 0.0, 0.0], abs=0.018)
    assert sum(shares) == pytest.approx(1)


def test_rows_are_sorted_by_their_keyed_id_so_places_tell_nothing(tmp_path: Path) -> None:
    found = manifest(tmp_path, [{"x": place, "label": 0} for place in range(300)])
    ids = [record.tobytes() for record in found.record_ids]
    assert ids == sorted(ids)
    assert abs(np.corrcoef(found.index, np.arange(300))[0, 1]) < 0.3


def test_an_edit_is_a_new_version_and_an_exact_copy_is_not(tmp_path: Path) -> None:
    rows = [{"x": place, "label": 0, "id": f"r{place}"} for place in range(9)]
    base = manifest(tmp_path, rows).commitment
    assert manifest(tmp_path, rows).commitment == base
    changed = [
        rows[:-1],
        [*rows[:-1], {**rows[-1], "label": 1}],
        [*rows[:-1], {**rows[-1], "x": 77}],
        [*rows, {"x": 10, "label": 0, "id": "r9"}],
    ]
    assert len({base, *(manifest(tmp_path, version).commitment for version in changed)}) == 5


def test_float32_and_float64_copies_of_a_matrix_are_the_same_records(tmp_path: Path) -> None:
    found = []
    for dtype in (np.float32, np.float64):
        np.savez(
            tmp_path / "data.npz",
            features=np.arange(12, dtype=dtype).reshape(4, 3) / 4,
            labels=[0] * 4,
        )
        dataset = dataset_of(f"npz:{tmp_path / 'data.npz'}", classes=1)
        found.append(manifest_of(tmp_path, dataset).commitment)
    assert found[0] == found[1]


def test_given_parts_are_kept_and_a_unit_lies_in_one_part_only(tmp_path: Path) -> None:
    rows = [
        {"x": place, "label": 0, "user": place // 2, "split": ["train", "val", "test"][place % 3]}
        for place in range(30)
    ]
    given_rule = Split(rule="given")
    by_record = manifest(tmp_path, rows, split=given_rule)
    assert {
        int(place): int(part) for place, part in zip(by_record.index, by_record.parts, strict=True)
    } == {place: place % 3 for place in range(30)}
    by_user = manifest(tmp_path, rows, split=given_rule, unit=BY_USER)
    parts: dict[bytes, set[int]] = {}
    for _, unit, _, part in facts(by_user):
        parts.setdefault(unit, set()).add(part)
    assert {len(own) for own in parts.values()} == {1}
    assert "in another part than its unit" in {check for _, check in problems(tmp_path)}


def test_what_is_wrong_with_a_record_costs_that_record_only(tmp_path: Path) -> None:
    rows = [
        {"x": place, "label": str(place % 3), "user": f"u{place}", "split": "train"}
        for place in range(6)
    ]
    options: dict[str, Any] = {"split": Split(rule="given"), "unit": BY_USER, "classes": 3}
    clean = facts(manifest(tmp_path, rows, **options))
    assert problems(tmp_path) == []
    bad = [*rows]
    bad[1] = {**rows[1], "label": "99"}
    bad[2] = {**rows[2], "user": ""}
    bad[3] = {**rows[3], "split": "holdout"}
    found = manifest(tmp_path, bad, **options)
    assert problems(tmp_path) == [
        (1, "label is not in dataset.classes"),
        (2, "user is missing"),
        (3, "split names no part"),
    ]
    assert sorted(found.labels) == [-1, -1, 0, 1, 2]
    assert len(clean & facts(found)) == 3
    assert (tmp_path / "problems.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_public_source_lies_in_its_part_and_is_neither_split_nor_capped(tmp_path: Path) -> None:
    rows = [{"x": place, "label": 0, "user": "one"} for place in range(40)]
    np.savez(
        tmp_path / "public.npz",
        features=[[row["x"]] for row in rows],
        labels=[0] * 40,
        users=["one"] * 40,
    )
    public = f"npz:{tmp_path / 'public.npz'}"
    dataset = dataset_of("digits", classes=10, unit=BY_USER, public_test=public)
    found = manifest_of(tmp_path, dataset, "test")
    assert (len(found.rows("test")), len(found.labels)) == (40, 40)
    with pytest.raises(BadInput, match="public_validation is not set"):
        manifest_of(tmp_path, dataset, "validation")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unit": BY_USER}, "has no user column"),
        ({"split": Split(rule="given")}, "has no split column"),
        ({"classes": None}, "classes is not set"),
    ],
)
def test_a_setup_that_cannot_work_is_refused_before_anything_is_written(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        manifest(tmp_path, [{"x": 1, "label": 0}], **options)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.npz"]


def test_an_empty_source_is_refused_where_it_is_public_alone(tmp_path: Path) -> None:
    """Of private data an exit code would tell the last person from nobody."""
    (tmp_path / "images").mkdir()
    dataset = dataset_of(f"folder:{tmp_path / 'images'}", classes=2)
    assert not len(manifest_of(tmp_path, dataset).labels)
    public = dataset.model_copy(update={"declared_public": True})
    with pytest.raises(BadInput, match="holds no records"):
        manifest_of(tmp_path, public)
