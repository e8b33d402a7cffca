"""Which ladder to climb with a given total: rungs, trials and score share that did best on public data of like strength.

The closed form says what a ladder costs and what it leaves for the final training, sqrt(B^2 - sum mu^2). What it finds is
measured: a table of simulated ladders on public data ships with the package. How well a ladder does hangs on the total's
strength, n0 times mu: the signal of all records' clipped gradients beside the noise on their sum.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from dpladder.privacy import gdp

TABLE = "ladders.csv"
Design = tuple[float, float, int, float]


@dataclass(frozen=True)
class Measured:
    """A line of the table: a design at a strength, and how far below the best r its models were in test accuracy."""

    data: str
    strength: float
    cheap: float  # the two rungs' epsilon per trial, as shares of the total
    dear: float
    trials: int  # per rung
    share: float  # of a trial's mu^2, for its score
    mean: float
    p10: float  # the unlucky tenth lost at least this much

    @property
    def design(self) -> Design:
        return self.cheap, self.dear, self.trials, self.share


@dataclass(frozen=True)
class Suggestion:
    """A ladder for a total, its cost in closed form, and how it did on public data."""

    epsilon: float
    delta: float
    rungs: tuple[tuple[float, int], ...]  # epsilon per trial, and trials
    share: float
    final_mu: float
    final_epsilon: float
    search: float  # share of mu^2 that the sweep takes
    strength: float
    seen: tuple[Measured, ...]


def suggest(epsilon: float, delta: float, n0: float) -> Suggestion:
    """The design that lost least, on average over the public data sets, each at its strength nearest to this one."""
    total = gdp.mu(epsilon, delta)
    strength = n0 * total
    near = {data: _nearest(rows, strength) for data, rows in _table().items()}
    cheap, dear, trials, share = best = min(
        set.intersection(*(set(rows) for rows in near.values())),
        key=lambda design: (sum(rows[design].mean for rows in near.values()), design),
    )
    rungs = tuple((float(f"{rung * epsilon:.3g}"), trials) for rung in (cheap, dear))
    mus = [gdp.mu(rung, delta) for rung, trials in rungs for _ in range(trials)]
    left = gdp.remaining(total, mus)
    return Suggestion(
        epsilon=epsilon,
        delta=delta,
        rungs=rungs,
        share=share,
        final_mu=left,
        final_epsilon=gdp.epsilon(left, delta),
        search=1 - (left / total) ** 2,
        strength=strength,
        seen=tuple(rows[best] for rows in near.values()),
    )


def text(suggestion: Suggestion) -> str:
    """As a person reads it, the sweep ready to be pasted into a config."""
    rungs = ", ".join(f"{{epsilon: {epsilon:g}, trials: {trials}}}" for epsilon, trials in suggestion.rungs)
    lines = [
        f"For a total of epsilon {suggestion.epsilon:g} at delta {suggestion.delta:g}:",
        "",
        "sweep:",
        f"  rungs: [{rungs}]",
        f"  select: {{share: {suggestion.share:g}}}",
        "",
        f"The sweep takes {suggestion.search:.0%} of mu^2. The final training keeps mu = {suggestion.final_mu:.4g}, "
        f"alone epsilon {suggestion.final_epsilon:.3g}.",
        f"Strength n0 * mu = {suggestion.strength:.3g}. On public data, models this far below the best r tuned for free:",
    ]
    lines += [
        f"  {seen.data} at strength {seen.strength:.3g}: {seen.mean:.1%} of accuracy on average, "
        f"{seen.p10:.1%} or more for the unlucky tenth"
        for seen in suggestion.seen
    ]
    return "\n".join(lines)


def _nearest(rows: tuple[Measured, ...], strength: float) -> Mapping[Design, Measured]:
    at = min({row.strength for row in rows}, key=lambda known: abs(math.log(known / strength)))
    return {row.design: row for row in rows if row.strength == at}


@cache
def _table() -> Mapping[str, tuple[Measured, ...]]:
    """The simulated ladders of each public data set."""
    with resources.files("dpladder.search").joinpath(TABLE).open(encoding="utf-8") as file:
        rows = [
            Measured(
                data=line["data"],
                strength=float(line["strength"]),
                cheap=float(line["cheap"]),
                dear=float(line["dear"]),
                trials=int(line["trials"]),
                share=float(line["share"]),
                mean=float(line["mean"]),
                p10=float(line["p10"]),
            )
            for line in csv.DictReader(file)
        ]
    return {data: tuple(row for row in rows if row.data == data) for data in sorted({r.data for r in rows})}
