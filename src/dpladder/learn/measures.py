"""How good a model is class by class, and how well its scores rank: counts of which a record is in
one, and what follows from them once they are noised.

A unit moves each set of counts by its own records alone (`Constants.moves_apart`): a record is
right or wrong, in its own class or its own group, and its score lies in one bin. Bins are public:
they follow from the released weights.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpladder.config.label_sets import are_of
from dpladder.learn.interface import Constants, Logits, Weights, public_random
from dpladder.learn.score import logits

BINS = 16
PROBES = 256  # public records of the usual length, whose scores say how wide a bin should be
ENOUGH = 4.0  # deviations of its noise that a class must count, before a share of it means anything


@dataclass(frozen=True)
class Measured:
    value: float
    sd: float  # of the noise


def by_class(
    predicted: NDArray[np.int64], labels: NDArray[np.int64], classes: int
) -> NDArray[np.float64]:
    """Of each class, how many records are right, and how many wrong. Private until noise is added.
    Records without a valid label are in neither."""
    found = np.zeros((classes, 2))
    known = (labels >= 0) & (labels < classes)
    np.add.at(found, (labels[known], (predicted[known] != labels[known]).astype(int)), 1.0)
    return found


def by_group(
    predicted: NDArray[np.int64],
    labels: NDArray[np.int64],
    groups: NDArray[np.int64],
    classes: int,
    count: int,
) -> NDArray[np.float64]:
    """Of each group, how many records are right, and how many wrong. Private until noise is added.
    Records without a valid label or group are in neither."""
    found = np.zeros((count, 2))
    known = (labels >= 0) & (groups >= 0) & (groups < count)
    wrong = ~are_of(labels[known], predicted[known], classes)
    np.add.at(found, (groups[known], wrong.astype(int)), 1.0)
    return found


def by_score(
    scores: NDArray[np.float64], labels: NDArray[np.int64], edges: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Of each of two classes, how many scores lie in each bin. Private until noise is added."""
    found = np.zeros((2, len(edges) + 1))
    known = (labels >= 0) & (labels < 2)
    np.add.at(found, (labels[known], np.searchsorted(edges, scores[known], side="right")), 1.0)
    return found


def margin(
    weights: Weights, features: NDArray[np.floating], own: Logits | None
) -> NDArray[np.float64]:
    """What a model of two classes ranks records by: how far the second logit is above the first."""
    found = (own or logits)(weights, features)
    return np.asarray(found[:, 1] - found[:, 0], np.float64)


def edges(weights: Weights, constants: Constants, own: Logits | None) -> NDArray[np.float64]:
    """Bins that widen from zero by powers of two, in units of what public random records of the
    usual length score. A score of exactly zero, which predicts the first class, lies below."""
    public = public_random(constants, PROBES).normal(size=(PROBES, constants.dimension))
    public *= constants.length / np.linalg.norm(public, axis=1, keepdims=True)
    unit = float(np.std(margin(weights, public.astype(np.float32), own)))
    if not (math.isfinite(unit) and unit > 0):
        unit = 1.0
    above = unit * 2.0 ** np.arange(-1, BINS // 2 - 2)
    return np.concatenate([-above[::-1], [np.nextafter(0.0, 1.0)], above])


def share(right: float, wrong: float, sd: float) -> Measured | None:
    """The share that is right, of two noised counts. The delta method: c / (c + w) moves by (1 - a)
    / total with c and by -a / total with w. None where there is too little to tell."""
    total = right + wrong
    if total <= ENOUGH * sd * math.sqrt(2.0):
        return None
    value = min(max(right / total, 0.0), 1.0)
    return Measured(value, sd * math.hypot(1.0 - value, value) / total)


def balanced(classes: list[Measured | None]) -> Measured | None:
    """The mean over classes; none where one of them cannot be told."""
    known = [one for one in classes if one is not None]
    if len(known) < len(classes):
        return None
    value = math.fsum(one.value for one in known) / len(known)
    return Measured(value, math.hypot(*(one.sd for one in known)) / len(known))


def worst(groups: Mapping[str, Measured | None]) -> tuple[str, Measured] | None:
    """The group with the lowest share, by what noise shows; none where one of them cannot be told.
    Noise chooses it too, so its share is lower than the worst group's own on average
    (docs/data.md)."""
    known = {name: one for name, one in groups.items() if one is not None}
    if len(known) < len(groups):
        return None
    return min(known.items(), key=lambda item: item[1].value)


def auc(counts: NDArray[np.float64], sd: float) -> Measured | None:
    """How often a record of the second class scores above one of the first, half a point for the
    same bin: sum_i n1_i (sum_{j<i} n0_j + n0_i / 2) / (N0 N1), of noised counts. Its noise by the
    delta method: a count of the second class in bin i moves it by (F0_i - A) / N1 and one of the
    first by (1 - F1_i - A) / N0, F being the share below, half the bin included. None where there
    is too little to tell."""
    totals = counts.sum(axis=1)
    if (totals <= ENOUGH * sd * math.sqrt(counts.shape[1])).any():
        return None
    below = (np.cumsum(counts, axis=1) - counts / 2) / totals[:, None]
    value = float(counts[1] @ below[0] / totals[1])
    moved = np.concatenate([(1.0 - below[1] - value) / totals[0], (below[0] - value) / totals[1]])
    return Measured(min(max(value, 0.0), 1.0), sd * float(np.linalg.norm(moved)))
