"""What private selections cost beside other releases: the events of a plan put into the bounds of selection.py."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

from dpladder.privacy import gdp, selection
from dpladder.privacy.selection import ORDERS, Lean, Runs
from dpladder.privacy.spend import RepeatAndSelect, SubsetSelect
from dpladder.privacy.spend import mu as mu_of

Selected = RepeatAndSelect | SubsetSelect
Counts = Sequence[tuple[Selected, int]]


def epsilon(mu: float, selections: Counts, delta: float, adaptive: bool = False) -> float | None:
    """Epsilon at delta of selections, each so many times, beside all else, which is mu-GDP. None where runs are not
    Gaussian.

    Best-of-K alone, fixed beforehand, by (4) of selection.py. Else by Renyi curves, with delta split over their orders
    where results choose what comes next, because they then choose the best order too.
    """
    if any(_run(event) is None or _tuning(event).mean <= 1.0 for event, _ in selections):
        return None
    repeated = [(_terms(event), count) for event, count in selections if isinstance(event, RepeatAndSelect)]
    if not adaptive and len(repeated) == len(selections):
        together = gdp.compose([mu, *(own * math.sqrt(count) for (own, _, _), count in repeated)])
        loss = math.fsum(count * e2 for (_, e2, _), count in repeated)
        weight = math.prod(w**count for (_, _, w), count in repeated)
        return selection.joint(together, loss, weight, delta)
    each = delta / len(ORDERS) if adaptive else delta

    def curve(order: int) -> float:
        return order * mu * mu / 2 + math.fsum(count * _curve(event, order) for event, count in selections)

    return min(selection.from_renyi(order, curve(order), each) for order in ORDERS)


def _tuning(event: Selected) -> RepeatAndSelect:
    return event if isinstance(event, RepeatAndSelect) else event.tuning


def _run(event: Selected) -> float | None:
    """mu of one run."""
    return mu_of(_tuning(event).event)


@cache
def _terms(event: RepeatAndSelect) -> tuple[float, float, float]:
    """What one selection adds in (4): mu of a run, its loss, and its weight."""
    mu, runs, lean = _run(event) or 0.0, Runs(event.mean, event.shape), Lean(event.low, event.high)
    return mu, selection.loss(mu, runs, lean), selection.weight(runs, lean)


def _curve(event: Selected, order: int) -> float:
    """Its Renyi curve."""
    if isinstance(event, RepeatAndSelect):
        runs, lean = Runs(event.mean, event.shape), Lean(event.low, event.high)
        return selection.renyi(order, _run(event) or 0.0, runs, lean)
    runs = Runs(event.tuning.mean, event.tuning.shape)
    final = 1 / event.final.sigma
    return max(selection.subset_renyi(order, _run(event) or 0.0, final, event.probability, runs, event.apart))
