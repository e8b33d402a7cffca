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

from pathlib import Path

import numpy as np
from terminal import plot_lines, print_head, print_row, read_options

from dpladder.privacy.accounting import booking, gdp, selection
from dpladder.privacy.accounting.booking import Entry
from dpladder.privacy.accounting.events import Booked, Counted, Exponential
from dpladder.report.style import canvas
from dpladder_papers.searches.propose_test import ProposeTest
from dpladder_papers.searches.propose_test.search import rounds_of

DELTA, STEP, EPSILON0 = 1e-5, 0.01, 0.1
GAINS = (0.1, 0.3, 0.9)
CANDIDATES = (10, 1000)
PARTS = (None, 1000)  # None: tests without noise
NUMBERS_OF_ROUNDS = (2, 5, 10, 20, 50, 100, 200, 500)
MOST_ROUNDS = 10_000  # rounds
SHOWN = (None, 1000, 0.9, True)  # whose rounds the second table prices


def main() -> None:
    options = read_options(__doc__, repeats=200, figure=Path)
    random, rounds = np.random.default_rng(0), {}
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
                        walk(random, candidates, gain, parts, halved)
                        for _ in range(options.repeats)
                    ]
                    count, gained = np.mean(walks, axis=0)
                    cells += [f"{count:.1f}", f"{gained:.2f}", f"{cost_of(round(count)):.2f}"]
                    rounds[parts, candidates, gain, halved] = float(count)
                print_row("no noise" if parts is None else parts, candidates, f"{gain:g}", *cells)
    most = rounds_of(ProposeTest(step=STEP))
    print(f"\nThe most there can be: {most} rounds, {cost_of(most):.2f}\n")
    costs = costs_of(round(rounds[SHOWN]))
    print_head("search", *map(str, NUMBERS_OF_ROUNDS))
    for name, priced in costs.items():
        print_row(name, *(f"{one:.2f}" for one in priced))
    if options.figure:
        counted = {
            f"{candidates} candidates{words}": (
                GAINS,
                [rounds[None, candidates, gain, halved] for gain in GAINS],
                style,
            )
            for candidates in CANDIDATES
            for halved, words, style in ((True, "", "-"), (False, ", step falls back", "--"))
        }
        priced_lines = {
            name: (NUMBERS_OF_ROUNDS, cost, "--" if "no guarantee" in name else "-")
            for name, cost in costs.items()
        }
        with canvas(options.figure, height=3.6, width=9.0) as figure:
            left, right = figure.subplots(1, 2)
            plot_lines(left, counted, "utility to gain, u* - u0", "rounds", "")
            words = "ε of the whole, each training at 1"
            plot_lines(right, priced_lines, "candidates", words, "xy")


def walk(
    random: np.random.Generator, candidates: int, gain: float, parts: int | None, halved: bool
) -> tuple[int, float]:
    """Rounds of AboveThreshold (search/propose_test.py), until a miss of the smallest step, and the
    utility of what they choose."""
    utilities = gain * random.random(candidates)
    scale = 0.0 if parts is None else 1 / (parts * EPSILON0)
    level, chosen, ahead, rounds = 0.0, 0.0, STEP, 0
    while rounds < MOST_ROUNDS:
        rounds += 1
        noised = utilities + random.laplace(scale=4 * scale, size=candidates)
        above = np.flatnonzero(noised > level + ahead + random.laplace(scale=2 * scale))
        if len(above):
            level, chosen, ahead = level + ahead, float(utilities[above[0]]), 2 * ahead
        elif ahead > STEP:
            ahead = max(ahead / 2, STEP) if halved else STEP
        else:
            break
    return rounds, chosen


def cost_of(rounds: int) -> float:
    """Epsilon of so many rounds."""
    return booking.epsilon(tests_of(rounds), DELTA)


def tests_of(rounds: int) -> Entry:
    """As the search books them (search/cost.py)."""
    delta0 = booking.delta0_of(DELTA, booking.FINAL)
    return booking.price(Booked((Counted(Exponential(EPSILON0), rounds),), delta0), "add_remove")


def costs_of(rounds: int) -> dict[str, list[float]]:
    """Epsilon of a search and its final training together, by its number of candidates."""
    once = gdp.mu_from_epsilon(1.0, DELTA)

    def tested(count: int) -> list[float]:
        entry = booking.total([tests_of(count), Entry(once)])
        return [booking.epsilon(entry, DELTA)] * len(NUMBERS_OF_ROUNDS)

    def best(shape: float) -> list[float]:
        return [
            selection.epsilon(once, selection.Runs(count, shape), DELTA)
            for count in NUMBERS_OF_ROUNDS
        ]

    return {
        "every candidate trained": [
            gdp.epsilon(once * count**0.5, DELTA) for count in NUMBERS_OF_ROUNDS
        ],
        "Papernot & Steinke, as many on average, geometric": best(1.0),
        "the same, logarithmic": best(0.0),
        "Ding & Wu, the most there can be": tested(rounds_of(ProposeTest(step=STEP))),
        "Ding & Wu, rounds that were used (no guarantee)": tested(rounds),
    }


if __name__ == "__main__":
    main()
