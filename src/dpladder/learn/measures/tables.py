"""The tables of counts that a test may release, and what follows from each.

A table says which cells a record is in, and by what share. These are private. The curator cuts a
record's shares to what the table's query declares (learn/counts.py), so a unit moves a table by no
more, whatever `places` returns. Some tables are a first look, at a tenth of the price: what a later
one asks follows from it, as from any release. `figures` is what follows from the noised counts,
beside the figures (learn/measures/figures.py): it is free.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpladder.config import evaluate_sections
from dpladder.config.dataset_sections import NumberTarget
from dpladder.config.detectability import CONFIDENCES
from dpladder.config.evaluate_sections import Measures
from dpladder.config.label_sets import place_in_range, states_by_finding
from dpladder.learn.counts import CellWeights, sum_of
from dpladder.learn.data import Data, unaugmented
from dpladder.learn.interface import Constants, Logits, Shape, Weights
from dpladder.learn.measures import ranking
from dpladder.learn.measures.figures import (
    ELSEWHERE,
    MAE,
    R2,
    RMSE,
    RMSE_OF_MEAN,
    figures_of,
    figures_of_findings,
    look_of_tables,
    share_of_row,
)
from dpladder.learn.measures.intervals import Counts, NoisedTables, share
from dpladder.learn.measures.numbers import (
    ERROR_CELLS,
    TARGET_CELLS,
    NumberScale,
    mean_absolute_error,
    r_squared,
    rmse_of_mean,
    root_mean_square,
    scale_of,
)
from dpladder.learn.measures.tested import (
    ClassTested,
    Confusion,
    CountTable,
    FindingTested,
    GroupNames,
    GroupTested,
    Perplexity,
    ReleasedCounts,
    ReliabilityBin,
    Tested,
    WorstTested,
)
from dpladder.learn.queries import Cells, QueryCall
from dpladder.learn.score import CHUNK, row_by_row_logits
from dpladder.learn.scorers import ClassScorer, FindingScorer, LossScorer, NumberScorer, Scorer
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.rounding import SDS_OF_95_PERCENT, NoisedFigure

Bought = Mapping[str, tuple[Counts, float]]
"""Noised tables with the deviation of their noise, by what they hold."""
Sum = tuple[str, Counts]
NOTHING: Bought = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class MeasuredModel:
    """A released model, and the public facts of the test that it meets. No record is among them,
    and nothing that follows from one but through a release.

    Attributes:
        weights: released ones.
        scorer: what the model's task counts of a record.
        constants: public sizes.
        classes: their names, in order.
        groups: where each is counted by itself; None elsewhere.
        target: the number that it predicts; None of classes.
        error: the largest error of a number that is counted, where the config says one.
        threshold: the probability from which people act, where a decision is counted.
    """

    weights: Weights
    scorer: Scorer
    constants: Constants
    classes: tuple[str, ...]
    groups: GroupNames | None = None
    target: NumberTarget | None = None
    error: float | None = None
    threshold: float | None = None


class CellTable:
    """One table of counts.

    Sensitivity: that of `queries.Cells` with as many blocks as the table says, whatever `places`
    returns: the curator cuts shares to it.

    Attributes:
        holds: its name in the release.
        draw: the name of its noise.
    """

    holds: ClassVar[str]
    draw: ClassVar[str]

    def shape(self, model: MeasuredModel) -> Shape:
        """The shape of the table of counts, by public facts alone."""
        raise NotImplementedError

    def blocks(self, model: MeasuredModel) -> int:
        """How many blocks the table falls into, in each of which a record counts once at most."""
        return 1

    def places(self, model: MeasuredModel, data: Data, bought: Bought) -> CellWeights:
        """The cells that each record is in, and its shares of them. Private.

        Args:
            model: the released model that is measured.
            data: the records.
            bought: the tables that the test released before.
        """
        raise NotImplementedError

    def sums(self, shape: tuple[int, ...], of: ReleasedCounts) -> Iterable[Sum]:
        """Sums of cells that are counted elsewhere, too, by name: the weights of each cell."""
        return ()

    def figures(self, tables: NoisedTables, of: ReleasedCounts) -> dict[str, Any]:
        """Fields of `Tested` that follow from the noised counts, beside figures. Free.

        Args:
            tables: all that the test bought.
            of: the same as it was released.
        """
        return {}

    def query(self, model: MeasuredModel, mu: float) -> Cells:
        """What its release asks and costs.

        Guarantee: mu-GDP, as `queries.Cells` has it.
        """
        multiplier = gdp.sigma(mu, 1)
        shape, blocks = self.shape(model), self.blocks(model)
        return Cells(name=self.draw, multiplier=multiplier, cells=shape, each=blocks)

    def question(
        self, model: MeasuredModel, mu: float = 1.0, bought: Bought = NOTHING
    ) -> QueryCall:
        """The query about this model's records, after what was bought before."""
        return self.query(model, mu).at(
            lambda data: self.places(model, self.counted(model, data), bought)
        )

    def counted(self, model: MeasuredModel, data: Data) -> Data:
        """The records that the table counts; all others lose their label. Of groups that are
        counted apart, these are the groups that the accuracy is of."""
        if model.groups is None:
            return data
        assert data.groups is not None, "prepared with the groups that the config declares"
        summed = [name in model.groups.summed for name in model.groups.counted]
        is_counted = np.array([*summed, False])[data.groups]  # the last is for a group that is none
        return replace(data, labels=np.where(is_counted, data.labels, -1))


