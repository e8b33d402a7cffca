"""The price of looking: which trials a total should buy, if any.

Trials cost the final training some of its budget. Their noised scores say the more about the best
step the stronger the signal is. That is n0 times mu: all records beside the noise that hides one.
What a sweep gains on public data of each strength is simulated beforehand
(`python tools/price_looks.py`, which writes the table here), noise of the scores included. Nothing
private is asked.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from functools import cache
from importlib import resources
from statistics import NormalDist

TABLE = "looks.csv"


@dataclass(frozen=True)
class Look:
    """A rung of trials.

    Attributes:
        trials: how many.
        part: of the total's mu^2 that each takes, its score included.
    """

    trials: int
    part: float


@dataclass(frozen=True)
class LadderToBuy:
    """What pays at a strength, by simulation on public data.

    Attributes:
        centred: whether features lost their mean.
        strength: n0 mu of the whole total.
        rungs: none where looking does not pay.
        share: of a trial's mu^2, for its score.
        blind: test accuracy without trials, on average over data sets.
        gained: what the rungs add to it.
    """

    centred: bool
    strength: float
    rungs: tuple[Look, ...]
    share: float
    blind: float
    gained: float

    @property
    def spent(self) -> float:
        """Share of mu^2."""
        return math.fsum(rung.trials * rung.part for rung in self.rungs)


def best_ladder(strength: float, centred: bool) -> LadderToBuy:
    """The line of the table that is nearest, by ratio. Less is known of features that were not
    centred (prior.py).

    Args:
        strength: n0 mu of the whole total.
        centred: whether features lost their mean.
    """
    lines = [line for line in table() if line.centred == centred]
    return min(lines, key=lambda line: abs(math.log(line.strength / strength)))


@cache
def table() -> tuple[LadderToBuy, ...]:
    """All lines of looks.csv."""
    with resources.files("dpladder.search").joinpath(TABLE).open(encoding="utf-8") as file:
        return tuple(
            LadderToBuy(
                centred=line["centred"] == "yes",
                strength=float(line["strength"]),
                rungs=rungs(line["rungs"]),
                share=float(line["share"]),
                blind=float(line["blind"]),
                gained=float(line["gained"]),
            )
            for line in csv.DictReader(file)
        )


def rungs(text: str) -> tuple[Look, ...]:
    """From `3 x 0.01 + 3 x 0.02`."""
    parts = [part.split(" x ") for part in text.split(" + ")] if text else []
    return tuple(Look(int(trials), float(part)) for trials, part in parts)


def rungs_as_text(rungs: tuple[Look, ...]) -> str:
    """Rungs in words, as `rungs` reads them."""
    return " + ".join(f"{rung.trials} x {rung.part:g}" for rung in rungs)


def ceiling(mu: float, n0: int, classes: int, labels: int = 1) -> float:
    """The largest accuracy that a training of this mu can reach, on average, on unseen records of
    balanced classes.

    Take the name of a class that no other record tells. Without its n0 / classes units a prediction
    for one of them is right with probability 1 / classes, on average over names. With them it is
    the output of a training on a data set that many neighbours away. Each of them adds mu to Phi^-1
    of a probability at most (Dong, Roth & Su 2019, on groups). So the prediction is right with
    probability at most Phi(Phi^-1(1 / classes) + mu n0 / classes). The same holds for records of
    the training part: they are among those. Where a record may be of several classes, each of them
    has as many times more units, and a prediction may be any of them.

    Args:
        mu: of the training.
        n0: nominal number of units.
        classes: how many there are.
        labels: classes of a record, at most.
    """
    normal = NormalDist()
    each = normal.cdf(normal.inv_cdf(1.0 / classes) + mu * labels * n0 / classes)
    return min(labels * each, 1.0)
