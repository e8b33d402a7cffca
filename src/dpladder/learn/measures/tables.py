"""The tables of counts that a test may release, and what follows from each.

A table says which cells a record is in, and by what share. These are private. The curator cuts a
record's shares to what the table's query declares (learn/counts.py), so a unit moves a table by no
more, whatever `places` returns. `figures` is what follows from the noised counts,
beside the figures (learn/measures/figures.py): it is free.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpladder.config import evaluate_sections
from dpladder.config.dataset_sections import NumberTarget
from dpladder.config.detectability import BINS, CONFIDENCES, detectable_count
from dpladder.config.evaluate_sections import Measures
from dpladder.config.label_sets import place_in_range, states_by_finding
from dpladder.learn.counts import CellWeights, sum_of
from dpladder.learn.data import Data, unaugmented
from dpladder.learn.interface import Constants, Logits, Shape, Weights, public_random, sigmoid_bias
from dpladder.learn.measures.figures import (
    ELSEWHERE,
    MAE,
    R2,
    RMSE,
    Counts,
    figures_of,
    figures_of_findings,
    r_squared,
    root_mean_square,
    share,
    share_of,
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
from dpladder.privacy.accounting.rounding import NoisedFigure

PROBES = 256  # public records of the usual length, whose scores say how wide a bin should be
SDS_OF_95_PERCENT = 1.96  # deviations either way, which hold 95 % of a Gaussian


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
    """

    weights: Weights
    scorer: Scorer
    constants: Constants
    classes: tuple[str, ...]
    groups: GroupNames | None = None
    target: NumberTarget | None = None


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

    def places(self, model: MeasuredModel, data: Data) -> CellWeights:
        """The cells that each record is in, and its shares of them. Private."""
        raise NotImplementedError

    def figures(self, counts: Counts, sd: float, of: ReleasedCounts) -> dict[str, Any]:
        """Fields of `Tested` that follow from the noised counts, beside figures. Free.

        Args:
            counts: noised, of the table's shape.
            sd: of the noise in each; 0 where counts are exact.
            of: all that the test released.
        """
        return {}

    def query(self, model: MeasuredModel, mu: float) -> Cells:
        """What its release asks and costs.

        Guarantee: mu-GDP, as `queries.Cells` has it.
        """
        multiplier = gdp.sigma(mu, 1)
        shape, blocks = self.shape(model), self.blocks(model)
        return Cells(name=self.draw, multiplier=multiplier, cells=shape, each=blocks)

    def question(self, model: MeasuredModel, mu: float = 1.0) -> QueryCall:
        """The query about this model's records."""
        return self.query(model, mu).at(lambda data: self.places(model, self.counted(model, data)))

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

    def places(self, model: MeasuredModel, data: Data) -> CellWeights:
        return _right_or_wrong(model, data, np.where(data.labels >= 0, 0, -1))

    def figures(self, counts: Counts, sd: float, of: ReleasedCounts) -> dict[str, Any]:
        fields = _accuracy(counts[None], sd) | {"brier": of.task == "findings"}
        if of.task == "losses":
            assert of.most is not None, "a language model's losses have a bound"
            fields["perplexity"] = perplexity_of_share(
                fields["accuracy"], fields["accuracy_sd"], of.most
            )
        return fields | _rmse(fields, of)


class ByClass(CellTable):
    """How many are right and wrong of each class: (classes, 2)."""

    holds, draw = "by_class", "counts"

    def shape(self, model: MeasuredModel) -> Shape:
        return (model.constants.classes, 2)

    def places(self, model: MeasuredModel, data: Data) -> CellWeights:
        known = (data.labels >= 0) & (data.labels < model.constants.classes)
        return _right_or_wrong(model, data, np.where(known, data.labels, -1))

    def figures(self, counts: Counts, sd: float, of: ReleasedCounts) -> dict[str, Any]:
        return _accuracy(counts, sd) | {"classes": _rows(of.classes, counts, sd)}