def one_cell_each(places: NDArray[np.int64]) -> CellWeights:
    """Each record wholly in one cell."""
    return places[:, None, None], np.ones((len(places), 1, 1))


def in_each_block(places: NDArray[np.int64]) -> CellWeights:
    """Each record wholly in one cell of each block: (records, blocks)."""
    return places[:, :, None], np.ones((*places.shape, 1))


# --- right and wrong ---


class RightAndWrong(CellTable):
    """How many are right, and how many wrong: (2,). A record may be partly in both."""

    holds, draw = "right_and_wrong", "counts"

    def shape(self, model: MeasuredModel) -> Shape:
        return (2,)

    def places(self, model: MeasuredModel, data: Data, bought: Bought) -> CellWeights:
        return _right_or_wrong(model, data, np.where(data.labels >= 0, 0, -1), bought)

    def sums(self, shape: tuple[int, ...], of: ReleasedCounts) -> Iterable[Sum]:
        if of.task == "numbers":
            return ("records", np.ones(shape)), ("squares", np.array([0.0, 1.0]))
        return _right_and_wrong(np.broadcast_to(np.eye(2), (2, *shape)), of)

    def figures(self, tables: NoisedTables, of: ReleasedCounts) -> dict[str, Any]:
        fields = _accuracy(tables, self.holds, np.ones(2)) | {"brier": of.task == "findings"}
        if of.task == "losses":
            assert of.most is not None, "a language model's losses have a bound"
            fields["perplexity"] = perplexity_of_share(
                fields["accuracy"], fields["accuracy_sd"], of.most
            )
        return fields | _errors(tables, self.holds, of)


class ByClass(CellTable):
    """How many are right and wrong of each class: (classes, 2)."""

    holds, draw = "by_class", "counts"

    def shape(self, model: MeasuredModel) -> Shape:
        return (model.constants.classes, 2)

    def places(self, model: MeasuredModel, data: Data, bought: Bought) -> CellWeights:
        known = (data.labels >= 0) & (data.labels < model.constants.classes)
        return _right_or_wrong(model, data, np.where(known, data.labels, -1), bought)

    def sums(self, shape: tuple[int, ...], of: ReleasedCounts) -> Iterable[Sum]:
        each = np.eye(math.prod(shape)).reshape(*shape, *shape)
        if "answers" in of.tables:
            for place, (right, wrong) in enumerate(each):
                yield from ((f"right {place}", right), (f"wrong {place}", wrong))
        if "standings" in of.tables:
            yield from ((f"class {place}", one) for place, one in enumerate(each.sum(axis=1)))
        every = np.broadcast_to(np.eye(2)[:, None], (2, *shape))
        yield from _right_and_wrong(every, of)

    def figures(self, tables: NoisedTables, of: ReleasedCounts) -> dict[str, Any]:
        fields = _accuracy(tables, self.holds, np.ones((len(of.classes), 1)))
        return fields | {"classes": _rows(tables, self.holds, of.classes)}


