"""From how many records noised counts tell anything: what the test holds itself to, and what a plan
says before it is paid."""

from __future__ import annotations

import math

BINS = 16  # of scores, for AUC
ENOUGH = 4.0  # deviations of its noise that a class must count, before a share of it means anything
CONFIDENCES = 10  # bins of confidence, of equal width
MORE = 0.5  # of mu squared, for what is counted beside right and wrong


def detectable_count(sd: float, counts: int) -> float:
    """What so many counts, each with this noise, must come to together.

    Args:
        sd: deviation of the noise in one count, in records.
        counts: how many are added, each with noise of its own.

    Returns:
        A number of records: `ENOUGH` deviations of the sum's noise.
    """
    return ENOUGH * sd * math.sqrt(counts)
