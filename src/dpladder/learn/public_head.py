"""The public head: logistic regression without noise, on records declared public, for a private
descent to start from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpladder.errors import BadInput
from dpladder.learn.data import Data, unaugmented
from dpladder.learn.interface import Claim, Shape
from dpladder.privacy.arrays import Floats

SeenByHead = Callable[[Any], Floats]
FOLDS = 5
STRENGTHS = 10.0 ** np.arange(-4, 4)  # C of scikit-learn, times how many records it is fitted to


def fit_public_head(
    data: Data, classes: int, seen_of: SeenByHead
) -> tuple[NDArray[np.float32], Claim]:
    """The head, and what it may be held to.

    How strongly weights are held back is cross-validated: ten records alone, a fifth of fifty,
    choose badly. A class that the sample lacks starts at zero.

    Args:
        data: public records, with labels.
        classes: of the declared list.
        seen_of: what the head sees of some records, its constant feature included.

    Returns:
        Weights (classes, width), and the claim that a look compares private records with.

    Raises:
        BadInput: fewer than two classes are labelled.
    """
    rows = np.flatnonzero((data.labels >= 0) & (data.labels < classes))
    x, labels = seen_of(unaugmented(data.features, rows)), np.asarray(data.labels)[rows]
    if len(np.unique(labels)) < 2:
        raise BadInput(
            "dataset.public_sample has labelled records of fewer than two of dataset.classes, so "
            "there is no head to start from. Name a sample that has them, or set learner.public: "
            "none and learner.init: zero."
        )
    # of each record the loss by a head that was not fitted to it, and whether that is right
    tried = [_held_out(x, labels, strength, classes) for strength in STRENGTHS]
    best = int(np.argmin([float(losses.sum()) for losses, _ in tried]))
    head = _fit(x, labels, STRENGTHS[best], classes)
    share = int(tried[best][1].sum()) / len(labels)
    claim = Claim(
        share - (share * (1 - share) / len(labels)) ** 0.5,
        float(np.bincount(labels).max()) / len(labels),
    )
    # few digits, so that another machine finds the same ones
    return head.astype(np.float16).astype(np.float32), claim


def cross_validated(data: Data, classes: int) -> Floats | None:
    """For each labelled record, the loss of a head that was not fitted to it, at the strength that
    is best for all.

    Args:
        data: public records, with labels.
        classes: of the declared list.

    Returns:
        (records,), in nats; None where too few classes are labelled.
    """
    rows = np.flatnonzero((data.labels >= 0) & (data.labels < classes))
    x, labels = (
        np.asarray(unaugmented(data.features, rows), np.float64),
        np.asarray(data.labels)[rows],
    )
    if len(np.unique(labels)) < 2:
        return None
    tried = [_held_out(x, labels, strength, classes)[0] for strength in STRENGTHS]
    return min(tried, key=lambda losses: float(losses.sum()))


def _held_out(
    x: Floats, labels: NDArray[np.int64], strength: float, classes: int
) -> tuple[Floats, NDArray[np.bool_]]:
    """The loss of each record, and whether it is right, by a head that was not fitted to its
    fold."""
    losses, right = np.empty(len(labels)), np.empty(len(labels), np.bool_)
    part = np.arange(len(labels)) % FOLDS
    for held_out in (part == fold for fold in range(FOLDS)):
        logits = x[held_out] @ _fit(x[~held_out], labels[~held_out], strength, classes).T
        own_logits = logits[np.arange(len(logits)), labels[held_out]]
        losses[held_out] = np.logaddexp.reduce(logits, axis=1) - own_logits
        right[held_out] = logits.argmax(axis=1) == labels[held_out]
    return losses, right


def linear_head_inputs(constant: bool, features: Any) -> Floats:
    """What a linear head on the features themselves sees of records, in float64: a last feature of
    1 where there is a constant."""
    x = np.asarray(features, np.float64)
    return np.pad(x, ((0, 0), (0, int(constant))), constant_values=1.0)


def initial_head_of_shape(head: NDArray[np.float32] | None, shape: Shape) -> NDArray[np.float32]:
    """The head, which must be of this shape.

    Raises:
        BadInput: there is none, or its shape is another one.
    """
    if head is None or head.shape != shape:
        raise BadInput(
            "training starts from a head, and has "
            f"{'none' if head is None else f'one of shape {head.shape}'}, where it needs {shape}. "
            "The workflow makes it from dataset.public_sample (rule find_start), or buys it "
            "(estimate_head)."
        )
    return head


def _fit(x: Floats, labels: NDArray[np.int64], strength: float, classes: int) -> Floats:
    """Logistic regression without noise, (classes, width): of public records alone."""
    from sklearn.linear_model import LogisticRegression  # a second that trainings save

    # so that strengths mean the same whatever the length
    scale = float(np.linalg.norm(x, axis=1).mean()) or 1.0
    head = np.zeros((classes, x.shape[1]))
    known = np.unique(labels)
    if len(known) < 2:
        return head
    model = LogisticRegression(C=strength, fit_intercept=False, max_iter=500).fit(x / scale, labels)
    rows = model.coef_ if len(known) > 2 else np.concatenate([-model.coef_, model.coef_]) / 2
    head[known] = rows / scale
    return head