class ByGroup(CellTable):
    """How many are right and wrong of each group that is counted: (groups, 2)."""

    holds, draw = "by_group", "groups"

    def shape(self, model: MeasuredModel) -> Shape:
        assert model.groups is not None, "the config names the groups"
        return (len(model.groups.counted), 2)

    def counted(self, model: MeasuredModel, data: Data) -> Data:
        return data

    def places(self, model: MeasuredModel, data: Data, bought: Bought) -> CellWeights:
        assert data.groups is not None, "prepared with the groups that the config declares"
        return _right_or_wrong(model, data, np.where(data.labels >= 0, data.groups, -1), bought)

    def sums(self, shape: tuple[int, ...], of: ReleasedCounts) -> Iterable[Sum]:
        summed = self._summed(of)[:, None] * np.ones(shape)
        if of.task == "numbers":
            return ("records", summed), ("squares", summed * [0.0, 1.0])
        return _right_and_wrong(summed * np.eye(2)[:, None], of)

    def _summed(self, of: ReleasedCounts) -> Counts:
        """1 of each group that the accuracy is of, and 0 of others."""
        assert of.groups is not None, "counted by groups"
        return np.array([float(name in of.groups.summed) for name in of.groups.counted])

    def figures(self, tables: NoisedTables, of: ReleasedCounts) -> dict[str, Any]:
        groups, summed = of.groups, self._summed(of)
        assert groups is not None, "counted by groups"
        rows = _rows(tables, self.holds, groups.counted)
        figures = _errors(tables, self.holds, of).get("figures", {})
        if not summed.all():
            apart = (1.0 - summed)[:, None] * np.ones(2)
            figures[ELSEWHERE.name] = share(
                tables,
                tables.total(self.holds, apart * [1.0, 0.0]),
                tables.total(self.holds, apart),
            )
        tested = tuple(
            GroupTested(**asdict(row), trained=row.name in groups.trained) for row in rows
        )
        return _accuracy(tables, self.holds, summed[:, None]) | {
            "groups": tested,
            "worst": worst(tested),
            "figures": figures,
            "brier": of.task == "findings",
        }


class OfFindings(CellTable):
    """A table of each finding, for records that lack it and have it: (classes, 2, 2), of which a
    record is in one row a finding."""

    def shape(self, model: MeasuredModel) -> Shape:
        return (model.constants.classes, 2, 2)

    def blocks(self, model: MeasuredModel) -> int:
        return model.constants.classes

    def sums(self, shape: tuple[int, ...], of: ReleasedCounts) -> Iterable[Sum]:
        return _states(shape)


class ByFinding(OfFindings):
    """For each class, how many records lack it and have it, and of how many that is told right and
    wrong: (classes, 2, 2).

    A class is told present where its logit is above zero. A record is in one count of each class,
    so it moves all of them by the root of how many there are.
    """

    holds, draw = "by_finding", "counts"

    def places(self, model: MeasuredModel, data: Data, bought: Bought) -> CellWeights:
        return _told_from(model, data, math.nextafter(0.0, 1.0))  # above zero

    def figures(self, tables: NoisedTables, of: ReleasedCounts) -> dict[str, Any]:
        """A record weighs as much in the accuracy as if it were one."""
        counts, sd = tables[self.holds], tables.bought[self.holds][1]
        each = figures_of_findings(tables)
        findings = [
            FindingTested(
                name,
                share(
                    tables,
                    tables.at(self.holds, np.s_[place, :, 0]),
                    tables.at(self.holds, place),
                ),
                figures,
                counts[place].tolist(),
                sd,
            )
            for place, (name, figures) in enumerate(zip(of.classes, each, strict=True))
        ]
        even = np.full((len(counts), 1, 1), 1.0 / len(counts))
        return _accuracy(tables, self.holds, even) | {"findings": tuple(findings), "brier": False}


class Sizes(CellTable):
    """A first look at numbers: (2, cells), how far off predictions are, on a geometric grid, and
    where numbers lie in their range. It says what later tables count as largest."""

    holds, draw = "sizes", "first look"

    def shape(self, model: MeasuredModel) -> Shape:
        return (2, max(ERROR_CELLS, TARGET_CELLS))

    def blocks(self, model: MeasuredModel) -> int:
        return 2

    def places(self, model: MeasuredModel, data: Data, bought: Bought) -> CellWeights:
        cells = NumberScale.cells(_errors_of(model, data), place_in_range(data.labels))
        return in_each_block(np.where(data.labels[:, None] >= 0, cells, -1))


