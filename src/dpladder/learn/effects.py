"""How each column of a table moves the predictions of a linear head, and how much of that is noise.

Where rows keep their lengths, a logit is a sum over columns, so each column has a curve of its own,
or a bar for each level. All follows from released weights and public figures: it is post-processing
and free.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from dpladder.config.curves import LINE, Curves, place_in_column, width_of, width_of_block
from dpladder.config.dataset_sections import Chosen, Column, NumberTarget
from dpladder.config.label_sets import MANY, Labels
from dpladder.learn.interface import Weights
from dpladder.privacy.arrays import Floats, with_curves
from dpladder.section import from_document

POINTS = 33  # of a curve, beside its knots
ODDS = "log-odds"  # the unit of what moves a class's prediction


@dataclass(frozen=True)
class Effect:
    """How a column, or a cross of two, moves a prediction over its declared range.

    Attributes:
        columns: its name, or the two names of a cross.
        at: for each of them the numbers or the levels at which the effect is told.
        values: of each class the effect at these places, of a cross row by row: in log-odds, or of
            a number in its own unit. Its mean over the places is 0.
        sd: at each place, the deviation of the training's noise in it; empty where that has none.
        spread: the largest value less the smallest, of the class that it moves most.
    """

    columns: tuple[str, ...]
    at: tuple[tuple[float | str, ...], ...]
    values: tuple[tuple[float, ...], ...]
    sd: tuple[float, ...]
    spread: float


@dataclass(frozen=True)
class Effects:
    """What a released model is the sum of.

    Attributes:
        of: the names of what `values` are of: a number, a class or several.
        unit: of the values, in words.
        each: columns and crosses, those first that move predictions most.
    """

    of: tuple[str, ...]
    unit: str
    each: tuple[Effect, ...]


@dataclass(frozen=True, eq=False)
class Additive:
    """A linear head of a table whose rows keep their lengths.

    Attributes:
        weights: float64 (classes, features), without a bias.
        columns: of the table, in order.
        curves: the blocks of features behind the table's own.
        noise: sd of the training's noise in each weight; None where it has no one such figure.
        scale: what a number is longer than its place, -1 to 1; None where there are classes.
        classes: names of classes, or of the number.
        findings: whether each class is told by itself.
    """

    weights: Floats
    columns: tuple[Chosen, ...]
    curves: Curves
    noise: float | None
    scale: float | None
    classes: tuple[str, ...]
    findings: bool

    @property
    def sums(self) -> Floats:
        """The sums of weights that are shown, (outputs, classes): the number itself, or of two
        classes the log-odds of the second, of more each class's logit less their mean."""
        classes = len(self.weights)
        if self.scale is not None:
            return np.array([[self.scale]])
        if self.findings:
            return np.eye(classes)
        return np.array([[-1.0, 1.0]]) if classes == 2 else np.eye(classes) - 1.0 / classes

    @property
    def outputs(self) -> tuple[str, ...]:
        """What each of these sums is of: the number, the second class of two, or each class."""
        return self.classes[-len(self.sums) :]

    @property
    def spans(self) -> list[tuple[int, int]]:
        """Of each column its first number in a row, and the one behind its last."""
        ends = np.cumsum([width_of(column) for column in self.columns]).tolist()
        return [(end - width_of(one), end) for one, end in zip(self.columns, ends, strict=True)]

    def members(self) -> list[tuple[tuple[int, ...], list[int]]]:
        """The columns, and the crosses of two, each with the places of its features."""
        spans = self.spans
        stored = spans[-1][1]
        by_columns: dict[tuple[int, ...], list[int]] = {
            (place,): [*range(*span)] for place, span in enumerate(spans)
        }
        for bases in self.curves:
            width = width_of_block(bases)
            who = tuple(next(k for k, (a, b) in enumerate(spans) if a <= at < b) for at, _ in bases)
            by_columns.setdefault(who, []).extend(range(stored, stored + width))
            stored += width
        return [*by_columns.items()]

    def effects(self) -> Effects:
        """All columns and crosses, those first that move predictions most."""
        every = [self._effect(who, features) for who, features in self.members()]
        ordered = tuple(sorted(every, key=lambda one: -one.spread))
        unit = ODDS if self.scale is None else "its own unit"
        return Effects(self.outputs, unit, ordered)

    def terms(self, rows: Floats, mean: Floats | None) -> dict[str, Floats]:
        """What each column adds to each record's prediction, less its mean over the range.

        Args:
            rows: as they are stored.
            mean: that rows lose; None where they lose none.

        Returns:
            (records, outputs) by the column's name, or both names of a cross.
        """
        seen = with_curves(np.asarray(rows, np.float64), self.curves)
        if mean is not None:
            seen = seen - mean
        terms = {}
        for who, features in self.members():
            centre = self._grid(who)[:, features].mean(axis=0)
            if mean is not None:
                centre = centre - mean[features]
            moved = (seen[:, features] - centre) @ self.weights[:, features].T @ self.sums.T
            terms[self.name_of(who)] = moved
        return terms

    def project(self, directions: Mapping[str, str]) -> None:
        """Make the curves of some columns rise or fall, in place: of all that do, the nearest ones
        by their values at the knots.

        Args:
            directions: `up` or `down`, by column.
        """
        from scipy.optimize import isotonic_regression  # slow to load, and rarely needed

        knots = {bases[0][0]: bases[0][1] for bases in self.curves if len(bases) == 1}
        back = self.sums.T / (self.sums[0] @ self.sums[0])  # from what is shown to classes
        for who, features in self.members():
            name = self.name_of(who)
            if len(who) > 1 or name not in directions:
                continue
            number, hats = features[0], features[width_of(self.columns[who[0]]) :]
            at = np.array(knots.get(number, LINE))
            line = self.weights[:, [number]] * at
            values = self.sums @ (line + self.weights[:, hats] if hats else line)
            increasing = directions[name] == "up"
            nearest = [isotonic_regression(one, increasing=increasing).x for one in values]
            change = back @ (np.stack(nearest) - values)
            if hats:
                self.weights[:, hats] += change
            else:
                self.weights[:, number] += change[:, -1]

    def name_of(self, who: tuple[int, ...]) -> str:
        """A column's name, or both names of a cross."""
        return " x ".join(self._name(place) for place in who)

    def _effect(self, who: tuple[int, ...], features: list[int]) -> Effect:
        places = [[*self._places(place)] for place in who]
        seen = self._grid(who)[:, features]
        seen -= seen.mean(axis=0)
        values = self.sums @ self.weights[:, features] @ seen.T
        lengths = np.sqrt((seen**2).sum(axis=1))
        sd = () if self.noise is None else self.noise * np.linalg.norm(self.sums[0]) * lengths
        return Effect(
            tuple(self._name(place) for place in who),
            tuple(tuple(at for at, _ in one) for one in places),
            tuple(tuple(map(float, one)) for one in values),
            tuple(map(float, sd)),
            float(np.ptp(values, axis=1).max()),
        )

    def _grid(self, who: tuple[int, ...]) -> Floats:
        """Rows at all places of a column, or of a cross row by row: all other columns are 0."""
        places = [[*self._places(place)] for place in who]
        rows = np.zeros((math.prod(map(len, places)), self.spans[-1][1]))
        for row, cells in zip(rows, product(*places), strict=True):
            for place, (_, numbers) in zip(who, cells, strict=True):
                row[slice(*self.spans[place])] = numbers
        grid: Floats = with_curves(rows, self.curves)
        return grid

    def _name(self, place: int) -> str:
        column = self.columns[place]
        return column if isinstance(column, str) else column.name

    def _places(self, place: int) -> Iterator[tuple[float | str, Floats]]:
        """Where a column's effect is told, and its numbers in a row there."""
        column = self.columns[place]
        assert not isinstance(column, str), "rows that keep their lengths have bounded columns"
        if column.levels:
            yield from zip(column.levels, np.eye(len(column.levels)), strict=True)
            return
        assert column.range is not None
        low, high = column.range
        if column.scale == "log":
            one_more = low == 0
            ends = np.geomspace(low + one_more, high + one_more, POINTS) - one_more
        else:
            ends = np.linspace(low, high, POINTS)
        knots = column.knots if isinstance(column.knots, tuple) else ()
        for number in sorted({*ends.clip(low, high).tolist(), *knots}):
            yield number, np.array([place_in_column(column, number), *[0.0] * column.mark_missing])


