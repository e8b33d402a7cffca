"""How a rung's best trial is chosen: from noised scores, for free."""

from __future__ import annotations

from collections.abc import Sequence

from dpladder.search.trial import Trial


def best(trials: Sequence[Trial]) -> Trial:
    """The trial with the highest noised score, among equals the first in public order."""
    return max(sorted(trials, key=lambda t: (t.rung, t.trial)), key=lambda t: t.score)
