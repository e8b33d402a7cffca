"""How a cost is shown to people, everywhere."""

from __future__ import annotations

import math


def up(value: float, places: int = 4) -> str:
    """A cost as shown: rounded up. The allowance is for decimal digits of binary numbers, far below the last place."""
    return f"{math.ceil(value * 10**places - 1e-9) / 10**places:.{places}f}"
