"""Several classes, findings or a target as one number: what goes in comes out, and a single class
stays what it is."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from dpladder.config.dataset_sections import SHORTEST, NumberTarget
from dpladder.config.label_sets import (
    MANY,
    MOST_FINDINGS,
    NUMBER,
    PRESENT,
    TARGET_STEPS,
    UNKNOWN,
    has_label,
    label_number_limit,
    labels_in_turn,
    most_labels,
    number_of,
    number_of_findings,
    number_of_target,
    place_in_range,
    pooled_label,
    states_by_finding,
)


@st.composite
def sets(draw: st.DrawFn) -> tuple[int, list[set[int]]]:
    """How many classes there are, and the classes of each record."""
    count = draw(st.integers(2, 30_000))
    classes = st.sets(st.integers(0, count - 1), max_size=most_labels(count))
    return count, draw(st.lists(classes, max_size=6))


@given(sets())
def test_classes_come_out_as_they_went_in(given: tuple[int, list[set[int]]]) -> None:
    count, wanted = given
    numbers = np.array([number_of(own, count) for own in wanted], np.int64)
    for kind in (numbers, torch.from_numpy(numbers)):
        found: list[set[int]] = [set() for _ in wanted]
        for own in labels_in_turn(kind, count):
            for record, label in zip(found, own.tolist(), strict=True):
                record |= {label} - {-1}
        assert found == wanted
        for label in {0, count - 1}.union(*wanted):
            assert has_label(kind, label, count).tolist() == [label in own for own in wanted]


@given(sets())
def test_a_set_of_few_has_a_smaller_number_than_any_of_more_may_have(
    given: tuple[int, list[set[int]]],
) -> None:
    count, wanted = given
    for own in wanted:
        assert number_of(own, count) < label_number_limit(count, max(len(own), 1)) <= 2**63


def test_a_single_class_is_its_own_number_and_none_is_minus_one() -> None:
    assert [number_of({label}, 5) for label in range(5)] == [0, 1, 2, 3, 4]
    assert label_number_limit(5, 1) == 5
    assert number_of((), 5) == -1
    assert number_of((3, 1, 3), 5) == number_of((1, 3), 5) >= 5


def test_each_prediction_is_right_that_is_one_of_the_classes() -> None:
    numbers = np.array([number_of({0, 2}, 3), 1, -1])
    assert has_label(numbers, np.array([2, 1, 0]), 3).tolist() == [True, True, False]
    heads = np.array([[0, 1], [1, 0], [0, 1]])
    assert has_label(numbers[:, None], heads, 3).tolist() == [
        [True, False],
        [True, False],
        [False, False],
    ]


@given(
    st.integers(2, MOST_FINDINGS).flatmap(
        lambda count: st.lists(
            st.lists(st.integers(0, 2), min_size=count, max_size=count), min_size=1, max_size=6
        )
    )
)
def test_findings_come_out_as_they_went_in(wanted: list[list[int]]) -> None:
    count = len(wanted[0])
    numbers = np.array([number_of_findings(states) for states in wanted], np.int64)
    assert (numbers < label_number_limit(count, MANY)).all()
    assert label_number_limit(count, MANY) <= 2**63
    for kind in (numbers, torch.from_numpy(numbers)):
        for place, (present, known) in enumerate(states_by_finding(kind, count)):
            states = [record[place] for record in wanted]
            assert present.tolist() == [state == PRESENT for state in states]
            assert known.tolist() == [state != UNKNOWN for state in states]


@given(st.integers(1, 20), st.lists(st.integers(-(2**62), -1), min_size=1, max_size=5))
def test_what_is_below_zero_is_of_no_class_and_has_no_finding(count: int, below: list[int]) -> None:
    """Whatever made such a label: a record that it stands for counts as nothing."""
    numbers = np.array([*below, 0], np.int64)
    for kind in (numbers, torch.from_numpy(numbers)):
        for label in range(count):
            assert not has_label(kind, label, count)[:-1].any()
        assert not any((own[:-1] >= 0).any() for own in labels_in_turn(kind, count))
        for present, known in states_by_finding(kind, count):
            assert not present[:-1].any()
            assert not known[:-1].any()


def test_of_whom_nothing_is_known_counts_as_nothing() -> None:
    assert number_of_findings([UNKNOWN] * 5) == -1
    assert number_of_findings([0] * 5) == 0


FINITE = st.floats(allow_nan=False, allow_infinity=False)
RANGES = st.tuples(FINITE, FINITE).filter(lambda ends: SHORTEST <= ends[1] - ends[0] < math.inf)


@given(RANGES, st.lists(st.floats(), max_size=8))
@example((-5e99, 5e99), [-math.inf, -1.7e308, 0.0, 1e308, 1.7e308, math.nan])
@example((1.0, 1.0 + 2**-52), [0.0, 1.0, 1.0 + 2**-52, 2.0])
def test_a_target_is_cut_to_its_range_and_keeps_its_order(
    ends: tuple[float, float], values: list[float]
) -> None:
    numbers = {value: number_of_target(value, *ends) for value in (*values, *ends)}
    assert numbers[ends[0]] == 0
    assert numbers[ends[1]] == TARGET_STEPS < label_number_limit(1, NUMBER)
    for value, number in numbers.items():
        assert (number == -1) == (not math.isfinite(value))
    finite = sorted(value for value in numbers if math.isfinite(value))
    in_order = [numbers[value] for value in finite]
    assert in_order == sorted(in_order)
    assert all(0 <= number <= TARGET_STEPS for number in in_order)


@pytest.mark.parametrize(
    "wrong",
    [
        {"range": (1.0, 1.0)},
        {"range": (1.0, 0.0)},
        {"range": (0.0, math.inf)},
        {"range": (math.nan, 1.0)},
        {"range": (-1e308, 1e308)},
        {"range": (0.0, 5e-324)},
        {"range": (0.0, 1.0), "error": 1.1},
        {"range": (0.0, 1.0), "error": 1e-9},
    ],
    ids=str,
)
def test_a_range_that_numbers_cannot_be_told_apart_in_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"range must be|error must not|finite"):
        NumberTarget(**wrong)


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.floats(0, 1))
def test_a_target_comes_out_as_it_went_in(least: float, width: float, share: float) -> None:
    ends = least, least + width
    value = min(least + share * width, ends[1])
    number = np.array([number_of_target(value, *ends)])
    for kind in (number, torch.from_numpy(number).double()):
        place = float(place_in_range(kind)[0])
        assert abs(ends[0] + place * (ends[1] - ends[0]) - value) <= width / TARGET_STEPS + 1e-9


@pytest.mark.parametrize("numbers", [[7], [0, TARGET_STEPS], [1, 2, 6], [5, 5, 5]])
def test_a_person_is_told_by_the_mean_of_their_targets(numbers: list[int]) -> None:
    mean = pooled_label(numbers, "mean", 1, NUMBER)
    assert mean == round(sum(numbers) / len(numbers))
    assert pooled_label(numbers[::-1], "mean", 1, NUMBER) == mean
    alike = len({*numbers}) == 1
    assert pooled_label(numbers, "nothing", 1, NUMBER) == (numbers[0] if alike else -1)


def test_a_person_without_a_target_is_told_by_none() -> None:
    assert pooled_label([], "mean", 1, NUMBER) == -1
