"""The findings of a record (`dataset.labels: many`), as a source gives them.

They are names: between bars, or in a list, which may be empty. Or they are a value for each class:
in a column each, or in a list of numbers. A name of no class is another finding, which nobody asked
for (`No Finding` too). A value is 1, 0, -1 (uncertain) or blank; any other makes the record count
as nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from dpladder.config.dataset_sections import Dataset
from dpladder.config.label_sets import ABSENT, PRESENT, UNKNOWN, number_of_findings
from dpladder.data.sources import text

UNCERTAIN, BLANK = -1, -2  # beside the states
WORDS = {"": BLANK, "nan": BLANK, "true": PRESENT, "false": ABSENT}


@dataclass(frozen=True, eq=False)
class Findings:
    """From a record's label as given to the number of its findings, or to -1. It looks at one
    record alone.

    Attributes:
        class_of: from a name to the place of its class, or to -1.
        count: of classes.
        dataset: says what uncertain and blank values count as.
    """

    class_of: Callable[[object], int]
    count: int
    dataset: Dataset

    def __call__(self, label: object) -> int:
        states = self._states(label)
        if len(states) != self.count or None in states:
            return -1
        return number_of_findings([self._apply_policy(state) for state in states])

    def unknown_names(self, label: object) -> Iterator[str]:
        """The names in a record's label that are no class."""
        yield from (name for name in self._names(label) or () if self.class_of(name) < 0)

    def _states(self, label: object) -> Sequence[int | None]:
        """A state for each class, None where a value is none; too few or too many where the label
        does not fit."""
        names = self._names(label)
        if names is None:
            each = label if isinstance(label, list | tuple) else ()
            return [_state(value) for value in each]
        unknown = None if isinstance(label, list) else _state("|".join(names))
        if unknown in (UNCERTAIN, BLANK):
            return [unknown] * self.count
        numbers = {self.class_of(name) for name in names}
        return [PRESENT if place in numbers else ABSENT for place in range(self.count)]

    def _names(self, label: object) -> list[str] | None:
        """None of a value for each class. By the config, or the kind of values, never by how many
        they are."""
        if isinstance(self.dataset.label, tuple):
            return None
        if isinstance(label, list | tuple):
            are_names = all(isinstance(one, str | bytes) for one in label)
            return [text(one) for one in label] if are_names else None
        names = [] if _state(label) == BLANK else text(label).split("|")
        return [name.strip() for name in names if name.strip()]

    def _apply_policy(self, state: int | None) -> int:
        """What a state counts as, where the config says what uncertain and blank ones are."""
        unknown, blank = self.dataset.unknown, self.dataset.blank
        policy = unknown if state == UNCERTAIN or blank is None else blank
        if state not in (UNCERTAIN, BLANK):
            assert state is not None, "looked for before"
            return state
        return UNKNOWN if policy == "ignore" else policy


def _state(value: object) -> int | None:
    """None of what is no state. 1.0 is 1, as pandas makes one of the other where a value is
    missing."""
    if value is None:
        return BLANK
    words = text(value).lower()
    if words in WORDS:
        return WORDS[words]
    try:
        number = float(words)
    except ValueError:
        return None
    if math.isnan(number):
        return BLANK
    return int(number) if number in (UNCERTAIN, ABSENT, PRESENT) else None