class ByGroup(CellTable):
    """How many are right and wrong of each group that is counted: (groups, 2)."""

    holds, draw = "by_group", "groups"

    def shape(self, model: MeasuredModel) -> Shape:
        assert model.groups is not None, "the config names the groups"
        return (len(model.groups.counted), 2)

    def counted(self, model: MeasuredModel, data: Data) -> Data:
        return data

    def places(self, model: MeasuredModel, data: Data) -> CellWeights:
        assert data.groups is not None, "prepared with the groups that the config declares"
        return _right_or_wrong(model, data, np.where(data.labels >= 0, data.groups, -1))

    def figures(self, counts: Counts, sd: float, of: ReleasedCounts) -> dict[str, Any]:
        groups = of.groups
        assert groups is not None, "counted by groups"
        summed = np.array([name in groups.summed for name in groups.counted])
        rows = _rows(groups.counted, counts, sd)
        untrained, apart = counts[~summed].sum(axis=0), int((~summed).sum())
        elsewhere = share(untrained[0], untrained[1], sd * math.sqrt(apart)) if apart else None
        fields = _accuracy(counts[summed], sd)
        figures = _rmse(fields, of).get("figures", {})
        return fields | {
            "groups": tuple(
                GroupTested(**asdict(row), trained=row.name in groups.trained) for row in rows
            ),
            "worst": worst(rows),
            "figures": figures | ({ELSEWHERE.name: elsewhere} if apart else {}),
            "brier": of.task == "findings",
        }


class ByFinding(CellTable):
    """For each class, how many records lack it and have it, and of how many that is told right and
    wrong: (classes, 2, 2).

    A class is told present where its logit is above zero. A record is in one count of each class,
    so it moves all of them by the root of how many there are.
    """

    holds, draw = "by_finding", "counts"

    def shape(self, model: MeasuredModel) -> Shape:
        return (model.constants.classes, 2, 2)

    def blocks(self, model: MeasuredModel) -> int:
        return model.constants.classes

    def places(self, model: MeasuredModel, data: Data) -> CellWeights:
        logits = _finding_scorer(model).logits(model.weights, data.features)
        each = enumerate(states_by_finding(data.labels, logits.shape[1]))
        cells = [
            np.where(known, 2 * present + ((logits[:, place] > 0.0) != present), -1)
            for place, (present, known) in each
        ]
        return in_each_block(np.stack(cells, axis=1))

    def figures(self, counts: Counts, sd: float, of: ReleasedCounts) -> dict[str, Any]:
        """A record weighs as much in the accuracy as if it were one."""
        classes = len(counts)
        each = figures_of_findings(arrays_of(of))
        findings = [
            FindingTested(
                name,
                share(cells[:, 0].sum(), cells[:, 1].sum(), sd * math.sqrt(2.0)),
                figures,
                cells.tolist(),
                sd,
            )
            for name, cells, figures in zip(of.classes, counts, each, strict=True)
        ]
        together = counts.sum(axis=(0, 1))[None] / classes
        return _accuracy(together, sd * math.sqrt(2.0 / classes)) | {
            "findings": tuple(findings),
            "brier": False,
        }


class AbsoluteErrors(CellTable):
    """How far off predictions of a number are, in units of the largest error: (2,), what is left of
    each record and its error."""

    holds, draw = "absolute_errors", "errors"

    def shape(self, model: MeasuredModel) -> Shape:
        return (2,)

    def places(self, model: MeasuredModel, data: Data) -> CellWeights:
        errors = _number_scorer(model).errors(model.weights, data.features, data.labels)
        places = np.where(data.labels[:, None] >= 0, [0, 1], -1)
        return places[:, None], np.stack([1.0 - errors, errors], axis=1)[:, None]

    def figures(self, counts: Counts, sd: float, of: ReleasedCounts) -> dict[str, Any]:
        error = share(float(counts[1]), float(counts[0]), sd)
        return {"figures": {MAE.name: error and error.times(_largest_error(of))}}


