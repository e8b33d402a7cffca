"""How figures and tables write values. Without the libraries that draw: a job pays for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Document = Mapping[str, Any]
"""A row of a contest (research/)."""


def short_number(value: float, _: object = None) -> str:
    """Three digits, as people write them: 1,000 and 1e-5. What matplotlib passes second is ignored.

    It rounds to the nearest, so no cost is written with it: those are rounded up
    (privacy/accounting/rounding.py).
    """
    if 1000 <= abs(value) < 1e6:
        return f"{value:,.0f}"
    return f"{value:.3g}".replace("e-0", "e-").replace("e+0", "e")
