"""What a record is to be told by, as one number: what stands wherever a label stands.

**Up to so many classes** (`dataset.labels: 3`). Each class plus one is a digit to the base of all
classes plus one, and one is taken from what they make. So a single class is its own number, and
none is -1. What knows of single classes alone takes any other number for no class at all.

**Findings** (`dataset.labels: many`). Each class by itself is absent, present or unknown: 0, 1 or
2, a digit to the base of 3. A record of which nothing is known is -1, and counts as nothing.

**A number** (`dataset.target`). Its place in the public range, in steps of 2^-30 of it. What lies
beyond the range is cut to it. What is no finite number is -1.

Works on arrays of whole numbers, numpy's or torch's.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

Labels = int | Literal["many", "number"]
Conflicts = Literal["nothing", "any", "majority", "mean"]
MANY: Literal["many"] = "many"
NUMBER: Literal["number"] = "number"
TARGET_STEPS = 2**30  # from the least to the largest number of a target's range
ABSENT, PRESENT, UNKNOWN = STATES = range(3)
MOST_FINDINGS = 39  # classes: 3^39 is below 2^63

BITS = 63  # of a positive whole number


def number_of(classes: Iterable[int], count: int) -> int:
    """The number that stands for a set of classes, out of `count`.

    Args:
        classes: numbers from 0; repeats count once. None at all give -1.
        count: of all classes.

    Returns:
        Below 2^63 where there are no more than `most_labels(count)` of them; who calls sees to
        that.
    """
    digits = enumerate(sorted(set(classes)))
    return sum((one + 1) * (count + 1) ** place for place, one in digits) - 1


def number_of_findings(states: Sequence[int]) -> int:
    """The number of a record's states, in the classes' order; -1 where all are unknown."""
    if all(state == UNKNOWN for state in states):
        return -1
    return sum(state * len(STATES) ** place for place, state in enumerate(states))


def number_of_target(value: float, least: float, largest: float) -> int:
    """The number that stands for a target: its place in the public range, cut to it; -1 where it is
    not finite. The range's length is a float above 0 (config/dataset_sections.py)."""
    if not math.isfinite(value):
        return -1
    return round((min(max(value, least), largest) - least) / (largest - least) * TARGET_STEPS)


def place_in_range(numbers: Any) -> Any:
    """Where targets lie in their range, from 0 to 1, by the numbers that stand for them."""
    return numbers / TARGET_STEPS


def states_by_finding(numbers: Any, count: int) -> Iterator[tuple[Any, Any]]:
    """For each class, which records have it, and of which records that is known. Of a number below
    0 nothing is known.

    Args:
        numbers: an array of labels, NumPy's or torch's.
        count: of findings.

    Yields:
        Two masks over the records for each finding, in the classes' order: present, and known.
    """
    for place in range(count):
        state = numbers // len(STATES) ** place % len(STATES)
        yield (state == PRESENT) & (numbers >= 0), (state != UNKNOWN) & (numbers >= 0)


def members_by_class(numbers: Any, count: int, most: Labels) -> Iterator[Any]:
    """For each class, which records are of it; a number below 0 is of none.

    Args:
        numbers: an array of labels, a number for each record's set.
        count: of classes.
        most: classes of a record; `many` where each is a finding; `number` of targets, which are
            of one class.

    Yields:
        A mask over the records for each class, in the classes' order.
    """
    if most == MANY:
        yield from (present for present, _ in states_by_finding(numbers, count))
    elif most == NUMBER:
        yield numbers >= 0
    else:
        yield from (has_label(numbers, label, count) for label in range(count))


def label_number_limit(count: int, most: Labels) -> int:
    """Above all numbers of sets of `most` classes.

    Args:
        count: of all classes.
        most: classes of a record; `many` where each is a finding; `number` of targets.

    Returns:
        The smallest number that no such set has; a label from there on is no class at all.
    """
    if most == NUMBER:
        return TARGET_STEPS + 1
    return len(STATES) ** count if most == MANY else (count + 1) ** most - 1


def most_labels(count: int) -> int:
    """How many of `count` classes a number can hold."""
    return int(BITS / math.log2(count + 1))


def labels_in_turn(numbers: Any, count: int) -> Iterator[Any]:
    """For each record one of its classes after the other, and -1 where it has no more; a number
    below 0 has none.

    Args:
        numbers: an array of labels, a number for each record's set; NumPy's or torch's.
        count: of all classes.

    Yields:
        Arrays of the same shape, as many as the record with most classes has.
    """
    rest = (numbers + 1) * (numbers >= 0)
    while (rest > 0).any():
        yield rest % (count + 1) - 1
        rest = rest // (count + 1)


def has_label(numbers: Any, label: Any, count: int) -> Any:
    """Whether each record is of a class.

    Args:
        numbers: an array of labels, a number for each record's set; NumPy's or torch's.
        label: the class, or a class for each record.
        count: of classes.
    """
    is_member = numbers != numbers  # none
    for labels in labels_in_turn(numbers, count):
        is_member = is_member | (labels == label)
    return is_member


def pooled_label(numbers: Sequence[int], rule: Conflicts, count: int, most: Labels) -> int:
    """The one label of a unit whose records are pooled to one.

    It reads the records of this unit alone, so a neighbour's label moves no other.

    Args:
        numbers: its records' labels.
        rule: `nothing` gives no label where records differ. `any` takes the last of their classes,
            or their union where a record may be of several. `majority` takes the most frequent
            label, of equals the last. `mean` takes the mean of targets. Of findings each has a vote
            of its own, of the records that know.
        count: of classes.
        most: classes of a record. A union of more is no label.

    Returns:
        The label's number; -1 where there is none.
    """
    if most == MANY:
        digits = [len(STATES) ** place for place in range(count)]
        each = ([number // digit % len(STATES) for number in numbers] for digit in digits)
        known = ([state for state in states if state != UNKNOWN] for states in each)
        return number_of_findings([_vote(states, rule, UNKNOWN) for states in known])
    if rule == "mean":
        return round(sum(numbers) / len(numbers)) if numbers else -1
    if most in (1, NUMBER) or rule != "any":
        return _vote(numbers, rule, -1)
    union = {one for number in numbers for one in _classes_in(number, count)}
    return number_of(union, count) if len(union) <= most else -1


def _vote(values: Sequence[int], rule: Conflicts, none: int) -> int:
    """The one value that a rule makes of several; `none` of nothing, or of a conflict that counts
    as nothing."""
    counts = Counter(values)
    if not counts or (rule == "nothing" and len(counts) > 1):
        return none
    return max(counts) if rule == "any" else max(counts, key=lambda one: (counts[one], one))


def _classes_in(number: int, count: int) -> Iterator[int]:
    """The classes of one record, by its number; none of what is below 0."""
    rest = number + 1
    while rest > 0:
        yield rest % (count + 1) - 1
        rest //= count + 1
