"""Units: two lineages may not hold the same people's data, and what says so tells nothing about one
of them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import cycle
from pathlib import Path
from random import Random

import pytest

from dpladder.errors import BadInput, Refused
from dpladder.privacy.ledger.home import Home, open_home
from dpladder.privacy.ledger.units import LEAST, register_units, same_data


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return open_home(tmp_path / "home")


def ids(*numbers: int) -> list[bytes]:
    return [number.to_bytes(16, "big") for number in numbers]


def owned(contents: Iterable[int], units: Iterable[int]) -> list[tuple[bytes, bytes]]:
    """Each content with whose it is, in turn."""
    return list(zip(ids(*contents), cycle(ids(*units)), strict=False))


def register(home: Home, lineage: str, *numbers: int, confirmed: bool = True) -> None:
    register_units(home, lineage, ids(*numbers), owned(numbers, numbers), confirmed)


MANY = range(1000, 1000 + 2 * LEAST)


def test_lineages_with_different_units_are_welcome(home: Home) -> None:
    register(home, "one", 1, 2, 3)
    register(home, "two", 4, 5)
    files = [path for path in home.units.rglob("*") if path.is_file()]
    assert files
    assert all(path.stat().st_mode & 0o077 == 0 for path in files)


@pytest.mark.parametrize("number", [1, LEAST - 1])
def test_a_few_units_more_or_less_decide_nothing(home: Home, number: int) -> None:
    """Whether one record is among the private ones may not show in an exit code."""
    register(home, "one", *MANY)
    register(home, "probe", *range(1000, 1000 + number))
    register(home, "other-probe", *range(number))


@pytest.mark.parametrize("by", ["units", "contents"])
def test_an_overlap_that_no_accident_explains_is_refused_until_it_is_gone_and_no_number_is_told(
    home: Home, by: str
) -> None:
    register(home, "one", *MANY)
    shared, own = [*MANY[:LEAST], 7], [8]
    units, contents = (shared, own) if by == "units" else (own, shared)
    with pytest.raises(Refused, match="lineages two and one share") as refusal:
        register_units(home, "two", ids(*units), owned(contents, units), False)
    assert not any(digit in str(refusal.value) for digit in "0123456789")
    register(home, "two", 7)
    register(home, "one", 100)


def test_contents_hide_no_shared_units(home: Home) -> None:
    """The same people with other records, of which there are many more."""
    register_units(home, "one", ids(*MANY), owned(range(2_000, 22_000), MANY), False)
    records = owned(range(30_000, 50_000), MANY)
    with pytest.raises(Refused, match="share"):
        register_units(home, "two", ids(*MANY), records, False, kind="another")


def test_copies_that_are_few_for_their_data_are_an_accident() -> None:
    large, copies = set(range(100 * LEAST)), set(range(LEAST))
    assert not same_data(copies | set(range(-200 * LEAST, 0)), large | copies)
    assert same_data(copies, large)
    assert same_data(large, copies)
    assert not same_data(set(list(copies)[1:]), large)


def known_by_ids(home: Home, units: Iterable[int], contents: Iterable[int]) -> None:
    """Each unit has records of its own, or several have the same."""
    units, contents = [*units], [*contents]
    most = max(len(units), len(contents))
    pairs = zip(cycle(ids(*contents)), cycle(ids(*units)), range(most), strict=False)
    records = [(content, unit) for content, unit, _ in pairs]
    register_units(home, "one", ids(*units), records, True, by_ids=True)


def test_a_lineages_records_under_other_ids_are_refused_and_no_number_is_told(home: Home) -> None:
    """An export with fresh pseudonyms; or one id is missing, and a table makes 1.0 of all 1s."""
    known_by_ids(home, MANY, MANY)
    anew = [*range(5000, 5000 + len(MANY)), MANY[0]]
    with pytest.raises(Refused, match="come under other ids") as refusal:
        known_by_ids(home, anew, MANY)
    assert str(len(MANY)) not in str(refusal.value)
    known_by_ids(home, [*MANY, 7], [*MANY, 7])


@pytest.mark.parametrize(
    ("units", "contents"),
    [
        (range(5000, 5000 + LEAST - 1), range(1000, 1000 + LEAST - 1)),  # few decide nothing
        (range(5000, 5200), range(2000, 2200)),  # others' records
        (range(5000, 5400), MANY),  # so coarse that other people have them too
        ([*MANY[:2], *range(5000, 5049)], [*MANY[:2], *MANY[51:]]),  # two stay, few are others
        (MANY, range(2000, 2200)),  # the same people's later records
        ([*MANY, *range(5000, 5100)], [*MANY, *MANY]),  # others whose records are like theirs
    ],
)
def test_other_records_other_people_and_few_of_either_are_welcome(
    home: Home, units: Iterable[int], contents: Iterable[int]
) -> None:
    known_by_ids(home, MANY, MANY)
    known_by_ids(home, units, contents)


def test_a_part_of_a_lineages_records_under_other_ids_is_refused(home: Home) -> None:
    """A clinic of several draws its pseudonyms anew."""
    known_by_ids(home, MANY, MANY)
    with pytest.raises(Refused, match="come under other ids"):
        known_by_ids(home, [*MANY[LEAST:], *range(5000, 5000 + LEAST)], [*MANY[LEAST:], *MANY])


def test_as_many_records_are_alike_by_chance_as_in_one_version(home: Home) -> None:
    """Half of the people leave, others come, and a fifth of all has another one's record too."""
    random = Random(1)
    said = [random.randrange(8000) for _ in range(3000)]
    known_by_ids(home, range(2000), said[:2000])
    known_by_ids(home, range(1000, 3000), said[1000:])


