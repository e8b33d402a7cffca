"""A lower bound on mu, and so on epsilon, from a single run in which many canaries were put by fair
coins.

It is after Steinke, Nasr & Jagielski 2023 (Privacy auditing with one (1) training run). For mu-GDP,
which says more than one (epsilon, delta), it is after Mahloujifar, Melis & Chaudhuri 2025 (Auditing
f-differential privacy in one run, ICML). The argument is whole here.

Each of m canaries is in the data or not. Who sees the release guesses r of the m coins, and p_i is
the probability that i guesses are right. Let T = {c, ..., r}. Turn one coin j over, which adds or
removes a record. The outputs that make guess j right, with a count in T, then make it wrong, with a
count in T - 1. The mechanism is f-DP, and f-bar = 1 - f is concave. So on average over coins and
canaries (Jensen),

    a_c <= f-bar(b_(c-1)),                                                                       (1)
    a_c = sum over i >= c of (i/m) p_i,   b_c = sum over i >= c of ((r-i)/m) p_i.

Say that c or more guesses are right with probability tau. Then a_c >= tau c/m, with equality where
all of that mass lies at c. From there down, (1) asks for b_(c-1) at least. That is mass at c - 1,
which raises a_(c-1), and so on. Each step asks for the least where the one above asked for the
least. In the end more mass may be asked for than 1. Then no such mechanism has a count of c or more
with probability tau. Seeing one refutes mu with confidence 1 - tau.
"""

from __future__ import annotations

import math
from statistics import NormalDist

from dpladder.errors import BadInput

_NORMAL = NormalDist()
CLOSE = 1e-4  # of mu


def mu_bound(correct: int, guesses: int, canaries: int, chance: float) -> float:
    """The largest mu that so many correct guesses refute.

    Args:
        correct: how many guesses are right.
        guesses: how many were ventured.
        canaries: how many coins there are.
        chance: with which the bound may be wrong at most, whatever the mechanism is.

    Returns:
        A lower bound on mu, rounded down by up to CLOSE of it; 0 where no mu is refuted.
    """
    if not 0 <= correct <= guesses <= canaries or not 0 < chance < 1:
        raise BadInput(
            f"{correct} of {guesses} guesses about {canaries} canaries are right: that cannot be."
        )
    if not refutes(0.0, correct, guesses, canaries, chance):
        return 0.0
    low, high = 0.0, 1.0
    while refutes(high, correct, guesses, canaries, chance):
        low, high = high, 2 * high
    while high - low > CLOSE * high:
        middle = (low + high) / 2
        low, high = (
            (middle, high) if refutes(middle, correct, guesses, canaries, chance) else (low, middle)
        )
    return low


def refutes(mu: float, correct: int, guesses: int, canaries: int, chance: float) -> bool:
    """Whether no mu-GDP release gets so many guesses right, or more, with probability `chance`.

    It is the argument above, from the count that was seen down to 0.

    Args:
        mu: that is tried.
        correct, guesses, canaries, chance: as in `mu_bound`.
    """
    if correct == 0:
        return False
    a, b = chance * correct / canaries, chance * (guesses - correct) / canaries
    for count in range(correct - 1, -1, -1):
        fraction = max(b, _smallest_fraction(a, mu))
        a += count / (guesses - count) * (fraction - b)
        b = fraction
        if (a + b) * canaries > guesses:
            return True
    return False


def _smallest_fraction(right: float, mu: float) -> float:
    """The x at which f-bar(x) = Phi(Phi^-1(x) + mu) is `right` (Dong, Roth & Su 2019, Definition
    2.6)."""
    if right >= 1.0:
        return math.inf
    return _NORMAL.cdf(_NORMAL.inv_cdf(right) - mu) if right > 0 else 0.0
