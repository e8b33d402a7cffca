"""What records are besides a source: how documents are cut. Of a further test it is also how labels
find their class, which groups its records are of, and how its images are corrupted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Corruption:
    """Gaussian blur or noise, as in ImageNet-C.

    Attributes:
        kind: which of both.
        severity: from 1 to 5, the strongest.
    """

    kind: Literal["blur", "noise"]
    severity: int


@dataclass(frozen=True)
class Grouping:
    """Where a record's own group stands, in a column or in the name of a folder, and what the
    groups are called.

    Attributes:
        names: of the groups, in the declared order; public, and never read off the data.
        column: of a table, or an array; None of a folder.
        level: of a folder, 1 or 2 from the top; None of a table.
    """

    names: tuple[str, ...]
    column: str | None = None
    level: int | None = None


@dataclass(frozen=True)
class Matching:
    """Labels of another source, matched by name and never by place: two sources may count the same
    classes in another order.

    Attributes:
        names: the model's own classes, where they have some.
        classes: how many there are, where they have no names.
        source: the model's own, which tells how many where nothing else does.
        labels: what the other's labels 0, 1, ... are called, where that is known.
        counts_as: of its labels, by name or number, the class that each counts as.
        grouping: of its records, where they are told by groups.
    """

    names: tuple[str, ...] | None
    classes: int | None
    source: str
    labels: tuple[str, ...]
    counts_as: tuple[tuple[str, str], ...]
    grouping: Grouping | None = None


@dataclass(frozen=True)
class Spans:
    """How documents are cut into records.

    Attributes:
        model: whose tokenizer cuts them.
        tokens: of one record at most, special ones included.
    """

    model: str
    tokens: int


ALSO = "also-"  # begins the parts of further tests


@dataclass(frozen=True)
class FurtherTest:
    """One test beside the test part.

    Attributes:
        name: as the config calls it, and with its severity, of a corruption.
        records: the part that they are of. It is its own, or that of the test whose images it
            corrupts, or of which it takes some groups.
        corruption: of its images; None where they are as they are.
        matched: how labels find their class, where the records are its own.
        epsilon: of its count on private ones; None of exact counts.
        named: what the groups of its records are called, where they are known.
        groups: those that it takes; all where none is named.
    """

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
