"""From how many records noised counts tell anything: what the test holds itself to, and what a plan
says before it is paid."""

from __future__ import annotations

import math
from statistics import NormalDist

# deviations of its noise that a class must count, before a share of it means anything
COUNT_SDS = 4.0
CONFIDENCES = 10  # bins of confidence, of equal width
FEWEST_UNITS = 50  # units: fewer are too few to say what was meant
STOPPED_BY_NOISE = 1e-6  # how probable at most, where the data is as it is meant


def detectable_count(sd: float, counts: int) -> float:
    """What so many counts, each with this noise, must come to together.

    Args:
        sd: deviation of the noise in one count, in records.
        counts: how many are added, each with noise of its own.

    Returns:
        A number of records: `COUNT_SDS` deviations of the sum's noise.
    """
    return COUNT_SDS * sd * math.sqrt(counts)


def noise_margin(sd: float, chances: int = 1) -> float:
    """How far a count's noise strays at most, but for once in a million.

    Args:
        sd: of the noise, which is Gaussian.
        chances: among how many counts one may stray.
    """
    return NormalDist().inv_cdf(1 - STOPPED_BY_NOISE / chances) * sd


def least_units(expected: int, sd: float) -> float:
    """The count of units below which a run stops: half of those declared, less what noise or chance
    may take.

    Args:
        expected: how many units there are by declaration.
        sd: of the noise in the count; 0 where it is exact.
    """
    return expected / 2 - max(noise_margin(sd), FEWEST_UNITS / 2)