class AbsoluteErrors(CellTable):
    """How far off predictions of a number are, in units of the largest error: (2,), what is left of
    each record and its error."""

    holds, draw = "absolute_errors", "errors"

    def shape(self, model: MeasuredModel) -> Shape:
        return (2,)

    def places(self, model: MeasuredModel, data: Data, bought: Bought) -> CellWeights:
        errors = _scale(model, bought).errors(_errors_of(model, data))
        places = np.where(data.labels[:, None] >= 0, [0, 1], -1)
        return places[:, None], np.stack([1.0 - errors, errors], axis=1)[:, None]

    def sums(self, shape: tuple[int, ...], of: ReleasedCounts) -> Iterable[Sum]:
        return (("records", np.ones(shape)),)

    def figures(self, tables: NoisedTables, of: ReleasedCounts) -> dict[str, Any]:
        scale = _released_scale(tables, of)
        return {"figures": {MAE.name: mean_absolute_error(tables, self.holds, scale)}}


class Squares(CellTable):
    """What R^2 takes: (2, 3). Of each record first what is left of it, and its squared error. Then
    v^2, v - v^2 and 1 - v, where v from 0 to 1 is its place in the part of the range that the look
    has: sums of v and v^2 follow.

    Each row is a block of shares that add up to 1, so a record moves the table by sqrt(2) at most.
    """

    holds, draw = "squares", "squares"

    def shape(self, model: MeasuredModel) -> Shape:
        return (2, 3)

    def blocks(self, model: MeasuredModel) -> int:
        return 2

    def places(self, model: MeasuredModel, data: Data, bought: Bought) -> CellWeights:
        scale = _scale(model, bought)
        errors = scale.errors(_errors_of(model, data)) ** 2
        v = scale.place(place_in_range(np.maximum(data.labels, 0)))
        shares = [[1.0 - errors, errors, np.zeros(len(v))], [v**2, v - v**2, 1.0 - v]]
        places = np.where(data.labels[:, None, None] >= 0, np.arange(3), -1)
        return np.broadcast_to(places, (len(v), 2, 3)), np.moveaxis(np.array(shares), 2, 0)

    def sums(self, shape: tuple[int, ...], of: ReleasedCounts) -> Iterable[Sum]:
        yield "records", np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
        yield "records", np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
        yield "squares", np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])

    def figures(self, tables: NoisedTables, of: ReleasedCounts) -> dict[str, Any]:
        error = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
        fields = _accuracy(tables, self.holds, error, np.array([[1.0, 0, 0], [0, 0, 0]]))
        return fields | _errors(tables, self.holds, of)


def _scale(model: MeasuredModel, bought: Bought) -> NumberScale:
    """The largest error that is counted, and the part of the range that numbers lie in."""
    assert model.target is not None, "what is predicted is a number"
    return scale_of(bought, model.target.range, model.error)


def _released_scale(tables: NoisedTables, of: ReleasedCounts) -> NumberScale:
    assert of.range is not None, "what is predicted is a number"
    return scale_of(tables.bought, of.range, of.most)


def _errors_of(model: MeasuredModel, data: Data) -> NDArray[np.float64]:
    """How far off each prediction is, as a share of the range."""
    scorer = model.scorer
    assert isinstance(scorer, NumberScorer), "the config refuses this for other tasks"
    return scorer.errors(model.weights, data.features, data.labels)


def _errors(tables: NoisedTables, holds: str, of: ReleasedCounts) -> dict[str, Any]:
    """The root mean squared error of a number, in its own units, beside that of always saying the
    mean, and R^2; nothing of classes."""
    if of.range is None:
        return {}
    scale = _released_scale(tables, of)
    figures = {
        RMSE.name: root_mean_square(tables, scale),
        RMSE_OF_MEAN.name: rmse_of_mean(tables, scale),
        R2.name: r_squared(tables, scale),
    }
    return {"range": of.range, "largest": scale.largest, "figures": figures}


def _right_or_wrong(
    model: MeasuredModel, data: Data, rows: NDArray[np.int64], bought: Bought
) -> CellWeights:
    """Each record in its own row of a table of right and wrong; a row below 0 is none. Of numbers
    the squared error is wrong, in units of the largest one."""
    if isinstance(model.scorer, NumberScorer):
        right = 1.0 - _scale(model, bought).errors(_errors_of(model, data)) ** 2
    else:
        right = model.scorer.shares(model.weights, data.features, data.labels)
    places = np.where(rows[:, None] >= 0, 2 * rows[:, None] + [0, 1], -1)
    shares = np.stack([right, model.scorer.full - right], axis=1)
    return places[:, None], shares[:, None]


