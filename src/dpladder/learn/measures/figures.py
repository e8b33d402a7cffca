"""Figures that follow from noised counts, and so cost nothing. A new one is an object here.

Each has a formula for every table that it follows from, and the deviation that the table's noise
gives it, by the delta method. A formula returns None where noise hides the figure. Of findings a
formula is about the table of one class, and the figure of all is the mean over them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpladder.config.detectability import detectable_count
from dpladder.privacy.accounting.rounding import NoisedFigure

Counts = NDArray[np.float64]
Formula = Callable[[Counts, float], NoisedFigure | None]


@dataclass(frozen=True)
class MeasuredFigure:
    """A figure that follows from released counts.

    Attributes:
        name: in files.
        heading: in tables.
        of: a formula for each table that it follows from, by what the table holds; empty where its
            own table computes it.
        style: how it is shown.
    """

    name: str
    heading: str
    of: Mapping[str, Formula]
    style: Literal["percent", "number"] = "percent"


# --- right and wrong ---


def share(right: float, wrong: float, sd: float) -> NoisedFigure | None:
    """The share that is right, of two noised counts.

    Args:
        right, wrong: the counts; noise may bring them below 0.
        sd: of each one's noise.

    Returns:
        The share with its deviation; None where there are too few records to tell.
    """
    total = right + wrong
    return None if total <= detectable_count(sd, 2) else share_of(right, total, sd)


def share_of(right: float, total: float, sd: float) -> NoisedFigure:
    """The share that is right, of a total.

    c / (c + w) moves by (1 - a) / total with c and by -a / total with w, each of which has this
    deviation.

    Args:
        right: the noised count.
        total: of right and wrong, above 0.
        sd: of each one's noise.
    """
    value = float(min(max(right / total, 0.0), 1.0))
    return NoisedFigure(value, float(sd * math.hypot(1.0 - value, value) / total))


def mean_of(figures: Sequence[NoisedFigure | None]) -> NoisedFigure | None:
    """The mean of figures with independent noise; None where one of them cannot be told."""
    known = [one for one in figures if one is not None]
    if len(known) < len(figures) or not known:
        return None
    value = math.fsum(one.value for one in known) / len(known)
    return NoisedFigure(value, math.hypot(*(one.sd for one in known)) / len(known))


def balanced_accuracy(counts: Counts, sd: float) -> NoisedFigure | None:
    """The mean accuracy over the rows of a table of right and wrong.

    Args:
        counts: (rows, 2).
        sd: of the noise in each count.
    """
    return mean_of([share(float(right), float(wrong), sd) for right, wrong in counts])


BALANCED = MeasuredFigure(
    "balanced",
    "balanced accuracy",
    {"by_class": balanced_accuracy, "by_finding": balanced_accuracy},
)
SENSITIVITY = MeasuredFigure(
    "sensitivity",
    "sensitivity",
    {"by_finding": lambda counts, sd: share(counts[1, 0], counts[1, 1], sd)},
)
SPECIFICITY = MeasuredFigure(
    "specificity",
    "specificity",
    {"by_finding": lambda counts, sd: share(counts[0, 0], counts[0, 1], sd)},
)
ELSEWHERE = MeasuredFigure("elsewhere", "score on other groups", {})


# --- ranking ---


def auc(counts: Counts, sd: float) -> NoisedFigure | None:
    """How often a record of the second class scores above one of the first; half a point for the
    same bin.

    Of noised counts it is sum_i n1_i (sum_{j<i} n0_j + n0_i / 2) / (N0 N1). A count of the second
    class in bin i moves it by (F0_i - A) / N1. One of the first class moves it by (1 - F1_i - A) /
    N0. F is the share below, half the bin included.

    Args:
        counts: (2, bins), of each class.
        sd: of the noise in each count.

    Returns:
        The figure with its deviation; None where noise hides whether a class has any records.
    """
    totals = counts.sum(axis=1)
    if (totals <= detectable_count(sd, counts.shape[1])).any():
        return None
    below = (np.cumsum(counts, axis=1) - counts / 2) / totals[:, None]
    value = float(counts[1] @ below[0] / totals[1])
    moved = np.concatenate([(1.0 - below[1] - value) / totals[0], (below[0] - value) / totals[1]])
    return NoisedFigure(min(max(value, 0.0), 1.0), sd * float(np.linalg.norm(moved)))


AUC = MeasuredFigure("auc", "AUC", {"scores": auc, "scores_by_finding": auc}, "number")

# --- F1 ---


def f1_of_answers(counts: Counts, sd: float) -> NoisedFigure | None:
    """The mean over classes of 2 c_ii / (row i + column i).

    A count moves it by 2 (1 - F_i) / D_i where it is right. Where class i is taken for j, it moves
    it by -F_i / D_i - F_j / D_j.

    Args:
        counts: (classes, classes), a row for each class: what its records are taken for.
        sd: of the noise in each count.
    """
    sums = counts.sum(axis=0) + counts.sum(axis=1)
    if (sums <= detectable_count(sd, 2 * len(counts))).any():
        return None
    each = 2.0 * np.diag(counts) / sums
    moved = -(each / sums)[:, None] - (each / sums)
    np.fill_diagonal(moved, 2.0 * (1.0 - each) / sums)
    value, noise = float(each.mean()), sd * float(np.linalg.norm(moved)) / len(counts)
    return NoisedFigure(min(max(value, 0.0), 1.0), noise)


def f1_of_finding(counts: Counts, sd: float) -> NoisedFigure | None:
    """The F1 of one finding: 2 right / (2 right + said without having it + missed).

    Args:
        counts: (2, 2), right and wrong of those that lack it, then of those that have it.
        sd: of the noise in each count.
    """
    (_, said_only), (right, missed) = counts
    total = 2.0 * right + said_only + missed
    if right + missed <= detectable_count(sd, 2) or total <= detectable_count(sd, 4):
        return None
    value = 2.0 * right / total
    noise = sd * math.hypot(2.0 * (1.0 - value), value, value) / total
    return NoisedFigure(float(min(max(value, 0.0), 1.0)), float(noise))


F1 = MeasuredFigure("f1", "F1", {"answers": f1_of_answers, "by_finding": f1_of_finding})

# --- numbers ---


def root_mean_square(left: float, sd: float) -> NoisedFigure | None:
    """The root of a mean square, by what it leaves of 1: sqrt(1 - left), whose slope is 1 / (2
    root).

    Args:
        left: noised, from 0 to 1.
        sd: of its noise.

    Returns:
        The root with its deviation; None where noise hides it.
    """
    square = 1.0 - left
    return (
        None
        if square <= 2.0 * sd and sd
        else NoisedFigure(math.sqrt(square), sd and sd / 2 / math.sqrt(square))
    )


def r_squared(counts: Counts, sd: float, largest: float) -> NoisedFigure | None:
    """1 - sum of squared errors / sum of squares about the mean.

    With E squared errors, n records, U the sum of u and S that of u^2, it is 1 - E / T, where T = S
    - U^2 / n. A count moves T by what it moves S, less 2 U/n times what it moves U, plus (U/n)^2
    times what it moves n.

    Args:
        counts: (2, 3), as the table squares has them.
        sd: of the noise in each count.
        largest: error that is counted, as a share of the range.
    """
    error, total = float(counts[0, 1]) * largest**2, float(counts[1].sum())
    if total <= detectable_count(sd, 3):
        return None
    mean = float(counts[1, :2].sum()) / total
    spread = float(counts[1, 0]) - mean**2 * total
    moved = np.array([1.0 - 2.0 * mean, -2.0 * mean, 0.0]) + mean**2
    if spread <= 2.0 * sd * float(np.linalg.norm(moved)):
        return None
    ratio = error / spread
    noise = sd * math.hypot(largest**2, ratio * float(np.linalg.norm(moved))) / spread
    return NoisedFigure(1.0 - ratio, noise)


RMSE = MeasuredFigure("rmse", "RMSE", {}, "number")
MAE = MeasuredFigure("mae", "mean absolute error", {}, "number")
R2 = MeasuredFigure("r2", "R²", {}, "number")

# --- calibration ---


def calibration_error(counts: Counts, sd: float) -> NoisedFigure | None:
    """The expected calibration error (Guo et al. 2017, Eq. 3).

    It is how far confidence and the share that is right lie apart, bin by bin, weighed by the
    predictions in each. Noise alone makes each difference larger: what it adds to the square is
    taken off (Kumar et al. 2019, section 4).

    Args:
        counts: (bins, 2, 2), right and wrong, at the lower and the upper edge.
        sd: of the noise in each count.
    """
    total = counts.sum()
    if total <= detectable_count(sd, counts.size):
        return None
    apart, noise = _gap_of_bins(counts, sd)
    value = float(np.sqrt(np.maximum(apart**2 - noise**2, 0.0)).sum() / total)
    return NoisedFigure(min(value, 1.0), float(np.linalg.norm(noise) / total))


def overconfidence(counts: Counts, sd: float) -> NoisedFigure | None:
    """The mean confidence, less the share that is right. A count moves it by its own difference
    less that of all, over their number.

    Args:
        counts: (bins, 2, 2), right and wrong, at the lower and the upper edge.
        sd: of the noise in each count.
    """
    total = counts.sum()
    if total <= detectable_count(sd, counts.size):
        return None
    each = _differences(len(counts))
    value = float((counts * each).sum() / total)
    return NoisedFigure(value, float(sd * np.linalg.norm(each - value) / total))


def _differences(bins: int) -> Counts:
    """For each cell (bin, right or wrong, lower or upper edge), confidence less what is right."""
    edge = np.stack([np.arange(bins), np.arange(1, bins + 1)], axis=1) / bins
    return np.stack([edge - 1.0, edge], axis=1)


def _gap_of_bins(counts: Counts, sd: float) -> tuple[Counts, Counts]:
    """For each bin, the sum of confidence less what is right, and the deviation of its noise."""
    each = _differences(len(counts))
    return (counts * each).sum(axis=(1, 2)), sd * np.linalg.norm(each, axis=(1, 2))


CALIBRATION_ERROR = MeasuredFigure(
    "calibration_error", "expected calibration error", {"confidence": calibration_error}
)
OVERCONFIDENCE = MeasuredFigure(
    "overconfidence", "confidence less accuracy", {"confidence": overconfidence}
)

FIGURES = (
    SENSITIVITY,
    SPECIFICITY,
    BALANCED,
    F1,
    AUC,
    ELSEWHERE,
    CALIBRATION_ERROR,
    OVERCONFIDENCE,
    RMSE,
    MAE,
    R2,
)
PER_FINDING = ("by_finding", "scores_by_finding")  # tables of each class by itself
OF_FINDINGS = tuple(figure for figure in FIGURES if not {*PER_FINDING}.isdisjoint(figure.of))


def figures_of(tables: Mapping[str, tuple[Counts, float]]) -> dict[str, NoisedFigure | None]:
    """All figures of a test.

    Args:
        tables: released counts with the deviation of their noise, by what they hold.

    Returns:
        Figures by name; None for what noise hides. Of findings the mean over them.
    """
    each = figures_of_findings(tables)
    means = {
        name: mean_of([figures[name] for figures in each]) for name in (each[0] if each else ())
    }
    return means | {
        figure.name: formula(*tables[holds])
        for figure in FIGURES
        for holds, formula in figure.of.items()
        if holds in tables and holds not in PER_FINDING
    }


def figures_of_findings(
    tables: Mapping[str, tuple[Counts, float]],
) -> list[dict[str, NoisedFigure | None]]:
    """The figures of each finding by itself, class by class."""
    apart = [holds for holds in PER_FINDING if holds in tables]
    classes = len(tables[apart[0]][0]) if apart else 0
    return [
        {
            figure.name: formula(tables[holds][0][place], tables[holds][1])
            for figure in FIGURES
            for holds, formula in figure.of.items()
            if holds in apart
        }
        for place in range(classes)
    ]
