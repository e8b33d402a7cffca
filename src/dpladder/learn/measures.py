"""How good a model is class by class, and how well its scores rank: counts of which a record is in
one, and what follows from them once they are noised.

A unit moves each set of counts by its own records alone (`Cells` in queries.py): a record is
right or wrong, in its own class or its own group, and its score lies in one bin. Bins are public:
they follow from the released weights. Of findings (`dataset.labels: many`) a record is in one count
of each class, so it moves all of them together by the root of how many classes there are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dpladder.config.label_sets import are_of, each_finding
from dpladder.config.telling import BINS, enough
from dpladder.learn.interface import (
    Constants,
    Logits,
    LogOdds,
    Weights,
    public_random,
    sigmoid_bias,
)
from dpladder.learn.score import by_themselves
from dpladder.privacy.accounting.shown import Shown

PROBES = 256  # public records of the usual length, whose scores say how wide a bin should be


def by_class(
    predicted: NDArray[np.int64], labels: NDArray[np.int64], classes: int
) -> NDArray[np.float64]:
    """Of each class, how many records are right, and how many wrong. Private until noise is added.
    Records without a valid label are in neither."""
    found = np.zeros((classes, 2))
    known = (labels >= 0) & (labels < classes)
    np.add.at(found, (labels[known], (predicted[known] != labels[known]).astype(int)), 1.0)
    return found


def by_answer(
    predicted: NDArray[np.int64], labels: NDArray[np.int64], classes: int
) -> NDArray[np.float64]:
    """Of each class, how many records are taken for each. Private until noise is added. Records
    without a valid label are in none."""
    found = np.zeros((classes, classes))
    known = (labels >= 0) & (labels < classes)
    np.add.at(found, (labels[known], predicted[known]), 1.0)
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
    known = (labels >= 0) & (groups >= 0) & (groups < count)
    right = are_of(labels[known], predicted[known], classes).astype(np.float64)
    return in_groups(right, groups[known], count)


def in_groups(
    shares: NDArray[np.float64], groups: NDArray[np.int64], count: int, whole: float = 1.0
) -> NDArray[np.float64]:
    """The same of records that are each right by a share, and wrong by the rest of the whole: so
    one moves its group's two sums together no further than by the whole."""
    found = np.zeros((count, 2))
    np.add.at(found, groups, np.stack([shares, whole - shares], axis=1))
    return found


def by_score(
    scores: NDArray[np.float64], labels: NDArray[np.int64], edges: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Of each of two classes, how many scores lie in each bin. Private until noise is added."""
    found = np.zeros((2, len(edges) + 1))
    known = (labels >= 0) & (labels < 2)
    np.add.at(found, (labels[known], np.searchsorted(edges, scores[known], side="right")), 1.0)
    return found


def by_finding(logits: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Of each class, how many records lack it and have it, and of how many that is told right and
    wrong: (classes, 2, 2). Private until noise is added. A class is told present where
    its logit is above zero."""
    found = np.zeros((logits.shape[1], 2, 2))
    for place, (present, known) in enumerate(each_finding(labels, logits.shape[1])):
        wrong = (logits[:, place] > 0.0) != present
        np.add.at(found[place], (present[known].astype(int), wrong[known].astype(int)), 1.0)
    return found


def by_logit(
    logits: NDArray[np.float64], labels: NDArray[np.int64], edges: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Of each class, how many logits of records that lack it and have it lie in each bin: (classes,
    2, bins). `edges`: of each class. Private until noise is added."""
    kept = [
        np.where(known, present, -1) for present, known in each_finding(labels, logits.shape[1])
    ]
    columns = zip(logits.T, kept, edges, strict=True)
    return np.stack([by_score(scores, own, bins) for scores, own, bins in columns])


def margin(
    weights: Weights, features: NDArray[np.floating], own: Logits | None
) -> NDArray[np.float64]:
    """What a model of two classes ranks records by: how far the second logit is above the first."""
    found = (own or by_themselves)(weights, features)
    return np.asarray(found[:, 1] - found[:, 0], np.float64)


def edges(weights: Weights, constants: Constants, own: Logits | None) -> NDArray[np.float64]:
    """Bins of the margin of two classes."""
    return _bins(margin(weights, _probes(constants), own))


def edges_of_each(weights: Weights, constants: Constants, own: LogOdds) -> NDArray[np.float64]:
    """Of each class, bins of its logit, which widen from where training started: (classes,
    edges)."""
    bias = sigmoid_bias(constants.classes)
    found = own.of(weights, _probes(constants)) - bias
    return np.stack([_bins(scores) for scores in found.T]) + bias


def _probes(constants: Constants) -> NDArray[np.float32]:
    """Public random records of the usual length."""
    public = public_random(constants, PROBES).normal(size=(PROBES, constants.dimension))
    public *= constants.length / np.linalg.norm(public, axis=1, keepdims=True)
    return public.astype(np.float32)


def _bins(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """They widen from zero by powers of two, in units of what public records score. A score of
    exactly zero, which predicts the first class, lies below."""
    unit = float(np.std(scores))
    if not (math.isfinite(unit) and unit > 0):
        unit = 1.0
    above = unit * 2.0 ** np.arange(-1, BINS // 2 - 2)
    return np.concatenate([-above[::-1], [np.nextafter(0.0, 1.0)], above])


def share(right: float, wrong: float, sd: float) -> Shown | None:
    """The share that is right, of two noised counts. None where there is too little to tell."""
    total = right + wrong
    return None if total <= enough(sd, 2) else share_of(right, total, sd)


def share_of(right: float, total: float, sd: float) -> Shown:
    """The same of any total. The delta method: c / (c + w) moves by (1 - a) / total with c and by
    -a / total with w, each of which has this deviation."""
    value = min(max(right / total, 0.0), 1.0)
    return Shown(value, sd * math.hypot(1.0 - value, value) / total)


def balanced(classes: list[Shown | None]) -> Shown | None:
    """The mean over classes; none where one of them cannot be told."""
    known = [one for one in classes if one is not None]
    if len(known) < len(classes):
        return None
    value = math.fsum(one.value for one in known) / len(known)
    return Shown(value, math.hypot(*(one.sd for one in known)) / len(known))


def worst(groups: Mapping[str, Shown | None]) -> tuple[str, Shown] | None:
    """The group with the lowest share, by what noise shows; none where one of them cannot be told.
    Noise chooses it too, so its share is lower than the worst group's own on average
    (docs/data.md)."""
    known = {name: one for name, one in groups.items() if one is not None}
    if len(known) < len(groups):
        return None
    return min(known.items(), key=lambda item: item[1].value)


def auc(counts: NDArray[np.float64], sd: float) -> Shown | None:
    """How often a record of the second class scores above one of the first, half a point for the
    same bin: sum_i n1_i (sum_{j<i} n0_j + n0_i / 2) / (N0 N1), of noised counts. Its noise by the
    delta method: a count of the second class in bin i moves it by (F0_i - A) / N1 and one of the
    first by (1 - F1_i - A) / N0, F being the share below, half the bin included. None where there
    is too little to tell."""
    totals = counts.sum(axis=1)
    if (totals <= enough(sd, counts.shape[1])).any():
        return None
    below = (np.cumsum(counts, axis=1) - counts / 2) / totals[:, None]
    value = float(counts[1] @ below[0] / totals[1])
    moved = np.concatenate([(1.0 - below[1] - value) / totals[0], (below[0] - value) / totals[1]])
    return Shown(min(max(value, 0.0), 1.0), sd * float(np.linalg.norm(moved)))
