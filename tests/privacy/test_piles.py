"""Rows on disk, in piles by their ids: nothing hangs on how many piles there are."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpladder.privacy import piles
from dpladder.privacy.ids import id_set, ids_in
from dpladder.privacy.piles import ID, ArrayOnDisk, Piles, large_id_set, mapped_zeros, pieces_of

KIND = np.dtype([("id", *ID), ("number", np.int64)])
LEADING = st.sampled_from([b"\0\0", b"\0\1", b"\x7f\xff", b"\x80\0", b"\xff\xff"])
SOME = st.tuples(LEADING, st.sampled_from([b"a", b"b"])).map(lambda two: b"".join(two).ljust(16))


@settings(deadline=None)
@given(
    stretches=st.lists(st.lists(SOME, max_size=9), max_size=4),
    size=st.sampled_from([1, 24, 100, 10_000]),
)
def test_all_rows_of_an_id_are_in_one_pile_in_the_order_in_which_they_came(
    stretches: list[list[bytes]], size: int
) -> None:
    count, wanted = 0, defaultdict(list)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(piles, "BYTES_OF_A_PILE", size)
        laid = Piles(KIND, sum(map(len, stretches)), None)
        for stretch in stretches:
            rows = np.empty(len(stretch), KIND)
            rows["id"] = ids_in(b"".join(stretch))
            rows["number"] = np.arange(count, count + len(stretch))
            for one in stretch:
                wanted[one].append(count)
                count += 1
            laid.add(rows["id"], rows)
    found, last = {}, b""
    for pile in laid:
        here = defaultdict(list)
        for row in pile:
            here[row["id"].tobytes()].append(int(row["number"]))
        assert not {*here} & {*found}
        assert not here or last < min(here)
        last = max([last, *here])
        found |= here
    assert found == wanted


@settings(deadline=None)
@given(ids=st.lists(SOME, max_size=30), size=st.sampled_from([1, 50, 10_000]))
def test_a_large_set_is_the_set(ids: list[bytes], size: int) -> None:
    given_ids = ids_in(b"".join(ids))
    where = np.arange(len(ids)) % 3 > 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(piles, "BYTES_OF_A_PILE", size)
        patch.setattr(piles, "BYTES_AT_ONCE", size)
        whole = large_id_set(pieces_of(given_ids), len(ids), None)
        some = large_id_set(pieces_of(given_ids, where), len(ids), None)
    assert np.array_equal(whole, id_set(given_ids))
    assert np.array_equal(some, id_set(given_ids[where]))


def test_what_lies_on_disk_has_no_name_and_can_be_changed(tmp_path: Path) -> None:
    column, laid = ArrayOnDisk(ID, tmp_path), Piles(KIND, 5, tmp_path)
    rows = np.zeros(2, KIND)
    laid.add(rows["id"], rows)
    column.append(rows["id"])
    column.append(rows["id"])
    zeros, written = mapped_zeros(3, np.int64, tmp_path), column.array()
    written[1], zeros[2] = 7, 7
    assert (zeros.tolist(), written[:, 0].tolist()) == ([0, 0, 7], [0, 7, 0, 0])
    assert [*tmp_path.iterdir()] == []


def test_nothing_at_all_is_an_empty_array() -> None:
    assert ArrayOnDisk(ID, None).array().shape == (0, 16)
    assert mapped_zeros(0, np.int64, None).shape == (0,)
    assert [len(pile) for pile in Piles(KIND, 0, None)] == [0]