def _right_and_wrong(both: Counts, of: ReleasedCounts) -> Iterable[Sum]:
    """Right and wrong of all records, where tables mean the same by it. Of findings they do not:
    some count Brier scores, and some each finding."""
    return () if of.task == "findings" else zip(("right", "wrong"), both, strict=True)


def _told_from(model: MeasuredModel, data: Data, least: float) -> CellWeights:
    """Each record in a cell of each finding, (lacks or has it, right or wrong), where it is told
    present from a logit on."""
    logits = _finding_scorer(model).logits(model.weights, data.features)
    each = enumerate(states_by_finding(data.labels, logits.shape[1]))
    cells = [
        np.where(known, 2 * present + ((logits[:, place] >= least) != present), -1)
        for place, (present, known) in each
    ]
    return in_each_block(np.stack(cells, axis=1))


def _states(shape: tuple[int, ...]) -> Iterable[Sum]:
    """Of each finding, how many records lack it and have it."""
    each = np.eye(math.prod(shape)).reshape(*shape, *shape).sum(axis=2)
    for place, both in enumerate(each):
        yield from ((f"finding {place} {state}", one) for state, one in enumerate(both))


def _accuracy(
    tables: NoisedTables, holds: str, weights: Counts, right: Counts | None = None
) -> dict[str, Any]:
    """The accuracy, from noised counts alone: with right and wrong, the part's true size is needed
    nowhere.

    Args:
        tables: the counts.
        holds: the table with right and wrong in its last axis.
        weights: what each of its cells counts.
        right: which of them are right; None: the first of the last axis.
    """
    whole = weights * np.ones(tables[holds].shape)
    correct = tables.total(holds, whole * (right if right is not None else [1.0, 0.0]))
    total = tables.total(holds, whole)
    accuracy = share(tables, correct, total, however_few=True)
    assert accuracy is not None, "of any number of records"
    sd = math.sqrt(tables.noise(correct))
    return {
        "accuracy": accuracy.value,
        "accuracy_sd": accuracy.sd,
        "accuracy_interval": accuracy.interval,
        "correct": correct.value,
        "total": max(total.value, 1.0),
        "sd": sd,
        "noised": sd > 0,
    }


def _rows(tables: NoisedTables, holds: str, names: tuple[str, ...]) -> tuple[ClassTested, ...]:
    """What a test says of each class or group by itself."""
    sd, rows = tables.bought[holds][1], []
    for place, name in enumerate(names):
        one, (right, wrong) = share_of_row(tables, holds, place), tables[holds][place]
        value, noise, interval = (one.value, one.sd, one.interval) if one else (None, None, None)
        rows.append(ClassTested(name, value, noise, float(right), float(wrong), sd, interval))
    return tuple(rows)


def worst(rows: Sequence[ClassTested]) -> WorstTested | None:
    """The group with the lowest share, by what noise shows; None where one of them cannot be told.
    Noise chooses it too, so its share is lower than the worst group's own on average
    (docs/evaluation.md). The lowest share of all lies between the lowest ends of their
    intervals."""
    scores = [row.score for row in rows]
    known = [one for one in scores if one is not None]
    if len(known) < len(rows) or not known:
        return None
    place = min(range(len(known)), key=lambda one: known[one].value)
    low, high = (min(ends) for ends in zip(*(one.interval for one in known), strict=True))
    return WorstTested(rows[place].name, known[place].value, known[place].sd, (low, high))


def perplexity_of_share(share: float, sd: float, most: float) -> Perplexity:
    """The perplexity of a language model: the exponential of the mean of its clipped losses.

    That mean is `most` less the share of it that records count. An interval holds the perplexity
    with probability 0.95, over the noise alone.

    Args:
        share: noised, of what records count, from 0 to 1.
        sd: of its noise.
        most: the bound that losses are clipped at, in nats a token.
    """
    loss, spread = most * (1.0 - share), most * sd
    low, high = (
        math.exp(min(max(loss + side * SDS_OF_95_PERCENT * spread, 0.0), most)) for side in (-1, 1)
    )
    return Perplexity(math.exp(loss), low, high, loss, spread, most)


# --- what each class is taken for ---


