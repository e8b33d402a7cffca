"""What the ladder knows about one trial: public constants and releases, nothing else."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Trial:
    """One finished trial. Without a score, only that it won its rung's private selection is known."""

    rung: int
    trial: int
    epsilon: float  # of the rung
    mu: float  # of the training
    r: float
    score: float | None = None  # noised count of correct predictions
    sd: float = 0.0  # of the score's noise
    counted: int = 1  # nominal number of records behind a score
