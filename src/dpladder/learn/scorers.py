"""What a model's task is: one object a task, which says what a record counts.

Whatever the task, a record counts a share from 0 to 1, and one without a valid label counts
nothing. A score is the noised sum of these shares. A unit moves it as far as it moves a count.

- `ClassScorer`: a record is right or wrong, by the class with the largest logit.
- `FindingScorer`: a record may be right about some of its findings and wrong about others. It
  counts one less the mean of (p - y)^2 over its known classes (Brier 1950). Findings are rare, so
  nearly all p are below 1/2. A model that says no to all of them would have as many right as one
  that ranks well.
- `LossScorer`: a language model predicts no class. A record counts how much less than the public
  bound its loss is, as a share of the bound. That is 0 where the loss is the bound or more.
- `NumberScorer`: a model predicts a number. A record counts one less the square of how far off that
  is, as a share of the range.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dpladder.config.label_sets import has_label, place_in_range, states_by_finding
from dpladder.learn.data import unaugmented
from dpladder.learn.interface import Logits, Weights
from dpladder.learn.score import (
    CHUNK,
    place_of_logit,
    position_independent_logits,
    row_by_row_logits,
    sigmoid,
    softmax,
)

Confidences = tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]
"""How sure a model is of each of its statements about a record, whether it is true, and whether
that is known: (records, statements) each."""
TaskName = Literal["classes", "findings", "losses", "numbers"]
# What a record without any loss counts: the rest pays for float32 inside the network (descent.py).
FULL = 1.0 - 2.0**-10
WIDE = 32  # linear heads whose logits are computed in one pass


class Scorer:
    """What one task counts of each record. Everything here is private until noise is added.

    Attributes:
        task: its name.
        full: what a record's right and wrong shares add up to.
    """

    task: ClassVar[TaskName]
    full: ClassVar[float] = 1.0

    def shares(
        self, weights: Weights, features: NDArray[Any], labels: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """What each record counts, from 0 to `full`: float64 (records,).

        Args:
            weights: released ones.
            features: (records, dimension), or (records, views, dimension), of which the first view
                counts.
            labels: (records,); below 0 a record counts nothing.
        """
        raise NotImplementedError

    def shares_by_model(
        self, models: Sequence[Weights], features: NDArray[Any], labels: NDArray[np.int64]
    ) -> Iterator[NDArray[np.float64]]:
        """Shares by each of several models: (models, records), for some records at a time."""
        yield np.stack([self.shares(weights, features, labels) for weights in models])

    def confidences(
        self, weights: Weights, features: NDArray[Any], labels: NDArray[np.int64]
    ) -> Confidences:
        """How sure the model is of each of its predictions, whether that is right, and whether that
        is known: (records, predictions) each."""
        raise NotImplementedError

    def probabilities(self, logits: NDArray[np.float64]) -> NDArray[np.float64]:
        """What a prediction looks like: a row for each record, a column for each class."""
        return softmax(logits)


@dataclass(frozen=True)
class ClassScorer(Scorer):
    """A record counts 1 where the class with the largest logit is one of its own.

    Attributes:
        of: logits, where weights are no layers of a perceptron.
    """

    of: Logits | None = None
    task: ClassVar[TaskName] = "classes"

    def predict(self, weights: Weights, features: NDArray[Any]) -> NDArray[np.int64]:
        """The class with the largest logit of each record as it is, without the other views that
        trainings may see."""
        chosen = [logits.argmax(axis=1) for logits in self._logits(weights, features)]
        return np.concatenate([np.empty(0, np.int64), *chosen])

    def shares(
        self, weights: Weights, features: NDArray[Any], labels: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """1 where the prediction is a class of the record."""
        chunks = (labels[rows] for rows in _chunks(labels))
        right = [
            has_label(part, logits.argmax(axis=1), logits.shape[1])
            for logits, part in zip(self._logits(weights, features), chunks, strict=True)
        ]
        return np.concatenate([np.empty(0, np.bool_), *right]).astype(np.float64)

    def confidences(
        self, weights: Weights, features: NDArray[Any], labels: NDArray[np.int64]
    ) -> Confidences:
        """The probability of the class with the largest logit. Its last bit may put a record into
        another bin, so logits are told by themselves."""
        right = self.shares(weights, features, labels) > 0
        of = self.of or row_by_row_logits
        parts = (of(weights, unaugmented(features, rows)) for rows in _chunks(features))
        with np.errstate(over="ignore", invalid="ignore"):
            sure = [softmax(logits).max(axis=1) for logits in parts]
        each = np.concatenate([np.empty(0), *sure])
        return each[:, None], right[:, None], labels[:, None] >= 0

    def log_odds(
        self, weights: Weights, features: NDArray[Any], labels: NDArray[np.int64]
    ) -> Confidences:
        """The log-odds of the second of two classes; of more, that the named one is right."""
        of = self.of or row_by_row_logits
        odds, true = [np.empty(0)], [np.empty(0, np.bool_)]
        for rows in _chunks(features):
            logits = of(weights, unaugmented(features, rows))
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                two = logits.shape[1] == 2
                place = np.ones(len(logits), np.int64) if two else logits.argmax(axis=1)
                logit = np.take_along_axis(logits, place[:, None], axis=1)
                rivals = np.exp(logits - logit)
                np.put_along_axis(rivals, place[:, None], 0.0, axis=1)
                odds.append(-np.log(rivals.sum(axis=1)))
            true.append(has_label(labels[rows], place, logits.shape[1]))
        return np.concatenate(odds)[:, None], np.concatenate(true)[:, None], labels[:, None] >= 0

    def shares_by_model(
        self, models: Sequence[Weights], features: NDArray[Any], labels: NDArray[np.int64]
    ) -> Iterator[NDArray[np.float64]]:
        """The logits of several linear heads come from one product."""
        if self.of is not None or any(len(weights) > 1 for weights in models):
            yield from super().shares_by_model(models, features, labels)
            return
        for rows in _chunks(labels):
            records, right = unaugmented(features, rows), []
            for place in range(0, len(models), WIDE):
                layers = [layer for (layer,) in models[place : place + WIDE]]
                stacked = (np.concatenate(layers),)
                logits = position_independent_logits(stacked, records, len(layers))
                each = logits.reshape(len(logits), len(layers), -1)
                right.append(has_label(labels[rows, None], each.argmax(axis=2), each.shape[2]).T)
            yield np.concatenate(right).astype(np.float64)

    def _logits(self, weights: Weights, features: NDArray[Any]) -> Iterator[NDArray[np.float64]]:
        of = self.of or position_independent_logits
        return (of(weights, unaugmented(features, rows)) for rows in _chunks(features))


@dataclass(frozen=True)
class FindingScorer(Scorer):
    """A record counts one less the Brier score over its known findings.

    Attributes:
        of: a logit of each class by itself, above zero where the class is more likely present than
            not.
    """

    of: Logits
    task: ClassVar[TaskName] = "findings"
    full: ClassVar[float] = FULL

    def logits(self, weights: Weights, features: NDArray[Any]) -> NDArray[np.float64]:
        """A logit of each class, of all records: float64 (records, classes)."""
        classes = weights[-1].shape[0]
        batches = (self.of(weights, unaugmented(features, rows)) for rows in _chunks(features))
        return np.concatenate([np.empty((0, classes)), *batches])

    def shares(
        self, weights: Weights, features: NDArray[Any], labels: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        return shares_of_findings(self.logits(weights, features), labels)

    def confidences(
        self, weights: Weights, features: NDArray[Any], labels: NDArray[np.int64]
    ) -> Confidences:
        """The probability of each class's being there, or not, whichever is larger."""
        odds, present, known = self.log_odds(weights, features, labels)
        there = sigmoid(odds)
        return np.maximum(there, 1.0 - there), (there > 0.5) == present, known

    def log_odds(
        self, weights: Weights, features: NDArray[Any], labels: NDArray[np.int64]
    ) -> Confidences:
        """The log-odds of each class's being there."""
        logits = np.nan_to_num(self.logits(weights, features))
        states = [*states_by_finding(labels, logits.shape[1])]
        present, known = (np.stack(both, axis=1) for both in zip(*states, strict=True))
        return logits, present, known

    def probabilities(self, logits: NDArray[np.float64]) -> NDArray[np.float64]:
        return sigmoid(logits)


