"""Units: who belongs to a version of the data, and which lineages hold the same people's."""

from __future__ import annotations

import fcntl
import os
import resource
from collections.abc import Iterable
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from dpladder.errors import BadInput
from dpladder.privacy.ids import Ids, id_set, ids_in
from dpladder.privacy.ledger.home import Home, open_home
from dpladder.privacy.ledger.units import (
    FEWEST_SHARED_IDS,
    Known,
    remember_units,
    same_data,
    sharing,
    units_of,
)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return open_home(tmp_path / "home")


def ids(numbers: Iterable[int]) -> Ids:
    return id_set(ids_in(b"".join(number.to_bytes(16, "big") for number in numbers)))


def known(
    units: Iterable[int], contents: Iterable[int] = (), numbered: Iterable[int] = ()
) -> Known:
    return Known(ids(units), ids(numbered), ids(contents))


MANY = range(1000, 1000 + 2 * FEWEST_SHARED_IDS)
OTHERS = range(9000, 9000 + 2 * FEWEST_SHARED_IDS)


def test_the_units_of_a_version_are_found_by_their_digest_and_stay_what_they_were(
    home: Home,
) -> None:
    remember_units(home, "one", "first", known(MANY))
    remember_units(home, "one", "second", known([1, 2]))
    remember_units(home, "one", "first", known([3]))
    assert np.array_equal(units_of(home, "one", "first"), ids(MANY))
    assert np.array_equal(units_of(home, "one", "second"), ids([1, 2]))
    with pytest.raises(BadInput, match=r"is gone.*dataset\.version"):
        units_of(home, "one", "third")
    files = [path for path in home.units.rglob("*") if path.is_file()]
    assert all(path.stat().st_mode & 0o077 == 0 for path in files)


@pytest.mark.parametrize("own", [known(MANY), known([8], MANY)], ids=["units", "contents"])
def test_lineages_that_hold_the_same_data_are_named_whatever_they_held_since(
    home: Home, own: Known
) -> None:
    remember_units(home, "one", "a", known(MANY, MANY))
    remember_units(home, "one", "b", known([7], [7]))
    remember_units(home, "others", "a", known(OTHERS, OTHERS))
    assert sharing(home, "two", own) == ["one"]
    assert sharing(home, "one", own) == []


def test_numbers_of_rows_say_nothing_of_who_somebody_is(home: Home) -> None:
    remember_units(home, "one", "a", known(MANY, numbered=MANY))
    assert sharing(home, "two", known(MANY, numbered=MANY)) == []


def test_what_chance_explains_is_no_shared_data() -> None:
    copies, large = range(FEWEST_SHARED_IDS), range(100 * FEWEST_SHARED_IDS)
    others = range(10**6, 10**6 + 200 * FEWEST_SHARED_IDS)
    assert not same_data(ids([*copies, *others]), ids(large))
    assert same_data(ids(copies), ids(large))
    assert same_data(ids(large), ids(copies))
    assert not same_data(ids(copies[1:]), ids(large))


def test_two_clones_that_prepare_one_lineage_take_turns(home: Home) -> None:
    """Each reads what is known and writes it with its own: side by side, one would be lost."""
    remember_units(home, "one", "first", known(MANY))
    descriptor = os.open(home.units, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    other = Thread(target=remember_units, args=(home, "one", "second", known(OTHERS)))
    other.start()
    other.join(0.3)
    assert other.is_alive()
    os.close(descriptor)
    other.join(60)
    assert np.array_equal(units_of(home, "one", "second"), ids(OTHERS))


def test_many_lineages_are_compared_in_a_process_that_may_open_few_files(home: Home) -> None:
    for number in range(40):
        remember_units(home, f"lineage-{number}", "first", known(MANY, MANY, MANY))
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = len([*Path("/proc/self/fd").iterdir()]) + 40
    resource.setrlimit(resource.RLIMIT_NOFILE, (few, before[1]))
    try:
        assert len(sharing(home, "one", known(MANY, MANY))) == 40
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
