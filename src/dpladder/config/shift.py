"""What records are besides a source: how documents are cut. Of a further test it is also how labels
find their class, which groups its records are of, and how its images are corrupted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Corruption:
    """Gaussian blur or noise, `severity` 1 to 5."""

    kind: Literal["blur", "noise"]
    severity: int


@dataclass(frozen=True)
class Grouping:
    """Where a record's own group stands, in a column or in the name of a folder, and what the
    groups are called."""

    names: tuple[str, ...]
    column: str | None = None
    level: int | None = None


@dataclass(frozen=True)
class Matching:
    """Labels of another source, matched by name and never by place: two sources may count the same
    classes in another order. `names`: the model's own classes, where they have some; else `classes`
    and `source` tell how many there are. `labels`: what the other's labels 0, 1, ... are called,
    where that is known. `counts_as`: of its labels, by name or number, the class that each counts
    as. `grouping`: of its records, where they are told by groups."""

    names: tuple[str, ...] | None
    classes: int | None
    source: str
    labels: tuple[str, ...]
    counts_as: tuple[tuple[str, str], ...]
    grouping: Grouping | None = None


@dataclass(frozen=True)
class Spans:
    """How documents are cut into records: by the tokenizer of `model`, `tokens` at a time, special
    ones included."""

    model: str
    tokens: int


ALSO = "also-"  # begins the parts of further tests


@dataclass(frozen=True)
class FurtherTest:
    """One test beside the test part. `records`: the part that they are of; its own, or that of the
    test whose images it corrupts, or of which it takes some groups. `matched`: how labels find
    their class, where the records are its own. `epsilon`: of its count on private ones. `named`:
    what the groups of its records are called, where they are known; `groups`: those that it takes,
    all where none is named."""

    name: str
    records: str
    corruption: Corruption | None = None
    matched: Matching | None = None
    epsilon: float | None = None
    named: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()

    @property
    def part(self) -> str:
        """The name of its part of the data, which no split has."""
        return ALSO + self.name