@dataclass(frozen=True)
class LossScorer(Scorer):
    """A record counts how far its loss is below a public bound, as a share of the bound.

    Attributes:
        of: how wrong the model is about each record, whatever that comes to.
        most: the bound, above which a loss counts as that.
    """

    of: Logits
    most: float
    task: ClassVar[TaskName] = "losses"
    full: ClassVar[float] = FULL

    def shares(
        self, weights: Weights, features: NDArray[Any], labels: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        losses = [self.of(weights, unaugmented(features, rows)) for rows in _chunks(features)]
        return shares_of_losses(np.concatenate([np.empty(0), *losses]), self.most) * (labels >= 0)


@dataclass(frozen=True)
class NumberScorer(Scorer):
    """A record counts one less the squared error of its number, as a share of the public range."""

    task: ClassVar[TaskName] = "numbers"

    def errors(
        self, weights: Weights, features: NDArray[Any], labels: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """How far each prediction is off, as a share of the range: 0 to 1, and 1 where a record has
        no number. Told by each record alone."""
        parts = (
            row_by_row_logits(weights, unaugmented(features, rows)) for rows in _chunks(labels)
        )
        said = np.concatenate([np.empty((0, 1)), *parts])[:, 0]
        off = np.abs(place_of_logit(said) - place_in_range(labels))
        return np.where(labels >= 0, np.clip(off, 0.0, 1.0), 1.0)

    def shares(
        self, weights: Weights, features: NDArray[Any], labels: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        return 1.0 - self.errors(weights, features, labels) ** 2


def shares_of_losses(losses: NDArray[np.float64], most: float) -> NDArray[np.float64]:
    """What each record counts, from 0 to FULL, whatever its loss is; nothing where it has none."""
    cut = np.clip(np.nan_to_num(losses, nan=most, posinf=most, neginf=0.0), 0.0, most)
    return FULL * (1.0 - cut / most)


def shares_of_findings(
    logits: NDArray[np.float64], labels: NDArray[np.int64]
) -> NDArray[np.float64]:
    """What each record counts, from 0 to FULL, whatever its logits are; nothing where nothing is
    known of it."""
    wrong, known = np.zeros(len(labels)), np.zeros(len(labels))
    for place, (present, is_known) in enumerate(states_by_finding(labels, logits.shape[1])):
        wrong += is_known * (sigmoid(np.nan_to_num(logits[:, place])) - present) ** 2
        known += is_known
    return np.asarray(FULL * (known > 0) * (1.0 - wrong / np.maximum(known, 1)), np.float64)


def _chunks(records: NDArray[Any]) -> Iterator[slice]:
    for start in range(0, len(records), CHUNK):
        yield slice(start, start + CHUNK)
