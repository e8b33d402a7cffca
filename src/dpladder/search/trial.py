"""What the ladder knows about one trial, public constants and releases and nothing else; and which
trial of a rung is its best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Trial:
    """One finished trial.

    Attributes:
        rung, trial: its place in the ladder.
        epsilon: that r is fitted along: the rung's, or that of the sums which all trials solve.
        mu: of the training, or of those sums.
        kappa: its place on the search's axis, which is r itself with `unit: r`.
        r: sum of learning rates.
        score: noised count of correct predictions.
        sd: of the score's noise.
        counted: nominal number of records behind a score; on a source declared public, how many
            have a label.
    """

    rung: int
    trial: int
    epsilon: float
    mu: float
    kappa: float
    r: float
    score: float
    sd: float
    counted: int


def best(trials: Sequence[Trial]) -> Trial:
    """The trial with the highest noised score, among equals the first in public order: free, for
    scores are releases."""
    return min(trials, key=lambda trial: (-trial.score, trial.rung, trial.trial))
