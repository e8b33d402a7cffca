"""The two laws of docs/laws.md, measured on public data: their figures, and the tables beside them.

python tools/laws.py [--cache FOLDER] [--repeats 6] [--folder docs]

Research, seeded; 5 CPU minutes without the extraction of features. The law of kappa: test accuracy
of one training over its total step size r, and over kappa. The law of lambda: the same over a
factor c on lambda, where c = 1 is the law and c = 0 leaves the public records to the start alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np
from arena import first, load, load_raw
from matplotlib.axes import Axes
from public_sample import GUIDED, beside, means, trained
from surfaces import MOST_RECORDS, measured
from terminal import print_head, print_row, read_options

from dpladder.config.sweep_sections import Search
from dpladder.learn import guide
from dpladder.methods.dp_gd import Descent
from dpladder.report.style import CYCLE, GREY, canvas, log_axis
from dpladder.research.arena import Arena
from dpladder.search.prior import prior_of_learner
from dpladder.search.space import Space

SETS = ("digits", "mixture", "mnist5k-112", "bible")
KAPPAS = tuple(float(kappa) for kappa in np.geomspace(0.05, 30, 13))
WEAKEST = 100.0  # n0 mu below which hardly anything is learned, and every step size is as good
SAMPLES, EPSILONS = (50, 200, 1000), (0.1, 0.5, 2.0)
FACTORS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0)


@dataclass(frozen=True)
class Curve:
    """Accuracy over r or over c, of one data set at one strength."""

    data: str
    strength: str
    at: Sequence[float]
    test: Sequence[float]

    @property
    def best(self) -> float:
        return self.at[int(np.argmax(self.test))]

    def missed(self, at: float) -> float:
        """What this place loses to the best one, between places by a line."""
        return max(self.test) - float(np.interp(np.log(at), np.log(self.at), self.test))


def main() -> None:
    options = read_options(__doc__, cache=Path, repeats=6, folder=Path("docs"))
    kappas(options.cache, options.repeats, options.folder)
    lambdas(options.cache, options.repeats, options.folder)


def kappas(cache: Path | None, repeats: int, folder: Path) -> None:
    over_kappa, over_r = [], []
    for name in SETS:
        arena = first(load(name, cache, "public"), slice(MOST_RECORDS))
        space = Space(Search(), Descent(), arena.constants)
        cells = measured(name, "public", arena, Descent(), KAPPAS, repeats)
        for mu in sorted({cell.mu for cell in cells if cell.n0 * cell.mu >= WEAKEST}):
            at_mu = [cell for cell in cells if cell.mu == mu]
            strength, test = f"{at_mu[0].n0 * mu:.0f}", [cell.test for cell in at_mu]
            over_kappa.append(Curve(name, strength, [cell.kappa for cell in at_mu], test))
            over_r.append(Curve(name, strength, [space.r(cell.kappa, mu) for cell in at_mu], test))
    law = prior_of_learner("dp_gd", kind=True).median
    print_head("data", "n₀μ", "best r", "best κ", "lost at κ = 1.6")
    for name in SETS:
        ours = [one for one in zip(over_r, over_kappa, strict=True) if one[0].data == name]
        lost = [kappa.missed(law) for _, kappa in ours]
        print_row(
            name,
            f"{ours[0][0].strength} to {ours[-1][0].strength}",
            span((r.best for r, _ in ours)),
            span((kappa.best for _, kappa in ours)),
            f"{np.mean(lost):.3f} on average, {max(lost):.3f} at most",
        )
    every = np.geomspace(0.1, 1000, 81)
    fixed = min(every, key=lambda r: np.mean([one.missed(r) for one in over_r]))
    for words, at, curves in (("κ", law, over_kappa), ("r", fixed, over_r)):
        lost = [one.missed(at) for one in curves]
        print(
            f"\n{words} = {at:.2g} for all {len(lost)} curves loses {np.mean(lost):.3f} on "
            f"average, {max(lost):.3f} at most"
        )
    with canvas(folder / "law-of-kappa.svg", height=3.6) as figure:
        left, right = figure.subplots(1, 2, sharey=True)
        for axes, curves, words in (
            (left, over_r, "total step size r"),
            (right, over_kappa, "κ, the noise put into a logit"),
        ):
            draw(axes, curves)
            log_axis(axes, "x")
            axes.set_xlabel(words)
        right.axvline(law, color=GREY, lw=1, ls=":")
        left.set_ylabel("accuracy, less the curve's best")
        left.legend(fontsize=8, loc="lower left")


def lambdas(cache: Path | None, repeats: int, folder: Path) -> None:
    curves = []
    for name in SETS:
        whole = load_raw(name, cache)
        for count in SAMPLES:
            arena = beside(whole, count)
            rows = zip(*(scaled(arena, factor, repeats) for factor in FACTORS), strict=True)
            curves += [
                Curve(name, f"{count}, {epsilon:g}", FACTORS, row)
                for epsilon, row in zip(EPSILONS, rows, strict=True)
            ]
    print()
    print_head("c", *(f"{c:g}" for c in FACTORS))
    behind = np.array([[max(one.test) - test for test in one.test] for one in curves])
    for words, row in (("mean", behind.mean(0)), ("worst", behind.max(0))):
        print_row(f"behind the best c, {words}", *row)
    with canvas(folder / "law-of-lambda.svg", height=3.6, width=5.6) as figure:
        axes = figure.subplots()
        draw(axes, [Curve(c.data, c.strength, range(len(FACTORS)), c.test) for c in curves])
        axes.plot(-behind.mean(0), color="black", lw=2.5, label="mean")
        axes.set_xticks(range(len(FACTORS)), [f"{c:g}" for c in FACTORS])
        axes.set(xlabel="c, a factor on λ", ylabel="accuracy, less the curve's best")
        axes.legend(fontsize=8, loc="lower right")


def scaled(arena: Arena, factor: float, repeats: int) -> list[float]:
    """Accuracy by total, with lambda times a factor."""
    plain = guide.weight

    def weight(*arguments: object) -> float:
        return factor * plain(*arguments)  # type: ignore[arg-type]

    with mock.patch.object(guide, "weight", weight):
        return means(arena, trained(arena, GUIDED, EPSILONS, repeats), repeats)


def draw(axes: Axes, curves: Sequence[Curve]) -> None:
    colours = dict(zip(SETS, CYCLE, strict=False))
    for place, curve in enumerate(curves):
        first = all(other.data != curve.data for other in curves[:place])
        less = np.array(curve.test) - max(curve.test)
        axes.plot(
            curve.at, less, color=colours[curve.data], lw=0.9, label=curve.data if first else None
        )


def span(values: Iterable[float]) -> str:
    low, *_, high = sorted(values)
    return f"{low:.2g} to {high:.2g}"


if __name__ == "__main__":
    main()
