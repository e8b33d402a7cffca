"""How a cost, and a name beside it, are shown to people, everywhere."""

from __future__ import annotations

import math


def up(value: float, places: int = 4) -> str:
    """A cost as shown: rounded up. The allowance is for decimal digits of binary numbers, far below the last place."""
    return f"{math.ceil(value * 10**places - 1e-9) / 10**places:.{places}f}"


def in_cell(text: str) -> str:
    """Of a table in Markdown: on one line, and no end of its cell, for people call things as they like."""
    return " ".join(text.split()).replace("|", "\\|")
