"""What propose_test spends of a total."""

from __future__ import annotations

import math

from dpladder.errors import Refused
from dpladder.privacy.accounting import booking, gdp, selection
from dpladder.privacy.accounting.booking import Entry
from dpladder.privacy.accounting.events import Booked, Counted, Exponential, Gaussian, Relation
from dpladder_papers.searches.propose_test.section import ProposeTest


def price(
    search: ProposeTest, epsilon: float, delta: float, relation: Relation
) -> tuple[Counted, ...]:
    """A share of mu^2 for the final training, the rest for as many rounds of tests as there can be.

    Args:
        search: its section in the config.
        epsilon: the total, final weights included.
        delta: the lineage's.
        relation: what neighbours are.

    Returns:
        The final training's event, and that of all rounds. These are pure DP, and booked as the
        Gaussian that dominates them.
    """
    rounds, delta0 = rounds_of(search), booking.delta0_of(delta, booking.FINAL)
    whole = booking.largest_mu(epsilon, delta, Entry(delta0=delta0))
    final = math.sqrt(search.final) * whole
    tests = gdp.remaining(whole, [final])

    def booked(epsilon0: float) -> Booked:
        return Booked((Counted(Exponential(epsilon0), rounds),), delta0)

    def cost(epsilon0: float) -> float:
        try:
            return booking.price(booked(epsilon0), relation).mu
        except Refused:  # no Gaussian dominates that many rounds: a smaller epsilon is looked for
            return math.inf

    epsilon0 = selection.largest(cost, tests, 2 * gdp.pure_of_mu(tests), 1e-7)
    return Counted(Gaussian(gdp.sigma(final, 1))), Counted(booked(epsilon0))


def rounds_of(search: ProposeTest) -> int:
    """The most there can be: every hit gains a step, and between two hits one miss at most (Ding &
    Wu, section 4). Counted from a level of 0, whatever the classes."""
    return 2 * math.ceil(1 / search.step) - 1
