"""What tables of comparisons share. Their rows are one name at one total each.

A row is a plain dictionary (`Document`): a `Standing` of research/contest.py, and what a comparison
adds to it. All of it is of public data, so no figure here needs noise.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Document = Mapping[str, Any]
"""A row of a contest."""


def write_csv(rows: Sequence[Document], path: Path) -> None:
    """Write all rows for programs, with a header. The keys of the first are the columns, so all
    rows must have equal keys, and there must be one."""
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
