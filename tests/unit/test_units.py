"""Units: two lineages may not hold the same person's data."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpladder.errors import BadInput, Refused
from dpladder.privacy.home import Home, open_home
from dpladder.privacy.units import register_units


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return open_home(tmp_path / "home")


def ids(*numbers: int) -> list[bytes]:
    return [number.to_bytes(16, "big") for number in numbers]


def test_lineages_with_different_units_are_welcome(home: Home) -> None:
    register_units(home, "one", ids(1, 2, 3))
    register_units(home, "two", ids(4, 5))
    assert (home.units / "one").stat().st_mode & 0o077 == 0


def test_one_shared_unit_is_refused_until_it_is_gone_and_no_number_is_told(home: Home) -> None:
    register_units(home, "one", ids(*range(100, 137)))
    with pytest.raises(Refused, match="lineages two and one share units") as refusal:
        register_units(home, "two", ids(7, 136))
    assert not any(digit in str(refusal.value) for digit in "0123456789")
    register_units(home, "two", ids(7))
    register_units(home, "one", ids(100))


def test_a_lineage_may_come_again_and_keeps_what_it_once_held(home: Home) -> None:
    register_units(home, "one", ids(1, 2))
    register_units(home, "one", ids(2, 3))
    with pytest.raises(Refused, match="share"):
        register_units(home, "two", ids(1))


def test_ids_of_another_length_are_refused(home: Home) -> None:
    with pytest.raises(BadInput, match="16 bytes"):
        register_units(home, "one", [b"short"])
