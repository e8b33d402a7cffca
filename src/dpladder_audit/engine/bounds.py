"""What a test that tells two neighbours apart says of a mechanism's guarantee, at a stated
confidence."""

from __future__ import annotations

import math


def mu_bound(right: float, wrong: float) -> float:
    """The least mu whose mechanisms allow a test with at least `right` true and at most `wrong`
    false positives.

    A mu-GDP mechanism has Phi^-1(right) - Phi^-1(wrong) <= mu for every test (Dong, Roth & Su 2019,
    Definition 2.6). Nasr et al. 2023 (Tight auditing of differentially private machine learning)
    audit with it.

    Args:
        right: a lower bound on the probability of a true positive.
        wrong: an upper bound on the probability of a false one.
    """
    from scipy.special import ndtri

    return max(0.0, float(ndtri(right) - ndtri(wrong)))


def epsilon_bound(right: float, wrong: float, delta: float) -> float:
    """The least epsilon that allows that test, or its complement with the neighbours swapped.

    From right <= e^epsilon wrong + delta and 1 - wrong <= e^epsilon (1 - right) + delta (Kairouz,
    Oh & Viswanath 2015, Theorem 2.1).

    Args:
        right: a lower bound on the probability of a true positive.
        wrong: an upper bound on the probability of a false one.
        delta: that the bound holds at.
    """
    odds = [(right - delta) / wrong, (1 - wrong - delta) / (1 - right)]
    return math.log(max(1.0, *odds))


def hit_rate_lower_bound(hits: int, runs: int, chance: float) -> float:
    """The probability below which `hits` or more of `runs` would have chance at most `chance`
    (Clopper & Pearson 1934)."""
    from scipy import stats

    return float(stats.beta.ppf(chance, hits, runs - hits + 1)) if hits else 0.0


def hit_rate_upper_bound(hits: int, runs: int, chance: float) -> float:
    """The probability above which `hits` or fewer of `runs` would have chance at most `chance`."""
    return 1.0 - hit_rate_lower_bound(runs - hits, runs, chance)
