"""How many rounds Ding & Wu's tests take, and what they cost beside others. No data, seeded.

python tools/count_rounds.py [--repeats 200] [--figure rounds.svg]

Candidates' utilities are drawn evenly from u0 to u*, no model is trained, and the tests are noised
as the search's own are. The first table counts rounds until a miss of the smallest step, with
nothing that stops them earlier: the step is halved at a miss, as published, or falls back to its
least, as ours. How many rounds that were depends on the data, so what they would cost is no
guarantee; what is charged is the most there can be. The second table has the epsilon of a whole
search by the number of its candidates, where each training costs epsilon = 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from terminal import print_head, print_row, read_options

from dpladder.privacy.accounting import booking, gdp, selection
from dpladder.privacy.accounting.booking import Entry
from dpladder.privacy.accounting.events import Booked, Counted, Exponential
from dpladder.privacy.arrays import Floats
from dpladder.report.style import CYCLE, canvas, log_axis
from dpladder.searches.propose_test.cost import rounds_of
from dpladder.searches.propose_test.section import ProposeTest

DELTA, STEP, EPSILON0 = 1e-5, 0.01, 0.1
GAINS = (0.1, 0.3, 0.9)
CANDIDATES = (10, 1000)
PARTS = (None, 1000)  # None: tests without noise
MANY = (2, 5, 10, 20, 50, 100, 200, 500)
MOST = 10_000  # rounds


@dataclass(frozen=True)
class Walk:
    rounds: int
    gained: float


def main() -> None:
    asked = read_options(__doc__, repeats=200, figure=Path)
    random, counted = np.random.default_rng(0), []
    each = ("gained", "cost")
    print_head(
        *("parts", "candidates", "u* - u0"), "halved: rounds", *each, "fallen back: rounds", *each
    )
    for parts in PARTS:
        for candidates in CANDIDATES:
            for gain in GAINS:
                cells = []
                for halved in (True, False):
                    walks = [
                        walk(random, candidates, gain, parts, halved) for _ in range(asked.repeats)
                    ]
                    rounds = float(np.mean([one.rounds for one in walks]))
                    gained = np.mean([one.gained for one in walks])
                    cells += [f"{rounds:.1f}", f"{gained:.2f}", f"{cost_of(round(rounds)):.2f}"]
                    counted.append((parts, candidates, gain, halved, rounds))
                shown = "no noise" if parts is None else parts
                print_row(shown, candidates, f"{gain:g}", *cells)
    most = rounds_of(ProposeTest(step=STEP))
    print(f"\nThe most there can be: {most} rounds, {cost_of(most):.2f}")
    costs = costs_of(round(np.mean([one[-1] for one in counted if one[:4] == few()])))
    print()
    print_head("search", *map(str, MANY))
    for name, priced in costs.items():
        print_row(name, *(f"{one:.2f}" for one in priced))
    if asked.figure:
        draw(counted, costs, asked.figure)


def few() -> tuple[object, ...]:
    """The walks of whom the second table says what their rounds would cost."""
    return None, 1000, 0.9, True


def walk(
    random: np.random.Generator, candidates: int, gain: float, parts: int | None, halved: bool
) -> Walk:
    """Rounds of AboveThreshold (search/propose_test.py), until a miss of the smallest step."""
    utilities = gain * random.random(candidates)
    scale = 0.0 if parts is None else 1 / (parts * EPSILON0)
    level, chosen, ahead, rounds = 0.0, 0.0, STEP, 0
    while rounds < MOST:
        rounds += 1
        noised = utilities + random.laplace(scale=4 * scale, size=candidates)
        above = np.flatnonzero(noised > level + ahead + random.laplace(scale=2 * scale))
        if len(above):
            level, chosen, ahead = level + ahead, float(utilities[above[0]]), 2 * ahead
        elif ahead > STEP:
            ahead = max(ahead / 2, STEP) if halved else STEP
        else:
            break
    return Walk(rounds, chosen)


def cost_of(rounds: int) -> float:
    """Epsilon of so many rounds."""
    return booking.epsilon(tests_of(rounds), DELTA)


def tests_of(rounds: int) -> Entry:
    """As the search books them (search/cost.py)."""
    delta0 = booking.delta0_of(DELTA, booking.FINAL)
    return booking.price(Booked((Counted(Exponential(EPSILON0), rounds),), delta0), "add_remove")


def costs_of(rounds: int) -> dict[str, list[float]]:
    """Epsilon of a search and its final training together."""
    once = gdp.mu_from_epsilon(1.0, DELTA)
    most = rounds_of(ProposeTest(step=STEP))

    def tested(count: int) -> float:
        return booking.epsilon(booking.total([tests_of(count), Entry(once)]), DELTA)

    def best(shape: float) -> list[float]:
        many = [selection.Runs(count, shape) for count in MANY]
        return [selection.epsilon(once, runs, DELTA) for runs in many]

    return {
        "every candidate trained": [gdp.epsilon(once * count**0.5, DELTA) for count in MANY],
        "Papernot & Steinke, as many on average, geometric": best(1.0),
        "the same, logarithmic": best(0.0),
        "Ding & Wu, the most there can be": [tested(most)] * len(MANY),
        "Ding & Wu, rounds that were used (no guarantee)": [tested(rounds)] * len(MANY),
    }


def draw(
    counted: Sequence[tuple[int | None, int, float, bool, float]],
    costs: dict[str, list[float]],
    path: Path,
) -> None:
    with canvas(path, height=3.6, width=9.0) as figure:
        left, right = figure.subplots(1, 2)
        for colour, candidates in zip(CYCLE, CANDIDATES, strict=False):
            for halved, line in ((True, "-"), (False, "--")):
                own = [one for one in counted if one[:2] == (None, candidates) and one[3] == halved]
                named = f"{candidates} candidates" if halved else None
                gains: Floats = np.array([one[2] for one in own])
                left.plot(gains, [one[4] for one in own], line, color=colour, label=named)
        left.set(xlabel="utility to gain, u* - u0", ylabel="rounds (dashed: step falls back)")
        left.legend()
        for colour, (name, each) in zip(CYCLE, costs.items(), strict=False):
            right.plot(MANY, each, color=colour, label=name)
        log_axis(right, "x")
        log_axis(right, "y")
        right.set(xlabel="candidates", ylabel="ε of the whole, each training at 1")
        right.legend(fontsize=7)


if __name__ == "__main__":
    main()