@pytest.mark.parametrize("first", [True, False])
def test_a_lineage_that_gains_or_loses_its_ids_is_welcome_for_its_spends_add(
    home: Home, first: bool
) -> None:
    register_units(home, "one", ids(*MANY), owned(MANY, MANY), True, by_ids=first)
    anew = range(5000, 5000 + len(MANY))
    register_units(home, "one", ids(*anew), owned(MANY, anew), True, by_ids=not first)


def test_a_lineage_may_come_again_and_keeps_what_it_once_held(home: Home) -> None:
    register(home, "one", *MANY)
    register(home, "one", 2, 3)
    with pytest.raises(Refused, match="share"):
        register(home, "two", *MANY)


def test_ids_of_another_length_are_refused(home: Home) -> None:
    with pytest.raises(BadInput, match="16 bytes"):
        register_units(home, "one", [b"short"], [], True)


def test_numbers_of_rows_are_nobodys_names(home: Home) -> None:
    """Most tables have them."""
    for lineage, contents in (("one", MANY), ("two", range(5000, 5100))):
        records = owned(contents, MANY)
        register_units(home, lineage, ids(*MANY), records, True, numbered=ids(*MANY))
    with pytest.raises(Refused, match="share records"):
        register_units(home, "three", ids(*MANY), owned(MANY, MANY), True, numbered=ids(*MANY))


def test_ids_that_agree_by_accident_need_a_word_which_equal_records_do_not_take(
    home: Home,
) -> None:
    register_units(home, "one", ids(*MANY), owned(MANY, MANY), False)
    others = owned(range(5000, 5100), MANY)
    with pytest.raises(Refused, match=r"share units.*dataset\.new_lineage: true"):
        register_units(home, "two", ids(*MANY), others, False, kind="tables")
    register_units(home, "two", ids(*MANY), others, True, kind="tables")
    register_units(home, "one", ids(*MANY), owned(MANY, MANY), False)  # the word is for both
    with pytest.raises(Refused, match="share records"):
        register_units(home, "three", ids(*MANY), owned(MANY, MANY), True)


# A lineage under another name


def test_sizes_are_compared_within_a_kind_of_records(home: Home) -> None:
    register_units(home, "one", ids(*MANY), owned(MANY, MANY), False, kind="images")
    anew = encoded_anew(*MANY)
    register_units(home, "two", ids(*anew), owned(anew, anew), False, kind="tables")
    with pytest.raises(Refused, match="as large as one"):
        register_units(home, "three", ids(*MANY[:95]), [], False, kind="images")


def encoded_anew(*numbers: int) -> list[int]:
    return [number + 10**6 for number in numbers]


def test_a_new_lineage_as_large_as_a_known_one_must_be_confirmed_and_no_number_is_told(
    home: Home,
) -> None:
    register(home, "one", *MANY, confirmed=False)
    renamed = encoded_anew(*MANY, 1, 2)
    for _ in range(2):
        with pytest.raises(
            Refused, match=r"as large as one.*call it one.*dataset\.new_lineage: true"
        ) as refusal:
            register(home, "two", *renamed, confirmed=False)
        assert not any(digit in str(refusal.value) for digit in "0123456789")
    register(home, "two", *renamed)
    register(home, "two", *renamed, confirmed=False)  # once is enough


def test_any_version_of_a_known_lineage_counts(home: Home) -> None:
    register(home, "one", *MANY, confirmed=False)
    register(home, "one", *range(10 * LEAST), confirmed=False)
    for version in (MANY, range(10 * LEAST)):
        with pytest.raises(Refused, match="as large as one"):
            register(home, "two", *encoded_anew(*version), confirmed=False)


@pytest.mark.parametrize("size", [LEAST - 1, LEAST, 4 * LEAST])
def test_a_lineage_of_another_size_needs_no_word(home: Home, size: int) -> None:
    register(home, "one", *MANY, confirmed=False)
    register(home, "two", *encoded_anew(*range(size)), confirmed=False)


def test_what_is_too_small_to_tell_needs_no_word(home: Home) -> None:
    register(home, "one", 1, confirmed=False)
    register(home, "two", 2, confirmed=False)