class Answers(CellTable):
    """For each class, how many of its records are taken for each class: (classes, classes)."""

    holds, draw = "answers", "cells"

    def shape(self, model: MeasuredModel) -> Shape:
        return (model.constants.classes, model.constants.classes)

    def places(self, model: MeasuredModel, data: Data, bought: Bought) -> CellWeights:
        classes = model.constants.classes
        known = (data.labels >= 0) & (data.labels < classes)
        predicted = _class_scorer(model).predict(model.weights, data.features)
        return one_cell_each(np.where(known, data.labels * classes + predicted, -1))

    def sums(self, shape: tuple[int, ...], of: ReleasedCounts) -> Iterable[Sum]:
        each = np.eye(math.prod(shape)).reshape(*shape, *shape)
        for place in range(shape[0]):
            yield f"right {place}", each[place, place]
            yield f"wrong {place}", each[place].sum(axis=0) - each[place, place]

    def figures(self, tables: NoisedTables, of: ReleasedCounts) -> dict[str, Any]:
        cells = tables[self.holds].tolist()
        return {"confusion": Confusion(cells, tables.bought[self.holds][1])}


# --- how well scores rank ---


class ScoreLook(CellTable):
    """A first look at scores: for each of two classes, how many lie in each cell of a public grid
    (learn/measures/ranking.py): (2, cells). The score is how far the second logit is above the
    first."""

    holds, draw = "score_look", "first look"

    def shape(self, model: MeasuredModel) -> Shape:
        return (2, ranking.CELLS)

    def places(self, model: MeasuredModel, data: Data, bought: Bought) -> CellWeights:
        cells = ranking.cells_of(_margins(model, data))
        known = (data.labels >= 0) & (data.labels < 2)
        return one_cell_each(np.where(known, data.labels * ranking.CELLS + cells, -1))


class OfTwoClasses(CellTable):
    """A table with a row for each of two classes: (2, 2)."""

    def shape(self, model: MeasuredModel) -> Shape:
        return (2, 2)

    def sums(self, shape: tuple[int, ...], of: ReleasedCounts) -> Iterable[Sum]:
        yield "class 0", np.array([[1.0, 1.0], [0.0, 0.0]])
        yield "class 1", np.array([[0.0, 0.0], [1.0, 1.0]])


class Standings(OfTwoClasses):
    """Where the scores of each of two classes stand among those of the other, by the look: (2, 2),
    of each class how far they stand on the right side of the other's, but for what is known of a
    record that is told right, added up, and what is left of 1."""

    holds, draw = "standings", "ranks"

    def places(self, model: MeasuredModel, data: Data, bought: Bought) -> CellWeights:
        scores, order = _margins(model, data), ranking.ranking_of(look_of_tables(bought, None))
        known = (data.labels >= 0) & (data.labels < 2)
        standing = _standing(order, scores, data.labels == 1)
        rows = np.where(known[:, None], 2 * data.labels[:, None] + [0, 1], -1)
        return rows[:, None], standing[:, None]


class ScoreLookByFinding(CellTable):
    """A first look at each finding's scores, its logits: (classes, 2, cells)."""

    holds, draw = "score_look_by_finding", "first look"

    def shape(self, model: MeasuredModel) -> Shape:
        return (model.constants.classes, 2, ranking.CELLS)

    def blocks(self, model: MeasuredModel) -> int:
        return model.constants.classes

    def places(self, model: MeasuredModel, data: Data, bought: Bought) -> CellWeights:
        logits = _finding_scorer(model).logits(model.weights, data.features)
        each = enumerate(states_by_finding(data.labels, logits.shape[1]))
        cells = [
            np.where(known, present * ranking.CELLS + ranking.cells_of(logits[:, place]), -1)
            for place, (present, known) in each
        ]
        return in_each_block(np.stack(cells, axis=1))


class StandingsByFinding(OfFindings):
    """Where each finding's scores stand among those of the records that lack it, or have it:
    (classes, 2, 2)."""

    holds, draw = "standings_by_finding", "ranks"

    def places(self, model: MeasuredModel, data: Data, bought: Bought) -> CellWeights:
        logits = _finding_scorer(model).logits(model.weights, data.features)
        rows, shares = [], []
        for place, (present, known) in enumerate(states_by_finding(data.labels, logits.shape[1])):
            order = ranking.ranking_of(look_of_tables(bought, place))
            shares.append(_standing(order, logits[:, place], present))
            rows.append(np.where(known[:, None], 2 * present[:, None] + [0, 1], -1))
        return np.stack(rows, axis=1), np.stack(shares, axis=1)


