"""How a rung's best trial is chosen: from noised scores, for free, or by one private selection."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from dpladder.errors import BadInput
from dpladder.privacy.meter import Draw, Meter
from dpladder.privacy.spend import Relation
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


def selection_draws(trials: int) -> tuple[Draw, ...]:
    """What the exponential mechanism draws: one uniform for each trial."""
    return (Draw("selection", "uniform", shape=(trials,)),)


def select_privately(
    counts: Sequence[int], epsilon: float, relation: Relation, meter: Meter, sensitivity: float = 1.0
) -> int:
    """The exponential mechanism (McSherry & Talwar 2007): index i with probability prop. to exp(scale * count_i).

    A record added raises each count by 1 or not at all, so under add_remove the counts are monotone and the
    mechanism is epsilon-DP without the factor 2 (Dwork & Roth 2014, section 3.4). Only the index may leave: neither
    the counts nor the losers. `sensitivity` is a unit's number of records.
    """
    scale = epsilon / (sensitivity if relation == "add_remove" else 2.0 * sensitivity)
    uniform = meter.uniform("selection", (len(counts),))
    with np.errstate(divide="ignore"):  # a uniform of exactly 1 makes an infinite Gumbel, which wins
        gumbel = -np.log(-np.log(uniform))
    return int(np.argmax(scale * np.asarray(counts, dtype=np.float64) + gumbel))


def selection_epsilon(mu: float) -> float:
    """The epsilon at which a pure selection costs mu: every epsilon-DP mechanism is mu-GDP with
    mu = 2 Phi^-1(e^epsilon / (1 + e^epsilon)), solved for epsilon and rounded down."""
    win = NormalDist().cdf(mu / 2.0)
    return math.log(win / NormalDist().cdf(-mu / 2.0)) * (1 - 1e-12)
