"""The curator's part that adds up counts, and the mean of units. No torch here, so that a job that
counts alone starts without it.

A question may say anything of a record. It is cut to what the query declares (learn/queries.py). So
a unit moves a sum by no more, whatever it is asked about.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpladder.config.label_sets import MANY, Labels, members_by_class, states_by_finding
from dpladder.errors import Refused
from dpladder.learn.data import Data
from dpladder.learn.interface import Constants, Shape, Weights
from dpladder.learn.queries import Cells, Query, QueryCall, RightCount, UnitMean, UnitsByClass
from dpladder.privacy.arrays import Floats, scale_into_ball

if TYPE_CHECKING:
    from dpladder.learn.scorers import Scorer
    from dpladder.privacy.release.meter import Meter

FINEST = 2.0**30  # shares are multiples of 1/FINEST, so that float64 sums of them are exact
BLOCK = 8192  # rows held in float64 at a time

CellWeights = tuple[NDArray[np.int64], NDArray[np.float64]]
"""Of each record, in each block, the cells that it is in and its share of each: (records, blocks,
cells) both. A cell below 0 is none."""


def ask(question: QueryCall, data: Data, constants: Constants, meter: Meter) -> Floats:
    """The noised answer to one question of these kinds, on the public grid.

    Guarantee: that of the query's draw, which the meter must declare (contract: one-door).

    Args:
        question: a declared query with its public arguments.
        data: the records that count.
        constants: public sizes; the query's noise follows from them.
        meter: its noise. A query that it was not made for is refused before a record is read.

    Returns:
        float64 of the query's shape.

    Raises:
        Refused: the query is not what the meter declares.
    """
    refuse_undeclared(question.query, constants, meter)
    total = sum_of(question, data, constants)
    assert np.isfinite(total).all(), "each record's contribution is finite, whatever the record"
    return meter.publish(question.query.name, total)


def refuse_undeclared(query: Query, constants: Constants, meter: Meter) -> None:
    """Refuse a query whose draw, with its sensitivity, is not what the meter declares. Then what
    was charged is about another question.

    Raises:
        Refused: it is another one. No record was read.
    """
    if not meter.declares(query.draw(constants)):
        raise Refused(
            f"query {query.name} is not what was declared. Nothing was asked: make a method's "
            "queries of public figures alone."
        )


def sum_of(question: QueryCall, data: Data, constants: Constants) -> Floats:
    """The sum itself: private until noise is added, unless the records are declared public.

    Args:
        question: a query of a kind that counts, with its arguments.
        data: the records.
        constants: public sizes.

    Returns:
        float64 of the query's shape; a number for `RightCount`.
    """
    query, arguments = question.query, question.arguments
    match query:
        case RightCount():
            weights, scorer = arguments
            return right_counts(scorer, [weights], data)[0]
        case Cells():
            [places_of] = arguments
            return add_up(query.cells, query.each, *places_of(data))
        case UnitsByClass():
            assert data.units is not None, "every cache has them"
            counts = units_by_class(data.units, data.labels, constants.classes, constants.labels)
            return counts.astype(np.float64)
        case UnitMean():
            return _sum_of_means(query, data, constants.cap > 1)
    raise Refused(f"{type(query).__name__} is no kind of query that counts.")


def right_counts(scorer: Scorer, models: Sequence[Weights], data: Data) -> Floats:
    """How many records each model is right about, or what they count by their losses or findings.

    Args:
        scorer: what a record counts, which is cut to a number from 0 to 1 here.
        models: released weights of each.
        data: the records.

    Returns:
        A sum for each model. Private until noise is added.
    """
    totals = np.zeros(len(models))
    for shares in scorer.shares_by_model(models, data.features, data.labels):
        totals += np.clip(np.nan_to_num(shares, nan=0.0), 0.0, 1.0).sum(axis=-1)
    return totals


def add_up(
    shape: Shape, blocks: int, places: NDArray[np.int64], shares: NDArray[np.float64]
) -> Floats:
    """The sum over records of their shares of cells.

    Sensitivity: in each block a record's shares are cut to 0 or more, and to 1 together. So what it
    adds has length sqrt(blocks) at most. Shares are multiples of 2^-30, so that float64 sums are
    exact, in whatever order records stand.

    Args:
        shape: of the table of cells.
        blocks: in how many, equally long, a record may be.
        places: (records, blocks, cells) within each block; below 0 for none.
        shares: of the same shape.
    """
    table = np.zeros((blocks, math.prod(shape) // blocks))
    cut = np.clip(np.nan_to_num(shares, nan=0.0), 0.0, 1.0)
    cut = np.floor(cut / np.maximum(cut.sum(axis=2, keepdims=True), 1.0) * FINEST) / FINEST
    known = (places >= 0) & (places < table.shape[1])
    for block, row in enumerate(table):
        inside = known[:, block]
        np.add.at(row, places[:, block][inside], cut[:, block][inside])
    return table.reshape(shape)


def units_by_class(
    units: NDArray[np.uint8], labels: NDArray[np.int64], classes: int, most: Labels = 1
) -> NDArray[np.int64]:
    """How many units count, and how many of them are of each class; of findings, how many have
    none, some and all.

    Sensitivity: a unit is counted once at most, by the first of its records that counts, and by the
    first of that one's classes. It does not matter who else is there. So it adds 1 to the first
    count and to one of the others.

    Args:
        units: uint8 (records, 16), whose each record is.
        labels: (records,), a number for each record's set of classes; below 0 it counts as nothing.
        classes: how many there are.
        most: classes of a record, or `many` where each is a finding.

    Returns:
        int64 (1 + classes,), or (4,) of findings. Exact, and so private.
    """
    counting = np.flatnonzero(labels >= 0)
    _, first = np.unique(units[counting], axis=0, return_index=True)
    of_units = labels[counting[first]]
    if most == MANY:
        states = [*states_by_finding(of_units, classes)]
        some = np.any([present for present, _ in states], axis=0)
        lacking = np.any([known & ~present for present, known in states], axis=0)
        cells = [~some, some & lacking, some & ~lacking]
    else:
        cells, left = [], np.ones(len(of_units), bool)
        for members in members_by_class(of_units, classes, most):
            cells.append(members & left)
            left &= ~members
    return np.array([len(of_units), *map(np.count_nonzero, cells)], np.int64)


def _sum_of_means(query: UnitMean, data: Data, several: bool) -> Floats:
    """The sum over units of the mean of their valid records, each scaled into the ball or to its
    edge.

    Sensitivity: a unit's records weigh as one together, so it adds `query.radius` in L2 at most.

    Args:
        query: with the ball.
        data: the records.
        several: whether more than one record may be a unit's.
    """
    total = np.zeros(query.width)
    counted = np.asarray(data.labels) >= 0
    shares = _shares(data.units, counted) if several else np.ones(len(counted))
    for start in range(0, len(counted), BLOCK):
        block = slice(start, start + BLOCK)
        rows = scale_into_ball(data.features[block], query.radius, query.exact)[counted[block]]
        total += (rows * shares[block][counted[block], None]).sum(axis=0)
    return total


def _shares(units: NDArray[np.uint8] | None, counted: NDArray[np.bool_]) -> Floats:
    """For each record that counts, one over how many records of its unit do."""
    assert units is not None, "every cache has them"
    shares = np.zeros(len(counted))
    _, place, sizes = np.unique(units[counted], axis=0, return_inverse=True, return_counts=True)
    shares[counted] = 1.0 / sizes[place.ravel()]
    return shares
