"""What the ladder knows about one trial, public constants and releases and nothing else; which
trial of a rung is its best; and what a fit of them says."""

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


@dataclass(frozen=True, kw_only=True)
class FitResult:
    """The r of a final training, and how it was found. All of it is public.

    Attributes:
        r_star: the r that the final training takes.
        kappa_star: the same as kappa.
        method: how it was found, in words.
        fallback: why a simpler curve was taken, in words; null where none was.
        clamped: whether r* met the limit of the search.
        coefficients: of r, or of kappa, against the axis, the constant first.
        uncertainty: an 80 % interval of r* from all scores.
        spread: how far scores within rungs lie apart, over what their noise alone would do. Near 1
            they say nothing.
    """

    r_star: float
    kappa_star: float | None = None
    method: str
    fallback: str | None
    clamped: bool
    coefficients: tuple[float, ...]
    uncertainty: tuple[float, float]
    spread: float | None = None


def best(trials: Sequence[Trial]) -> Trial:
    """The trial with the highest noised score, among equals the first in public order: free, for
    scores are releases."""
    return min(trials, key=lambda trial: (-trial.score, trial.rung, trial.trial))
