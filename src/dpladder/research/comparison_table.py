"""What tables of comparisons share. Their rows are one name at one total each."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from dpladder.report.reading import Document


def write_csv(rows: Sequence[Document], path: Path) -> None:
    """All rows, which have equal keys; there is one at least."""
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, [*rows[0]], lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


def names(rows: Sequence[Document]) -> list[str]:
    """Those that are compared, in the order of their first rows."""
    return [*dict.fromkeys(row["name"] for row in rows)]


def epsilons(rows: Sequence[Document]) -> list[float]:
    """The totals, in ascending order."""
    return sorted({row["epsilon"] for row in rows})
