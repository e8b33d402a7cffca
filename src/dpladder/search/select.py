"""How a rung's best trial is chosen: from noised scores, for free."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpladder.errors import BadInput
from dpladder.search.trial import Trial


def best(trials: Sequence[Trial]) -> Trial:
    """The trial with the highest noised score, among equals the first in public order. A score that is not finite
    never wins."""
    scored = [trial for trial in trials if trial.score is not None and math.isfinite(trial.score)]
    if not scored:
        raise BadInput(
            f"none of the rung's {len(trials)} trials has a finite score. Check the scores of run_trial."
        )
    return max(sorted(scored, key=lambda t: (t.rung, t.trial)), key=lambda t: t.score or 0.0)