class Squares(CellTable):
    """What R^2 takes: (2, 3). Of each record first what is left of it, and its squared error. Then
    u^2, u - u^2 and 1 - u, where u from 0 to 1 is its place in the range: sums of u and u^2 follow.

    Each row is a block of shares that add up to 1, so a record moves the table by sqrt(2) at most.
    """

    holds, draw = "squares", "squares"

    def shape(self, model: MeasuredModel) -> Shape:
        return (2, 3)

    def blocks(self, model: MeasuredModel) -> int:
        return 2

    def places(self, model: MeasuredModel, data: Data) -> CellWeights:
        errors = _number_scorer(model).errors(model.weights, data.features, data.labels) ** 2
        u = place_in_range(np.maximum(data.labels, 0))
        shares = [[1.0 - errors, errors, np.zeros(len(u))], [u**2, u - u**2, 1.0 - u]]
        places = np.where(data.labels[:, None, None] >= 0, np.arange(3), -1)
        return np.broadcast_to(places, (len(u), 2, 3)), np.moveaxis(np.array(shares), 2, 0)

    def figures(self, counts: Counts, sd: float, of: ReleasedCounts) -> dict[str, Any]:
        assert of.range is not None, "what is predicted is a number"
        fields = _accuracy(counts[:1, :2], sd)
        share_of_range = _largest_error(of) / (of.range[1] - of.range[0])
        error = _rmse(fields, of)
        error["figures"][R2.name] = r_squared(counts, sd, share_of_range)
        return fields | error


def _largest_error(of: ReleasedCounts) -> float:
    """The largest error of a number that is counted."""
    assert of.most is not None, "what is predicted is a number"
    return of.most


def _rmse(fields: Mapping[str, Any], of: ReleasedCounts) -> dict[str, Any]:
    """The root mean squared error of a number, in its own units, and its range; nothing of
    classes."""
    if of.range is None:
        return {}
    error = root_mean_square(fields["accuracy"], fields["accuracy_sd"])
    return {"range": of.range, "figures": {RMSE.name: error and error.times(_largest_error(of))}}


def _right_or_wrong(model: MeasuredModel, data: Data, rows: NDArray[np.int64]) -> CellWeights:
    """Each record in its own row of a table of right and wrong; a row below 0 is none."""
    right = model.scorer.shares(model.weights, data.features, data.labels)
    places = np.where(rows[:, None] >= 0, 2 * rows[:, None] + [0, 1], -1)
    shares = np.stack([right, model.scorer.full - right], axis=1)
    return places[:, None], shares[:, None]


def _accuracy(rows: Counts, sd: float) -> dict[str, Any]:
    """The accuracy and its deviation, from noised counts alone: with both of them, the part's true
    size is needed nowhere.

    Args:
        rows: (rows, 2), counts of right and wrong.
        sd: of the noise in each.
    """
    correct, wrong = (float(count) for count in rows.sum(axis=0))
    total, summed = max(correct + wrong, 1.0), sd * math.sqrt(len(rows))
    accuracy = share_of(correct, total, summed)
    return {
        "accuracy": accuracy.value,
        "accuracy_sd": accuracy.sd,
        "correct": correct,
        "total": total,
        "sd": summed,
        "noised": sd > 0,
    }


def _rows(names: tuple[str, ...], rows: Counts, sd: float) -> tuple[ClassTested, ...]:
    """What a test says of each class or group by itself."""
    shares = [share(float(right), float(wrong), sd) for right, wrong in rows]
    return tuple(
        ClassTested(
            name,
            None if one is None else one.value,
            None if one is None else one.sd,
            float(right),
            float(wrong),
            sd,
        )
        for name, one, (right, wrong) in zip(names, shares, rows, strict=True)
    )


