"""A user's records as one: of each user one row, the mean of what counts of theirs, under one
label, whatever other users there are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from extracted import KEYS, dataset_of, extract_part, manifest_of, open_part

from dpladder.config.dataset_sections import Split, TrainedGroup, Unit
from dpladder.config.features_sections import Features
from dpladder.config.label_sets import MANY, number_of, number_of_findings, pooled_label
from dpladder.data.cache import FeatureCache, merge
from dpladder.data.census import census
from dpladder.data.prepare import Part, survey

POOL = Unit(by="user", pool="mean")
MATRIX = Features(model="none", batch_size=4, dtype="float32")
RANDOM = np.random.default_rng(0)
ROWS = RANDOM.normal(size=(40, 5))
USERS = RANDOM.integers(0, 12, 40)
LABELS = USERS % 3


def pooled(
    folder: Path, *, shards: int = 1, public: Part | None = None, views: int = 1, **given: Any
) -> FeatureCache:
    """What a training sees of these users; of rows, users, labels and regions as given."""
    folder.mkdir(exist_ok=True)
    names = {"rows": "features", "users": "users", "labels": "labels", "region": "region"}
    arrays = {"rows": ROWS, "users": USERS, "labels": LABELS} | given
    np.savez(
        folder / "data.npz", **{names[name]: arrays.pop(name) for name in names if name in arrays}
    )
    source = f"npz:{folder / 'data.npz'}"
    keys = {"classes": 3, "unit": POOL, "split": Split(test=0.0)} | arrays
    keys |= {} if public is None else {f"public_{public}": source}
    manifest_of(folder, dataset_of(source, **keys), public)
    part = public or "train"
    parts = [
        extract_part(folder, MATRIX, f"shard{shard}.h5", part, shard=shard, shards=shards)
        for shard in range(shards)
    ]
    merge(parts, folder / "root", folder / "whole.h5", KEYS.cache)
    return open_part(folder / "whole.h5")


def rows_of(cache: FeatureCache) -> dict[bytes, tuple[int, bytes]]:
    each = zip(cache.units, cache.labels, cache.features, strict=True)
    return {unit.tobytes(): (int(label), row.tobytes()) for unit, label, row in each}


def means(users: Any = USERS, keep: Any = slice(None)) -> list[tuple[int, tuple[float, ...]]]:
    """Of each user the class, and the mean to four digits."""
    own, rows = np.asarray(users)[keep], ROWS[keep]
    return sorted(
        (user % 3, tuple(rows[own == user].mean(axis=0).round(4).tolist())) for user in set(own)
    )


def found(cache: FeatureCache) -> list[tuple[int, tuple[float, ...]]]:
    each = zip(cache.labels, np.asarray(cache.features, np.float64), strict=True)
    return sorted((int(label), tuple(row.round(4).tolist())) for label, row in each)


def test_a_user_is_one_record_with_the_mean_of_all_its_records(tmp_path: Path) -> None:
    cache = pooled(tmp_path)
    assert len(rows_of(cache)) == len(cache.units) == len(set(USERS))
    assert np.array_equal(cache.units, cache.record_ids)
    for ours, theirs in zip(found(cache), means(), strict=True):
        assert ours[0] == theirs[0]
        assert ours[1] == pytest.approx(theirs[1], abs=2e-4)


@pytest.mark.ci
def test_shards_order_and_other_users_change_no_bit_of_a_users_row(tmp_path: Path) -> None:
    whole = rows_of(pooled(tmp_path / "whole"))
    assert rows_of(pooled(tmp_path / "shards", shards=3)) == whole
    for user in (0, 5):
        keep = RANDOM.permutation(np.flatnonzero(user != USERS))
        given = {"rows": ROWS[keep], "users": USERS[keep], "labels": LABELS[keep]}
        fewer = rows_of(pooled(tmp_path / f"without {user}", **given))
        assert len(fewer) == len(whole) - 1
        assert fewer.items() < whole.items()


def test_what_cannot_count_is_left_out_of_a_mean_and_a_user_without_any_counts_as_nothing(
    tmp_path: Path,
) -> None:
    rows, labels = ROWS.copy(), LABELS.copy()
    first = {int(user): np.flatnonzero(user == USERS) for user in set(USERS)}
    rows[first[1][0]] = np.nan  # one of several
    labels[first[2][0]] = 7  # no class
    rows[first[4]] = np.inf  # all of them
    keep = np.ones(len(ROWS), bool)
    keep[[first[1][0], first[2][0], *first[4]]] = False
    cache = pooled(tmp_path, rows=rows, labels=labels)
    wanted = means(keep=keep)
    assert len(cache.units) == len(set(USERS))
    assert not np.any(cache.features[cache.labels < 0])
    counting = [one for one in found(cache) if one[0] >= 0]
    assert [label for label, _ in counting] == [label for label, _ in wanted]
    for ours, theirs in zip(counting, wanted, strict=True):
        assert ours[1] == pytest.approx(theirs[1], abs=2e-4)


@pytest.mark.parametrize(("rule", "label"), [("nothing", -1), ("any", 2), ("majority", 0)])
def test_a_user_whose_labels_differ_has_one_by_the_declared_rule(
    rule: Any, label: int, tmp_path: Path
) -> None:
    own = np.flatnonzero(USERS == 3)
    labels = LABELS.copy()
    labels[own] = 0
    labels[own[0]] = 2
    assert len(own) > 2
    unit = Unit(by="user", pool="mean", conflicts=rule)
    found = pooled(tmp_path, labels=labels, unit=unit)
    plain = pooled(tmp_path / "plain")
    different = set(rows_of(found).items()) - set(rows_of(plain).items())
    assert [of for _, (of, _) in different] == ([label] if label else [])
    assert ("differ" in (tmp_path / "problems.jsonl").read_text()) == (rule == "nothing")


def test_rules_for_labels_that_differ() -> None:
    assert pooled_label([], "any", 3, 1) == -1
    assert pooled_label([1, 1], "nothing", 3, 1) == 1
    assert pooled_label([0, 2, 0, 2], "majority", 3, 1) == 2  # of equals the last
    two = [number_of({0}, 4), number_of({1, 3}, 4)]
    assert pooled_label(two, "any", 4, 3) == number_of({0, 1, 3}, 4)
    assert pooled_label(two, "any", 4, 2) == -1  # more than a record may be of
    assert pooled_label([*two, two[0]], "majority", 4, 3) == two[0]
    absent, present, unknown = 0, 1, 2
    seen = [[absent, present, unknown], [absent, absent, unknown], [absent, absent, present]]
    numbers = [number_of_findings(states) for states in seen]
    for rule, states in {
        "nothing": [absent, unknown, present],
        "any": [absent, present, present],
        "majority": [absent, absent, present],
    }.items():
        found = pooled_label(numbers, rule, 3, MANY)  # type: ignore[arg-type]
        assert found == number_of_findings(states)


def test_a_user_of_several_groups_counts_as_nothing(tmp_path: Path) -> None:
    region = np.where(USERS % 2, "north", "south").astype("U9")
    region[np.flatnonzero(USERS == 3)[0]] = "south"
    group = TrainedGroup(names=("north", "south"), column="region")
    cache = pooled(tmp_path, region=region, group=group)
    assert (cache.labels < 0).sum() == 1
    assert cache.groups is not None
    assert sorted(cache.groups[cache.labels >= 0]) == sorted(
        int(user % 2 == 0) for user in set(USERS) - {3}
    )


def test_a_public_source_is_pooled_where_it_has_users(tmp_path: Path) -> None:
    with_users = pooled(tmp_path / "with", public="test")
    assert len(with_users.units) == len(set(USERS))
    np.savez(tmp_path / "plain.npz", features=ROWS, labels=LABELS)
    with_plain = f"npz:{tmp_path / 'plain.npz'}"
    dataset = dataset_of(
        f"npz:{tmp_path / 'with' / 'data.npz'}", public_test=with_plain, classes=3, unit=POOL
    )
    without = manifest_of(tmp_path, dataset, "test")
    assert len(np.unique(without.units, axis=0)) == len(ROWS)
    assert (without.labels >= 0).all()


def test_an_empty_part_stays_empty(tmp_path: Path) -> None:
    cache = pooled(tmp_path, public="validation", rows=ROWS, split=Split(test=0.0))
    assert len(cache.units) == len(set(USERS))
    nothing = extract_part(tmp_path, MATRIX, "nothing.h5")
    merge([nothing], tmp_path / "root", tmp_path / "none.h5", KEYS.cache)
    assert open_part(tmp_path / "none.h5").features.shape == (0, 5)


def test_a_check_counts_users(tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", features=ROWS, labels=LABELS, users=USERS)
    dataset = dataset_of(f"npz:{tmp_path / 'data.npz'}", classes=3, unit=POOL)
    counted = census(survey(dataset, KEYS))
    assert sum(counted.counting.values()) == counted.usable == len(set(USERS))
    assert sum(sum(part.values()) for part in counted.parts.values()) == len(set(USERS))
