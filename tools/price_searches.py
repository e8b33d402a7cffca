"""What private searches cost in the ledger's one currency, beside Renyi bounds and their own
profiles: docs/measurements/privacy.md has the tables.

python tools/price_searches.py
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
from dp_accounting import dp_event
from dp_accounting.rdp import RdpAccountant
from terminal import print_head, print_row

from dpladder.privacy.accounting import booking, gdp, selection, subset
from dpladder.privacy.accounting.events import Gaussian, RepeatAndSelect, SubsetSelect

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from folded import by_value, worst_folded

DELTA = 1e-5
MEAN, SHARE, LIMIT = 10.0, 0.2, 100
LAWS = {"geometric": 1.0, "logarithmic": 0.0, "Poisson": math.inf}
RUN = Gaussian(gdp.sigma(gdp.mu_from_epsilon(1.0, DELTA), 1))  # each run alone costs epsilon = 1


def renyi(shape: float) -> float:
    """Papernot & Steinke's bound on the best of a secret number of runs."""
    accountant = RdpAccountant()
    base = dp_event.GaussianDpEvent(RUN.sigma)
    accountant.compose(dp_event.RepeatAndSelectDpEvent(base, MEAN, shape))
    return float(accountant.get_epsilon(DELTA))


def main() -> None:
    print_head("search", "Renyi", "booked", "own profile")
    for law, shape in LAWS.items():
        booked = booking.price(RepeatAndSelect(RUN, MEAN, shape, LIMIT), "add_remove")
        print_row(f"best of a {law} number", renyi(shape), booking.epsilon(booked, DELTA), "")
    for law, shape in LAWS.items():
        tuning = RepeatAndSelect(RUN, MEAN, shape, LIMIT)
        for where, apart in (("apart", True), ("on everything", False)):
            event = SubsetSelect(SHARE, tuning, RUN, apart, booking.delta0_of(DELTA, 1000))
            curve = subset.curve(event)
            alone = float(curve.epsilons[np.argmax(curve.deltas <= DELTA)])
            together = booking.epsilon(booking.price(event, "add_remove"), DELTA)
            print_row(f"the same on a subset, {law}, {where}", "", together, alone)
    print()  # the proved bound, what the worst known ranking costs, and ranking by the value itself
    print_head("law of the number", "run", "proved", "folded ranking", "ranked by value", "gap")
    for law, shape in LAWS.items():
        for run in (0.3, 1.0, 3.0):
            mu, runs = gdp.mu_from_epsilon(run, DELTA), selection.Runs(MEAN, shape)
            proved, dearest = selection.epsilon(mu, runs, DELTA), worst_folded(mu, runs, DELTA)[0]
            plain, gap = by_value(mu, runs, DELTA), f"{proved / dearest - 1:.1%}"
            print_row(law, f"{run:g}", proved, dearest, plain, gap)


if __name__ == "__main__":
    main()