def worst(rows: tuple[ClassTested, ...]) -> WorstTested | None:
    """The group with the lowest share, by what noise shows; None where one of them cannot be told.
    Noise chooses it too, so its share is lower than the worst group's own on average
    (docs/data.md)."""
    known = [
        WorstTested(row.name, row.accuracy, row.accuracy_sd)
        for row in rows
        if row.accuracy is not None and row.accuracy_sd is not None
    ]
    return min(known, key=lambda row: row.value) if len(known) == len(rows) else None


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

    def places(self, model: MeasuredModel, data: Data) -> CellWeights:
        classes = model.constants.classes
        known = (data.labels >= 0) & (data.labels < classes)
        predicted = _class_scorer(model).predict(model.weights, data.features)
        return one_cell_each(np.where(known, data.labels * classes + predicted, -1))

    def figures(self, counts: Counts, sd: float, of: ReleasedCounts) -> dict[str, Any]:
        return {"confusion": Confusion(counts.tolist(), sd)}


# --- how well scores rank ---


class Scores(CellTable):
    """For each of two classes, how many records' scores lie in each bin: (2, bins).

    The score is how far the second logit is above the first. Bins are public: they follow from the
    released weights.
    """

    holds, draw = "scores", "scores"

    def shape(self, model: MeasuredModel) -> Shape:
        return (2, BINS)

    def places(self, model: MeasuredModel, data: Data) -> CellWeights:
        of = _class_scorer(model).of
        bins = edges(model.weights, model.constants, of)
        chunks = (slice(start, start + CHUNK) for start in range(0, len(data.features), CHUNK))
        each = [margin(model.weights, unaugmented(data.features, rows), of) for rows in chunks]
        scores = np.concatenate([np.empty(0), *each])
        known = (data.labels >= 0) & (data.labels < 2)
        bins_of_scores = np.searchsorted(bins, scores, side="right")
        return one_cell_each(np.where(known, data.labels * BINS + bins_of_scores, -1))


class ScoresByFinding(CellTable):
    """For each class, how many logits of records that lack it and have it lie in each bin:
    (classes, 2, bins)."""

    holds, draw = "scores_by_finding", "scores"

    def shape(self, model: MeasuredModel) -> Shape:
        return (model.constants.classes, 2, BINS)

    def blocks(self, model: MeasuredModel) -> int:
        return model.constants.classes

    def places(self, model: MeasuredModel, data: Data) -> CellWeights:
        scorer = _finding_scorer(model)
        bins = edges_of_each(model.weights, model.constants, scorer)
        logits = scorer.logits(model.weights, data.features)
        each = enumerate(states_by_finding(data.labels, logits.shape[1]))
        cells = [
            np.where(
                known,
                present * BINS + np.searchsorted(bins[place], logits[:, place], side="right"),
                -1,
            )
            for place, (present, known) in each
        ]
        return in_each_block(np.stack(cells, axis=1))


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
    with np.errstate(invalid="ignore"):  # whether a record overflows must show nowhere
        return np.asarray(logits[:, 1] - logits[:, 0], np.float64)


def edges(weights: Weights, constants: Constants, logits_of: Logits | None) -> NDArray[np.float64]:
    """Bins of the margin of two classes: their edges, in rising order. They follow from released
    weights and public random records."""
    return _bins(margin(weights, _probes(constants), logits_of))


def edges_of_each(
    weights: Weights, constants: Constants, scorer: FindingScorer
) -> NDArray[np.float64]:
    """Bins of each class's logit, which widen from where training started: (classes, edges)."""
    bias = sigmoid_bias(constants.classes)
    logits = scorer.of(weights, _probes(constants)) - bias
    return np.stack([_bins(scores) for scores in logits.T]) + bias


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

    def places(self, model: MeasuredModel, data: Data) -> CellWeights:
        sure, right, known = model.scorer.confidences(model.weights, data.features, data.labels)
        scaled = np.clip(np.nan_to_num(sure, nan=0.0), 0.0, 1.0) * CONFIDENCES
        bins = np.minimum(scaled.astype(np.int64), CONFIDENCES - 1)
        upper = scaled - bins
        cells = np.where(known, 4 * bins + 2 * ~right, -1)
        weight = known / np.maximum(known.sum(axis=1, keepdims=True), 1)
        places = np.concatenate([cells, np.where(known, cells + 1, -1)], axis=1)
        shares = np.concatenate([(1.0 - upper) * weight, upper * weight], axis=1)
        return places[:, None], shares[:, None]

    def figures(self, counts: Counts, sd: float, of: ReleasedCounts) -> dict[str, Any]:
        return {"reliability": tuple(_reliability(counts, sd))}


