"""What sweeps of many designs gain at each strength, simulated on public data: the table behind
`sweep: auto`.

python tools/price_looks.py surfaces.csv

A ladder's trials and its final training are looked up in measured surfaces (tools/surfaces.py),
with the noise of their scores and the trainings' own; the fit is the package's. A design is bought
where it beats no trials on average over the data sets by more than its own uncertainty. Writes
search/looks.csv.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from fit_prior import Surface, surfaces
from terminal import read_options

from dpladder.config.sweep_sections import Fit, Search
from dpladder.learn.interface import Constants
from dpladder.methods.dp_gd import Descent
from dpladder.search import sweep_value
from dpladder.search.fit import Target, _weighted_middle, response_surface
from dpladder.search.prior import Belief, prior_of_learner
from dpladder.search.space import SPREAD, Space, _prior_share
from dpladder.search.sweep_value import Look
from dpladder.search.trial import Trial

STRENGTHS = tuple(30 * 2.0**step for step in range(9))
PARTS, TRIALS, SHARES = (0.005, 0.01, 0.02, 0.04), (2, 3, 4, 6), (0.2, 0.4)
REPEATS = 40
STANDARD_ERRORS = 1.0  # standard errors


@dataclass(frozen=True)
class Design:
    rungs: tuple[Look, ...]
    share: float

    @property
    def spent(self) -> float:
        return math.fsum(rung.trials * rung.part for rung in self.rungs)


def main() -> None:
    options = read_options(__doc__, surfaces=list[Path])
    designs = [Design((Look(n, part),), share) for part, n, share in product(PARTS, TRIALS, SHARES)]
    designs += [
        Design((Look(n, part), Look(n, 2 * part)), share)
        for part, n, share in product(PARTS[:-1], (2, 3), SHARES)
    ]
    lines = []
    for centred in (True, False):
        prior = prior_of_learner("dp_gd", centred)
        search = Search(expected=(prior.median, prior.factor))
        space = Space(search, Descent(), Constants(n0=1000, classes=2, dimension=1, length=32.0))
        known = [
            Public(surface, space, prior)
            for surface in surfaces(options.surfaces)
            if surface.name.endswith(" none") != centred
        ]
        words = "yes" if centred else "no"
        lines += [(words, *priced(strength, designs, known)) for strength in STRENGTHS]
    with Path(sweep_value.__file__).with_name(sweep_value.TABLE).open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["centred", "strength", "rungs", "share", "blind", "gained"])
        table.writerows(lines)


def priced(
    strength: float, designs: Sequence[Design], known: Sequence[Public]
) -> tuple[int, str, float, float, float]:
    """A line of the table: the best design, if it pays."""
    blind = np.array([public.accuracy(strength, public.prior.median) for public in known])
    gains = {
        design: np.array([simulated(design, strength, public) for public in known]) - blind
        for design in designs
    }
    best = max(gains, key=lambda design: gains[design].mean())
    gain, error = gains[best].mean(), gains[best].std(ddof=1) / math.sqrt(len(known))
    pays = gain > STANDARD_ERRORS * error
    print(
        f"{strength:8.0f} blind {blind.mean():.4f} best {sweep_value.rungs_as_text(best.rungs)} "
        f"share {best.share} gains {gain:+.4f} +- {error:.4f}, worst {gains[best].min():+.4f} "
        f"{'bought' if pays else ''}",
        flush=True,
    )
    rungs, share = (best.rungs, best.share) if pays else ((), 0.05)
    after = blind.mean() + (gain if pays else 0.0)
    words = sweep_value.rungs_as_text(rungs)
    return round(strength), words, share, round(blind.mean(), 4), round(after, 4)


@dataclass(frozen=True)
class Public:
    """A data set's surface between its cells, linear in the logarithms."""

    surface: Surface
    space: Space
    prior: Belief

    def accuracy(self, strength: float, kappa: float) -> float:
        return self._at(self.surface.test, strength, kappa)

    def score(self, strength: float, kappa: float, random: np.random.Generator) -> float:
        """The share of right predictions on the training records."""
        spread = self._at(self.surface.spread, strength, kappa)
        return self._at(self.surface.train, strength, kappa) + spread * random.normal()

    def _at(self, values: np.ndarray, strength: float, kappa: float) -> float:
        known = np.log(self.surface.strengths)
        place = float(np.interp(math.log(strength), known, np.arange(len(known))))
        low = min(int(place), len(known) - 2)
        ends = [
            np.interp(math.log(kappa), np.log(self.surface.kappas[row]), values[row])
            for row in (low, low + 1)
        ]
        return float(ends[0] + (place - low) * (ends[1] - ends[0]))


def simulated(design: Design, strength: float, public: Public) -> float:
    """Mean test accuracy of the design's final models, at a total of mu = strength / n0 on n0
    records."""
    random = np.random.default_rng(0)
    final = strength * math.sqrt(1 - design.spent)
    tests = []
    for _ in range(REPEATS):
        trials = [
            trial(design, strength, public, rung, number, random)
            for rung, look in enumerate(design.rungs)
            for number in range(look.trials)
        ]
        kappa = _weighted_middle(response_surface(trials, Target(1.0, 1.0, public.space), Fit()))
        tests.append(public.accuracy(final, kappa))
    return float(np.mean(tests))


def trial(
    design: Design,
    strength: float,
    public: Public,
    rung: int,
    number: int,
    random: np.random.Generator,
) -> Trial:
    reached = strength * math.sqrt(design.rungs[rung].part)
    kappa = public.prior.at(_prior_share(public.space.search, rung, number), SPREAD)
    sd = 1.0 / (reached * math.sqrt(design.share))  # of the score's noise, in shares of n0
    score = (
        public.score(reached * math.sqrt(1 - design.share), kappa, random) + sd * random.normal()
    )
    return Trial(rung, number, 1.0, 1.0, kappa, kappa, score, sd, 1)


if __name__ == "__main__":
    main()
