"""Calibrated margins: what a final model says of its own sureness, put right.

A descent whose gradients are clipped far below a record's length goes on pushing a record until its
probability is nearly 0 or 1, whatever share of such records is right. So margins are several times
too large (docs/models.md). Two things mend that, both on released weights:

- **A slope by a public law** costs nothing and moves no answer. It was fitted on public data
  (`tests/benchmarks/bench_calibration.py`).
- **A map that is bought** (`final.calibrate`): one noised histogram of the training part's margins,
  right and wrong apart. Slope and intercept that fit it best follow for nothing. This is Platt's
  scaling (Platt 1999) of noised counts; Zhang et al. 2022, arXiv 2210.08248, buy its gradients.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpladder.config.label_sets import MANY
from dpladder.config.learner_sections import Descending
from dpladder.config.learners import Learner, method
from dpladder.errors import BadInput
from dpladder.learn.counts import CellWeights, ask
from dpladder.learn.data import Data
from dpladder.learn.interface import Constants, Declaration, Shape, Weights, sigmoid_bias
from dpladder.learn.measures.tables import Bought, CellTable, MeasuredModel
from dpladder.learn.queries import declared
from dpladder.learn.scorers import ClassScorer, FindingScorer
from dpladder.learn.trainings import scorer_of, weights_of
from dpladder.privacy.arrays import Floats
from dpladder.privacy.release.meter import Meter

USUAL = 32.0 * math.sqrt(2.0)  # a gradient's length over its clip, where the law was fitted
STRENGTH = 1000.0  # n0 mu at which a slope is the root of how many classes there are
EASIER = 0.15  # how much the root is less, by the logarithm of n0 mu
WEAKEST = 200.0  # n0 mu below which it stays: features of weak trainings have no mean taken away
WEAKER = 0.2  # how much less clips matter, by the same below STRENGTH
# knots of signed log-odds, and of the log-odds that the named one of several classes is right
SIGNED = (-5.0, -3.0, -1.5, -0.5, 0.5, 1.5, 3.0, 5.0)
ABOVE_EVEN = (0.0, 1.0, 2.0, 3.5, 5.5)
SLOPES = np.exp(np.linspace(math.log(0.1), math.log(6.0), 50))
INTERCEPTS = np.linspace(-3.0, 3.0, 61)
# Gaussian priors of a slope's logarithm about the law's, and of an intercept
SLOPE_SD, INTERCEPT_SD = 0.5, 0.7
# deviations of its own noise by which a map must be better than the law's, for each of its numbers:
# of more maps the best one is better by more noise
SURE = 1.0


@dataclass(frozen=True)
class Calibration:
    """How a model's margins were put right; its file says so.

    Attributes:
        slope: that the trained logits were multiplied by.
        intercept: that was added to log-odds afterwards: of the second of two classes, or of each
            finding.
        law: the part of the slope that the public law says.
        share: of the training's mu^2 that the map was bought for; None where the law stands alone.
    """

    slope: float
    intercept: float
    law: float
    share: float | None = None


def may_calibrate(learner: Learner, constants: Constants) -> bool:
    """Whether its logits are those of classes or findings, so that probabilities follow from them,
    and its weights are known to end in a head."""
    head = getattr(weights_of(learner), "turn_head", None)
    classes = isinstance(scorer_of(learner, constants), ClassScorer | FindingScorer)
    return head is not None and classes and constants.classes > 1


def slope_by_law(learner: Learner, constants: Constants, mu: float) -> float:
    """What trained logits are multiplied by, by public figures alone.

    For two classes it is the method's `slope`. It grows with the root of how many classes there
    are, for fewer records lie between any two of them. The less is clipped, the surer a margin may
    be, up to a slope of 1; each of a unit's records has its part of the clip. Where a training is
    weak that matters less.

    Args:
        learner: its section in the config.
        constants: public sizes.
        mu: of the training.

    Returns:
        Above 0, and 1 at most; 1 where nothing was measured of such a training.
    """
    base, findings = method(learner.name).slope, constants.labels == MANY
    if (
        base is None
        or not isinstance(learner, Descending)
        or not may_calibrate(learner, constants)
        or learner.starts_from_public_head
        or findings != (learner.link == "sigmoid")
    ):
        return 1.0
    strength = constants.n0 * mu / (2.0 if constants.relation == "replace_one" else 1.0)
    pairs = (constants.classes + 8 * findings) / 2.0
    slope = base * pairs ** (0.5 - EASIER * math.log(max(strength, WEAKEST) / STRENGTH))
    length = math.sqrt(2.0 * constants.cap) * constants.length / learner.clip
    clipped = math.log(max(length, 1.0)) / math.log(USUAL)
    weak = min(WEAKER * max(math.log(STRENGTH / strength), 0.0), 1.0)
    return float(min(max(slope, base), 1.0) ** (clipped + weak * (1.0 - clipped)))


class Margins(CellTable):
    """How sure a model is of each record, and how that comes out: (no and yes, knots).

    Of two classes, what is told is the log-odds of the second one, and of findings that of each.
    Of more classes it is the log-odds that the named one is right. A record is shared out between
    the two knots about its log-odds, so that their mean is its own. Each finding that is known has
    an even part of its record.
    """

    holds, draw = "margins", "margins"

    def shape(self, model: MeasuredModel) -> Shape:
        return (2, len(knots(model.constants)))

    def places(self, model: MeasuredModel, data: Data, bought: Bought) -> CellWeights:
        scorer, places = model.scorer, knots(model.constants)
        assert isinstance(scorer, ClassScorer | FindingScorer), "refused for other tasks"
        odds, true, known = scorer.log_odds(model.weights, data.features, data.labels)
        inside = np.clip(np.nan_to_num(odds), places[0], places[-1])
        lower = np.clip(np.searchsorted(places, inside, side="right") - 1, 0, len(places) - 2)
        upper = (inside - places[lower]) / np.diff(places)[lower]
        weight = known / np.maximum(known.sum(axis=1, keepdims=True), 1)
        cells = np.where(known, true * len(places) + lower, -1)
        cells = np.concatenate([cells, np.where(known, cells + 1, -1)], axis=1)
        shares = np.concatenate([(1.0 - upper) * weight, upper * weight], axis=1)
        return cells[:, None], shares[:, None]


def knots(constants: Constants) -> Floats:
    """Where log-odds are counted: about 0, or from what knowing nothing of several classes is."""
    if constants.labels == MANY or constants.classes == 2:
        return np.array(SIGNED)
    least = math.log(constants.classes - 1)
    return np.array([-least, -least / 2.0, *ABOVE_EVEN])


def fit_map(counts: Floats, sd: float, constants: Constants, shifts: bool) -> tuple[float, float]:
    """The slope and the intercept of log-odds that noised counts tell; 1 and 0 where they tell
    nothing. Free: counts are released.

    The best of a grid by the log-likelihood of the counts, under Gaussian priors about the law. A
    map's gain over the law is a sum of noised counts times public numbers, so its noise is known,
    and `SURE` deviations of it are taken off for each number of the map.

    Args:
        counts: noised, as `Margins` has them.
        sd: of the noise in each.
        constants: public sizes.
        shifts: whether there may be an intercept.
    """
    places, several = knots(constants), constants.labels != MANY and constants.classes > 2
    numbers = 2 if shifts and not several else 1
    offsets = INTERCEPTS if numbers == 2 else np.zeros(1)
    # Of several classes the named one has about the root of all others as rivals: that is between
    # one rival and all of them. Where it is hardly named, all of them are.
    half = math.log(constants.classes - 1) / 2.0 if several else 0.0
    rivals = np.where(places <= -half, 2.0 * half, half)
    slopes, intercepts = (grid.ravel() for grid in np.meshgrid(SLOPES, offsets, indexing="ij"))
    odds = slopes[:, None] * (places + rivals) - rivals + intercepts[:, None]
    better = _log_likelihood(odds) - _log_likelihood(places[None])
    gain = (better * counts).sum(axis=(1, 2))
    noise = sd * np.sqrt((better**2).sum(axis=(1, 2)))
    prior = (np.log(slopes) / SLOPE_SD) ** 2 / 2 + (intercepts / INTERCEPT_SD) ** 2 / 2
    worth = gain - SURE * numbers * noise - prior
    best = int(np.argmax(worth))
    return (float(slopes[best]), float(intercepts[best])) if worth[best] > 0.0 else (1.0, 0.0)


def _log_likelihood(odds: Floats) -> Floats:
    """Of no and yes at each place: (maps, 2, places)."""
    return np.stack([-np.logaddexp(0.0, odds), -np.logaddexp(0.0, -odds)], axis=1)


@dataclass(frozen=True, eq=False)
class Calibrating:
    """A calibration that is settled: what it will ask and cost. Nothing was read for it.

    Args:
        learner: its section in the config.
        constants: public sizes.
        mu: of the training.
        bought: what the map may cost; None where the law stands alone.
        share: of the training's mu^2 that this is.
    """

    learner: Learner
    constants: Constants
    mu: float
    bought: float | None = None
    share: float | None = None

    @property
    def declared(self) -> Declaration:
        """Its one event and draw; nothing where the law stands alone.

        Raises:
            BadInput: the draw would be paid for and never made, for no map can be applied.
        """
        if self.bought is None:
            return Declaration(())
        if not may_calibrate(self.learner, self.constants):
            raise BadInput(
                f"final.calibrate buys a map of margins, and what {self.learner.name} trains has "
                "no head that takes one. Nothing was spent. Set final.calibrate: null."
            )
        query = Margins().query(self._model(()), self.bought)
        return declared([query], self.constants)

    def run(self, weights: Weights, data: Data, meter: Meter) -> tuple[Weights, Calibration]:
        """Weights whose margins are put right, and how.

        Guarantee: mu-GDP for what is bought, by one noised histogram; the law costs nothing.

        Args:
            weights: as they were trained; released.
            data: the records of the training.
            meter: its noise.
        """
        if not may_calibrate(self.learner, self.constants):
            return weights, Calibration(1.0, 0.0, 1.0)
        law = slope_by_law(self.learner, self.constants, self.mu)
        turned = self._turned(weights, law, 0.0)
        if self.bought is None:
            return turned, Calibration(law, 0.0, law)
        question = Margins().question(self._model(turned), self.bought)
        counts = ask(question, data, self.constants, meter)
        sd = question.query.scale(self.constants)
        shifts = not self.learner.above_cut or self.learner.constant_feature
        slope, intercept = fit_map(counts, sd, self.constants, shifts)
        turned = self._turned(turned, slope, intercept)
        return turned, Calibration(law * slope, intercept, law, self.share)

    def _model(self, weights: Weights) -> MeasuredModel:
        scorer = scorer_of(self.learner, self.constants)
        return MeasuredModel(weights, scorer, self.constants, ())

    def _turned(self, weights: Weights, slope: float, intercept: float) -> Weights:
        """Of findings the public bias is a part of what is turned."""
        classes, findings = self.constants.classes, self.constants.labels == MANY
        shifts = np.zeros(classes)
        if findings:
            bias = sigmoid_bias(classes)
            shifts += (slope - 1.0) * bias + intercept
        elif classes == 2:
            shifts[1] = intercept
        turn: Any = weights_of(self.learner).turn_head
        turned: Weights = turn(self.learner, self.constants, weights, slope, shifts)
        return turned
