"""The log-normal prior in kappa, fitted to how good trainings are on public data.

python tools/surfaces.py --out surfaces.csv ; python tools/fit_prior.py surfaces.csv

Centred features and others have a prior each. On each data set the best kappa is the middle of a
hump fitted to all strengths together (search/fit.py says why a hump). The median is the kappa that
loses least to those, on average over data sets and strengths; the factor's logarithm is the root
mean square of their distances from it. Prints both, as `prior` of the learner's METHOD has them.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from terminal import read_options

from dpladder.privacy.arrays import Floats
from dpladder.search.fit import HUMP_WIDTH

PLACES = np.linspace(math.log(0.005), math.log(15), 241)
NARROWEST = 1.7  # a few data sets do not tell a narrower prior than dp_gd's five do
WEAKEST = 100.0  # below this strength a surface is mostly noise


@dataclass(frozen=True)
class Surface:
    """Means over repeats at (strength, kappa): test accuracy, accuracy on the training records, and
    its spread."""

    name: str
    n0: int
    strengths: Floats
    kappas: Floats  # by strength
    test: Floats
    train: Floats
    spread: Floats


@dataclass(frozen=True)
class Hump:
    place: float  # log kappa
    height: float  # mean over strengths
    missed: float


def main() -> None:
    options = read_options(__doc__, surfaces=list[Path])
    humps = {surface.name: hump(surface) for surface in surfaces(options.surfaces)}
    for name, one in humps.items():
        print(f"{name:24} {math.exp(one.place):.2f}, {one.height:.3f} high")
    for centred in (True, False):
        of_kind = [one for name, one in humps.items() if name.endswith(" none") != centred]
        median, factor = fitted(of_kind)
        print(f"{centred}: ({median:.2f}, {factor:.2f})")


def fitted(humps: Sequence[Hump]) -> tuple[float, float]:
    places = np.array([one.place for one in humps])
    heights = np.array([one.height for one in humps])
    lost = (heights * (1 - shape(PLACES[:, None] - places))).mean(axis=1)
    middle = PLACES[lost.argmin()]
    median, spread = math.exp(middle), math.exp(math.sqrt(np.mean((places - middle) ** 2)))
    factor = max(spread, NARROWEST)
    print(f"loses {lost.min():.4f} on average")
    return median, factor


def surfaces(paths: Iterable[Path]) -> list[Surface]:
    lines: dict[str, list[dict[str, str]]] = {}
    for path in paths:
        with path.open(encoding="utf-8") as file:
            for line in csv.DictReader(file):
                lines.setdefault(f"{line['data']} {line['centre']}", []).append(line)
    return [_surface(name, of_data) for name, of_data in lines.items()]


def _surface(name: str, lines: list[dict[str, str]]) -> Surface:
    mus = sorted({float(line["mu"]) for line in lines})
    rows = [[line for line in lines if float(line["mu"]) == mu] for mu in mus]

    def column(key: str) -> Floats:
        return np.array([[float(line[key]) for line in row] for row in rows])

    n0 = int(lines[0]["n0"])
    strengths = n0 * np.array(mus)
    return Surface(
        name, n0, strengths, column("kappa"), column("test"), column("train"), column("train_sd")
    )


def shape(away: Floats) -> Floats:
    height: Floats = np.exp(-(away**2) / (2 * HUMP_WIDTH**2))
    return height


def hump(surface: Surface) -> Hump:
    """Humps of one place, and of a level and a height at each strength, by least squares."""
    tried = [_hump(surface, place) for place in PLACES]
    return min(tried, key=lambda hump: hump.missed)


def _hump(surface: Surface, place: float) -> Hump:
    missed, heights = 0.0, []
    for strength, kappas, test in zip(surface.strengths, surface.kappas, surface.test, strict=True):
        if strength >= WEAKEST:
            shapes = shape(np.log(kappas) - place)
            slope, level = np.polyfit(shapes, test, 1)
            if slope < 0:  # no hump but a dent
                slope, level = 0.0, test.mean()
            missed += float(((slope * shapes + level - test) ** 2).sum())
            heights.append(slope)
    return Hump(place, float(np.mean(heights)), missed)


if __name__ == "__main__":
    main()
