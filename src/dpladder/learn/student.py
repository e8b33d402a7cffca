"""A student of a released head: ridge regression on the labels that the head gives to public
records. It costs nothing, for it follows from public records and a release.

Noise in directions that no record takes up changes no label, so the student forgets it. How
strongly it is held back is chosen by leaving each record out. Ridge regression tells that in closed
form (Allen 1974, PRESS): a residual over one less the record's leverage.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpladder.learn.data import Data, unaugmented
from dpladder.learn.interface import Weights
from dpladder.learn.scorers import ClassScorer
from dpladder.privacy.arrays import Floats

STRENGTHS = 10.0 ** np.arange(-4, 3, 0.5)  # lambda, times the mean eigenvalue


def taught(teacher: Weights, data: Data, classes: int) -> tuple[NDArray[np.float32], float]:
    """The student's weights, of shape (classes, width), and its lambda.

    Args:
        teacher: a released head.
        data: public records; their own labels are not read.
        classes: of the declared list.
    """
    x = np.asarray(unaugmented(data.features), np.float64)
    wanted = np.eye(classes)[ClassScorer().predict(teacher, data.features)] - 1.0 / classes
    values, axes = np.linalg.eigh(x.T @ x)
    seen = x @ axes
    strengths = STRENGTHS * max(float(values.mean()), np.finfo(np.float64).tiny)
    best = min(strengths, key=lambda strength: _leave_one_out_error(seen, values, wanted, strength))
    weights = axes @ (seen.T @ wanted / (values.clip(0.0) + best)[:, None])
    return weights.T.astype(np.float32), float(best)


def _leave_one_out_error(seen: Floats, values: Floats, wanted: Floats, strength: float) -> float:
    """Squared error over all records, each by a fit to the others."""
    shrunk = seen / (values.clip(0.0) + strength)
    leverage = (shrunk * seen).sum(axis=1).clip(0.0, 1.0 - 1e-9)
    missed = (wanted - shrunk @ (seen.T @ wanted)) / (1.0 - leverage)[:, None]
    return float(np.square(missed).sum())