def _standing(
    order: ranking.Ranking, scores: NDArray[np.float64], second: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Where each score stands among those of the other class, and what is left of 1. Of the first
    class that is the share above it. Of what is told right the least that it may be is left out,
    and what is left is in units of the most that it may be."""
    below = np.where(second, order.standing(scores, 0), 1.0 - order.standing(scores, 1))
    part = np.where(second, order.left_open(0), order.left_open(1))
    right = (scores > 0.0) == second
    rest = np.clip((below - (1.0 - part) * right) / part, 0.0, 1.0)
    return np.stack([rest, 1.0 - rest], axis=1)


def _margins(model: MeasuredModel, data: Data) -> NDArray[np.float64]:
    of = _class_scorer(model).of
    chunks = (slice(start, start + CHUNK) for start in range(0, len(data.features), CHUNK))
    each = [margin(model.weights, unaugmented(data.features, rows), of) for rows in chunks]
    return np.concatenate([np.empty(0), *each])


def margin(
    weights: Weights, features: NDArray[np.floating], logits_of: Logits | None
) -> NDArray[np.float64]:
    """What a model of two classes ranks records by: how far the second logit is above the first,
    (records,).

    Args:
        weights: released ones.
        features: (records, dimension).
        logits_of: what weights make of features; None where they are layers.
    """
    logits = (logits_of or row_by_row_logits)(weights, features)
    # whether a record overflows must show nowhere
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(logits[:, 1] - logits[:, 0], np.float64)


# --- what who acts at a threshold does ---


class Decision(OfTwoClasses):
    """Of each of two classes, of how many it is told right and wrong by who says the second one
    where its probability is the threshold at least: (2, 2)."""

    holds, draw = "decision", "decision"

    def places(self, model: MeasuredModel, data: Data, bought: Bought) -> CellWeights:
        acts = _margins(model, data) >= _log_odds(model)
        known = (data.labels >= 0) & (data.labels < 2)
        return one_cell_each(np.where(known, 2 * data.labels + (acts != data.labels), -1))


class DecisionByFinding(OfFindings):
    """Of each finding, of how many records that lack it and have it that is told right and wrong by
    who acts where its probability is the threshold at least: (classes, 2, 2)."""

    holds, draw = "decision_by_finding", "decision"

    def places(self, model: MeasuredModel, data: Data, bought: Bought) -> CellWeights:
        return _told_from(model, data, _log_odds(model))


def _log_odds(model: MeasuredModel) -> float:
    """Of the threshold: a margin or a finding's logit there says just that probability."""
    assert model.threshold is not None, "the config refuses a decision without one"
    return math.log(model.threshold / (1.0 - model.threshold))


# --- how sure the model is ---


class Confidence(CellTable):
    """How sure a model is of its predictions, and whether they are right: (bins, right and wrong,
    lower and upper edge).

    A record's confidence says which bin it is in. It is shared out between the bin's edges so that
    their mean is its confidence: sums of confidence are exact. Of findings, each that is known has
    an even part of its record.
    """

    holds, draw = "confidence", "confidence"

    def shape(self, model: MeasuredModel) -> Shape:
        return (CONFIDENCES, 2, 2)

    def places(self, model: MeasuredModel, data: Data, bought: Bought) -> CellWeights:
        sure, right, known = model.scorer.confidences(model.weights, data.features, data.labels)
        scaled = np.clip(np.nan_to_num(sure, nan=0.0), 0.0, 1.0) * CONFIDENCES
        bins = np.minimum(scaled.astype(np.int64), CONFIDENCES - 1)
        upper = scaled - bins
        cells = np.where(known, 4 * bins + 2 * ~right, -1)
        weight = known / np.maximum(known.sum(axis=1, keepdims=True), 1)
        places = np.concatenate([cells, np.where(known, cells + 1, -1)], axis=1)
        shares = np.concatenate([(1.0 - upper) * weight, upper * weight], axis=1)
        return places[:, None], shares[:, None]

    def sums(self, shape: tuple[int, ...], of: ReleasedCounts) -> Iterable[Sum]:
        both = np.broadcast_to(np.eye(2)[:, None, :, None], (2, *shape))
        return _right_and_wrong(both, of)

    def figures(self, tables: NoisedTables, of: ReleasedCounts) -> dict[str, Any]:
        return {"reliability": tuple(_reliability(tables))}


def _reliability(tables: NoisedTables) -> Iterator[ReliabilityBin]:
    """Each bin's mean confidence and share that is right, from noised counts; neither where noise
    hides how many there are."""
    counts = tables["confidence"]
    for place, cells in enumerate(counts):
        lower, upper = place / len(counts), (place + 1) / len(counts)
        total = float(cells.sum())
        right = tables.at("confidence", (place, 0))
        accuracy = share(tables, right, tables.at("confidence", place))
        sure = None
        if accuracy is not None:
            sure = float(cells[:, 0].sum() * lower + cells[:, 1].sum() * upper) / total
            sure = min(max(sure, lower), upper)
        yield ReliabilityBin(lower, upper, total, sure, accuracy)


def _class_scorer(model: MeasuredModel) -> ClassScorer:
    assert isinstance(model.scorer, ClassScorer), "the config refuses this for other tasks"
    return model.scorer


def _finding_scorer(model: MeasuredModel) -> FindingScorer:
    assert isinstance(model.scorer, FindingScorer), "the config refuses this for other tasks"
    return model.scorer


# --- measures ---

TABLES: Mapping[str, CellTable] = {
    table.holds: table
    for table in (
        Sizes(),
        RightAndWrong(),
        Squares(),
        AbsoluteErrors(),
        ByClass(),
        ByFinding(),
        Answers(),
        ScoreLook(),
        Standings(),
        ScoreLookByFinding(),
        StandingsByFinding(),
        ByGroup(),
        Confidence(),
        Decision(),
        DecisionByFinding(),
    )
}
"""By what they hold. Of the tables that an accuracy follows from, the first one gives it."""


def tables_of(measures: Measures, model: MeasuredModel) -> tuple[CellTable, ...]:
    """The tables that a test of a model buys.

    Args:
        measures: as `evaluate.measures` has them.
        model: the released model that is measured.
    """
    findings, grouped = isinstance(model.scorer, FindingScorer), model.groups is not None
    looks = model.target is not None and model.error is None
    names = evaluate_sections.tables_of(measures, findings, grouped, looks)
    return tuple(TABLES[name] for name in names)


def prices_of(tables: tuple[CellTable, ...], mu: float) -> tuple[float, ...]:
    """The mu of each table, mu together.

    Each has its share of mu^2, and mu^2 of Gaussians adds up, also where what one asks follows from
    what others answered (Dong, Roth & Su 2022, Corollary 3.3).

    Args:
        tables: one at least.
        mu: that all of them cost together.
    """
    shares = evaluate_sections.shares_of([table.holds for table in tables])
    return tuple(mu * math.sqrt(share) for share in shares)


def released(model: MeasuredModel, tables: Mapping[str, CountTable]) -> ReleasedCounts:
    """What a test puts out, as metrics.json has it.

    Args:
        model: the released model that is measured.
        tables: noised counts, by what they hold.
    """
    most = model.scorer.most if isinstance(model.scorer, LossScorer) else model.error
    number = None if model.target is None else model.target.range
    acts = not {Decision.holds, DecisionByFinding.holds}.isdisjoint(tables)
    return ReleasedCounts(
        model.scorer.task,
        model.classes,
        dict(tables),
        model.groups,
        most,
        number,
        model.threshold if acts else None,
    )


def exact(measures: Measures, model: MeasuredModel, data: Data) -> ReleasedCounts:
    """The counts themselves: of records that are declared public alone."""
    bought: dict[str, tuple[Counts, float]] = {}
    for one in tables_of(measures, model):
        bought[one.holds] = sum_of(one.question(model, 1.0, bought), data, model.constants), 0.0
    cells = {holds: CountTable(counts.tolist(), 0.0) for holds, (counts, _) in bought.items()}
    return released(model, cells)


def arrays_of(released: ReleasedCounts) -> dict[str, tuple[Counts, float]]:
    """The tables of a test as arrays, each with the deviation of its noise, by what they hold."""
    return {
        holds: (np.array(table.cells, np.float64), table.sd)
        for holds, table in released.tables.items()
    }


def figures_of_counts(released: ReleasedCounts) -> Tested:
    """All that follows from the counts of a test. It costs nothing."""
    fields: dict[str, Any] = {}
    figures: dict[str, NoisedFigure | None] = {}
    arrays = arrays_of(released)
    known = {holds: table for holds, table in TABLES.items() if holds in arrays}
    sums = {holds: table.sums(arrays[holds][0].shape, released) for holds, table in known.items()}
    tables = NoisedTables(arrays, sums)
    for table in known.values():
        of_table = table.figures(tables, released)
        figures |= of_table.get("figures", {})
        fields = of_table | fields
    fields["figures"] = figures_of(tables) | figures
    return Tested(**fields, threshold=released.threshold)
