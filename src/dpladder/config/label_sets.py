"""The classes of a record that may be of several, as one number: what stands for them wherever a
label stands.

Each class plus one is a digit to the base of all classes plus one, and one is taken from what they
make. So a single class is its own number, none is -1, and what knows of single classes alone takes
any other number for no class at all. Works on arrays of whole numbers, numpy's or torch's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

BITS = 63  # of a positive whole number


def number_of(classes: Iterable[int], count: int) -> int:
    """Of a set of classes, out of `count`."""
    digits = enumerate(sorted(set(classes)))
    return sum((one + 1) * (count + 1) ** place for place, one in digits) - 1


def end_of_numbers(count: int, most: int) -> int:
    """Above all numbers of sets of `most` classes."""
    return (count + 1) ** most - 1


def most_labels(count: int) -> int:
    """How many of `count` classes a number can hold."""
    return int(BITS / math.log2(count + 1))


def each_label(numbers: Any, count: int) -> Iterator[Any]:
    """Of each record one of its classes after the other, and -1 where it has no more."""
    rest = numbers + 1
    while (rest > 0).any():
        yield rest % (count + 1) - 1
        rest = rest // (count + 1)


def are_of(numbers: Any, label: Any, count: int) -> Any:
    """Whether each record is of a class; of its own one, where there is one for each."""
    found = numbers < -1  # none
    for own in each_label(numbers, count):
        found = found | (own == label)
    return found