def _reliability(counts: Counts, sd: float) -> Iterator[ReliabilityBin]:
    """Each bin's mean confidence and share that is right, from noised counts; neither where noise
    hides how many there are."""
    for place, cells in enumerate(counts):
        lower, upper = place / len(counts), (place + 1) / len(counts)
        total, right = float(cells.sum()), float(cells[0].sum())
        if total <= detectable_count(sd, 4):
            yield ReliabilityBin(lower, upper, total, None, None)
            continue
        sure = float(cells[:, 0].sum() * lower + cells[:, 1].sum() * upper) / total
        accuracy = share_of(right, total, sd * math.sqrt(2.0))
        yield ReliabilityBin(lower, upper, total, min(max(sure, lower), upper), accuracy)


def _class_scorer(model: MeasuredModel) -> ClassScorer:
    assert isinstance(model.scorer, ClassScorer), "the config refuses this for other tasks"
    return model.scorer


def _number_scorer(model: MeasuredModel) -> NumberScorer:
    assert isinstance(model.scorer, NumberScorer), "the config refuses this for other tasks"
    return model.scorer


def _finding_scorer(model: MeasuredModel) -> FindingScorer:
    assert isinstance(model.scorer, FindingScorer), "the config refuses this for other tasks"
    return model.scorer


# --- measures ---

TABLES: Mapping[str, CellTable] = {
    table.holds: table
    for table in (
        RightAndWrong(),
        Squares(),
        AbsoluteErrors(),
        ByClass(),
        ByFinding(),
        Answers(),
        Scores(),
        ScoresByFinding(),
        ByGroup(),
        Confidence(),
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
    return tuple(TABLES[name] for name in evaluate_sections.tables_of(measures, findings, grouped))


def questions_of(
    tables: tuple[CellTable, ...], model: MeasuredModel, mu: float
) -> tuple[QueryCall, ...]:
    """What their release asks: a question for each table.

    Guarantee: mu-GDP together. Each of n has mu^2 / n, and mu^2 of Gaussians adds up (Dong, Roth &
    Su 2022, Corollary 3.3).

    Args:
        tables: one at least.
        model: the released model that is measured.
        mu: that all of them cost together.
    """
    return tuple(table.question(model, mu / math.sqrt(len(tables))) for table in tables)


def released(model: MeasuredModel, tables: Mapping[str, CountTable]) -> ReleasedCounts:
    """What a test puts out, as metrics.json has it.

    Args:
        model: the released model that is measured.
        tables: noised counts, by what they hold.
    """
    most = model.scorer.most if isinstance(model.scorer, LossScorer) else None
    number = None if model.target is None else model.target.range
    if model.target is not None:
        most = model.target.largest_error
    return ReleasedCounts(
        model.scorer.task, model.classes, dict(tables), model.groups, most, number
    )


def exact(measures: Measures, model: MeasuredModel, data: Data) -> ReleasedCounts:
    """The counts themselves: of records that are declared public alone."""
    tables = tables_of(measures, model)
    sums = {one.holds: sum_of(one.question(model), data, model.constants) for one in tables}
    return released(model, {holds: CountTable(sums[holds].tolist(), 0.0) for holds in sums})


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
    for holds, table in TABLES.items():
        if holds in arrays:
            of_table = table.figures(*arrays[holds], released)
            figures |= of_table.get("figures", {})
            fields = of_table | fields
    fields["figures"] = figures_of(arrays) | figures
    return Tested(**fields)
