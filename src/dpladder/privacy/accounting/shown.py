"""How a cost, and a name beside it, are shown to people, everywhere."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass

from dpladder.config.wording import printable


@dataclass(frozen=True)
class Shown:
    """A figure, and the deviation that noise gives it."""

    value: float
    sd: float


def up(value: float, places: int = 4) -> str:
    """A cost as shown: rounded up. The allowance is for decimal digits of binary numbers, far below
    the last place."""
    return f"{math.ceil(value * 10**places - 1e-9) / 10**places:.{places}f}"


def mu_up(mu: float) -> str:
    """A mu as shown: three digits, rounded up."""
    return up(mu, max(2 - math.floor(math.log10(mu)), 0)) if mu > 0 else "0"


def spread(share: float, sd: float, total: float) -> float:
    """One deviation of a share of `total` records: over the noise, whose own is `sd`, and over
    which records happened to be in the test."""
    inside = min(max(share, 0.0), 1.0)
    return math.hypot(sd, math.sqrt(inside * (1.0 - inside) / max(total, 1.0)))


def in_cell(text: str) -> str:
    """Words of others as Markdown shows them: on one line, no end of a table's cell, no HTML, no
    link, no picture."""
    line = html.escape(printable(" ".join(text.split())), quote=False)
    return line.replace("](", "]\\(").replace("|", "\\|")
