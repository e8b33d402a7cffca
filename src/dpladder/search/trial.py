"""What the ladder knows about one trial, public constants and releases and nothing else; and which
trial of a rung is its best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


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
        candidate: place among those of sweep.choose, where there are some.
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
    candidate: int | None = None

    @property
    def document(self) -> dict[str, Any]:
        """As files have it: a candidate only where there are some."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def best(trials: Sequence[Trial]) -> Trial:
    """The trial with the highest noised score, among equals the first in public order: free, for
    scores are releases."""
    return by_score(trials)[0]


def by_score(trials: Sequence[Trial]) -> list[Trial]:
    """The trials by their noised scores, the highest first, equals in public order."""
    return sorted(trials, key=lambda t: (-t.score, t.rung, t.trial))
