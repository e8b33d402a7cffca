"""How a cost, and a name beside it, are shown to people, everywhere.

A stated figure is rounded to the safe side: what was spent, a limit and a delta up, what is left
down. tests/privacy/statement/test_figures.py refuses any other way to write one."""

from __future__ import annotations

import html
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from dpladder.wording import printable

SDS_OF_95_PERCENT = 1.96  # deviations either way, which hold 95 % of a Gaussian
NEGLIGIBLE = Fraction(1, 10**9)  # of the last place that is shown


@dataclass(frozen=True)
class NoisedFigure:
    """A released figure, and how far chance may have moved it.

    Attributes:
        value: the figure.
        sd: the standard deviation that its noise gives it.
        low, high: a 95 % interval over noise and sampling, within what is possible. None of figures
            that have none, and in documents of before.
    """

    value: float
    sd: float
    low: float | None = None
    high: float | None = None

    @property
    def interval(self) -> tuple[float, float]:
        """Its ends; of a figure without one, those of its noise alone."""
        if self.low is None or self.high is None:
            return (
                self.value - SDS_OF_95_PERCENT * self.sd,
                self.value + SDS_OF_95_PERCENT * self.sd,
            )
        return self.low, self.high

    @property
    def spread(self) -> float:
        """One standard deviation, over noise and sampling."""
        low, high = self.interval
        return (high - low) / (2.0 * SDS_OF_95_PERCENT)


def round_up(value: float, places: int = 4) -> str:
    """A cost as shown: rounded up to so many decimal places. It is infinite where events together
    are booked at all of delta, which research alone may do."""
    if value == math.inf:
        return "inf"
    return f"{_round_decimal(value, places, math.ceil):.{max(places, 0)}f}"


def round_up_short(value: float, digits: int = 6) -> str:
    """A limit, a total or a delta as shown: as it was declared, up to so many digits, and rounded
    up beyond them."""
    if not 0.0 < value < math.inf:
        return f"{value:g}"
    places = digits - 1 - math.floor(math.log10(value))
    return f"{_round_decimal(value, places, math.ceil):.{digits}g}"


def round_down(value: float, places: int = 4) -> str:
    """What is left as shown: rounded down."""
    return f"{_round_decimal(value, places, math.floor):.{places}f}"


def round_nearest(value: float, places: int = 3) -> str:
    """A measured figure as shown, which has no safe side."""
    return f"{value:.{places}f}"


def percent(value: float, _: object = None) -> str:
    """A measured share with one digit behind the point: 12.5%. What matplotlib passes second is
    ignored."""
    return f"{value:.1%}"


def plain_number(value: float, precision: float | None = None) -> str:
    """A measured number as people write it: 65,900, .0123.

    Args:
        value: the number.
        precision: a deviation of it, two of whose digits are told; None: three digits.
    """
    size, digits = (precision, 1) if precision else (value, 2)
    if not size or not math.isfinite(size) or not 1e-9 < abs(value or size) < 1e12:
        return f"{value:.3g}"
    places = digits - math.floor(math.log10(abs(size)))
    return f"{round(value, places):,.{max(places, 0)}f}"


def _round_decimal(value: float, places: int, towards: Callable[[Fraction], int]) -> float:
    """The one place where a stated figure is rounded. It takes a float as the shortest decimal that
    names it. What stands far below the last place is rounding of a computation."""
    scaled = Fraction(repr(float(value))) * Fraction(10) ** places
    nearest = round(scaled)
    whole = nearest if abs(scaled - nearest) < NEGLIGIBLE else towards(scaled)
    return float(whole / Fraction(10) ** places)


def mu_up(mu: float) -> str:
    """A mu as shown: three digits, rounded up."""
    return round_up(mu, max(2 - math.floor(math.log10(mu)), 0)) if 0 < mu < math.inf else f"{mu:g}"


def mu_text(mu: float | None) -> str:
    """A mu as shown, where there may be none: a private selection has an epsilon alone."""
    return "no single mu" if mu is None else mu_up(mu)


def sampling_spread(share: float, sd: float, total: float) -> float:
    """One standard deviation of a share of records: over the noise, and over which records happened
    to be in the test (a binomial's).

    Args:
        share: as it was released; noise may bring it below 0 or above 1.
        sd: that the noise gives the share.
        total: number of records, as it was released.
    """
    inside = min(max(share, 0.0), 1.0)
    return math.hypot(sd, math.sqrt(inside * (1.0 - inside) / max(total, 1.0)))


def markdown_cell(text: str) -> str:
    """Words of others as Markdown shows them: on one line, no end of a table's cell, no HTML, no
    link, no picture."""
    line = html.escape(printable(" ".join(text.split())), quote=False)
    return line.replace("](", "]\\(").replace("|", "\\|")