def effects_of(weights: Sequence[Any], facts: Mapping[str, Any]) -> Additive | None:
    """The sum over columns that a released model is; None where it is none.

    The noise in a weight is kappa over the length that kappa is of: it is the sd in a logit of a
    record of that length (docs/laws.md). As there, later steps correct none of it, so a band is
    rather too wide than too narrow. What made margins as sure as they are right scales it too.

    Args:
        weights: of a model's file.
        facts: all that the file says of itself.
    """
    inference, config = facts.get("inference", {}), facts.get("config", {})
    mapped = inference.get("map", {})
    columns: tuple[Chosen, ...] = tuple(
        column if isinstance(column, str) else from_document(Column, column)
        for column in inference.get("columns", ())
    )
    curves: Curves = mapped.get("curves", ())
    if len(weights) != 1 or not columns or mapped.get("length") is not None:
        return None
    if any(isinstance(one, str) or not (one.levels or one.range) for one in columns):
        return None
    marked = sum(one.mark_missing for one in columns if isinstance(one, Column))
    longest = math.sqrt(len(columns) + marked + len(curves))  # of each block one part is 1 at most
    if (mapped.get("radius") or longest) < longest:
        return None
    width = with_curves(np.zeros((1, sum(map(width_of, columns)))), curves).shape[1]
    ends, kappa = inference.get("range"), facts.get("kappa")
    isotropic = config.get("learner", {}).get("name") == "dp_gd"
    slope = facts.get("calibration", {}).get("slope", 1.0)
    return Additive(
        np.asarray(weights[0], np.float64)[:, :width],
        columns,
        curves,
        slope * kappa / config["features.typical"] if kappa and isotropic else None,
        None if ends is None else (ends[1] - ends[0]) / 2,
        tuple(inference["classes"]),
        config.get("dataset.labels") == MANY,
    )


def with_monotone(
    weights: Sequence[Any],
    columns: Sequence[Chosen],
    curves: Curves,
    directions: Mapping[str, str],
    target: NumberTarget | None,
    labels: Labels,
) -> Weights:
    """A linear head whose curves of some columns only rise or only fall. It is post-processing.

    Args:
        weights: released; the plan refused what is no sum over columns (plan/curves.py).
        columns, curves: of the table.
        directions: `up` or `down`, by column.
        target: the number that is predicted; None where classes are.
        labels: as `dataset.labels` has it.
    """
    head = np.array(weights[0], np.float64)
    scale = None if target is None else 1.0
    Additive(head, (*columns,), curves, None, scale, (), labels == MANY).project(directions)
    return (head.astype(np.float32),)
