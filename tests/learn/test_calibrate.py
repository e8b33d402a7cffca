"""Margins that are put right: the law, the noised histogram, the map that it tells, and weights
that carry both."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import expit, log_softmax
from scipy.stats import beta

from dpladder.config.label_sets import MANY, number_of_findings
from dpladder.config.learners import learner_of
from dpladder.errors import BadInput
from dpladder.learn import layers, score
from dpladder.learn.counts import sum_of
from dpladder.learn.data import Data
from dpladder.learn.interface import Constants, sigmoid_bias
from dpladder.learn.layers import turn_head
from dpladder.learn.measures import calibrate
from dpladder.learn.measures.calibrate import (
    Calibrating,
    Margins,
    fit_map,
    knots,
    slope_by_law,
)
from dpladder.learn.measures.tables import MeasuredModel
from dpladder.learn.scorers import ClassScorer
from dpladder.learn.trainings import scorer_of

TWO = Constants(4000, 2, 5, length=32.0)
GD = learner_of({"name": "dp_gd"})
SIGMOID = learner_of({"name": "dp_gd", "link": "sigmoid"})


def drawn(slope: float, intercept: float, count: int, seed: int = 0) -> Data:
    """Records whose one feature is a margin, and labels by the log-odds that it stands for."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(count, 1)) * 3.0
    labels = random.random(count) < expit(slope * x[:, 0] + intercept)
    return Data(x.astype(np.float32), labels.astype(np.int64))


def counted(data: Data, constants: Constants, weights: np.ndarray) -> np.ndarray:
    """The histogram without noise."""
    scorer = ClassScorer()
    model = MeasuredModel((weights,), scorer, constants, ())
    return sum_of(Margins().question(model), data, constants)


IDENTITY = np.array([[0.0], [1.0]], np.float32)


@pytest.mark.parametrize(("slope", "intercept"), [(1.0, 0.0), (0.4, 0.0), (1.5, -1.0), (0.7, 1.2)])
def test_the_map_of_exact_counts_is_the_one_that_labels_were_drawn_by(
    slope: float, intercept: float
) -> None:
    one = replace(TWO, dimension=1)
    counts = counted(drawn(slope, intercept, 40_000), one, IDENTITY)
    found = fit_map(counts, 0.0, one, shifts=True)
    assert found == pytest.approx((slope, intercept), abs=0.12)


def test_a_map_of_noise_alone_is_mostly_the_laws() -> None:
    """A map must gain two deviations of its own noise, and is the best of many. So fewer than one
    in four histograms of noise alone is followed, surely (99.9 %)."""
    random = np.random.default_rng(0)
    noise = 1e4 * random.normal(size=(400, 2, len(knots(TWO))))
    followed = sum(fit_map(counts, 1e4, TWO, shifts=True) != (1.0, 0.0) for counts in noise)
    assert beta.ppf(0.999, followed + 1, 400 - followed) < 0.25


def test_shares_of_a_record_keep_its_log_odds_and_add_up_to_one() -> None:
    one = replace(TWO, dimension=1)
    data = drawn(1.0, 0.0, 500)
    counts, places = counted(data, one, IDENTITY), knots(one)
    assert counts.sum() == pytest.approx(500, abs=1e-6)
    inside = np.clip(data.features[:, 0], places[0], places[-1])
    assert counts @ places == pytest.approx(
        [inside[data.labels == label].sum() for label in (0, 1)], abs=1e-5
    )


def test_of_several_classes_the_histogram_says_how_often_the_named_one_is_right() -> None:
    random = np.random.default_rng(1)
    constants = replace(TWO, classes=4, dimension=4)
    logits = random.normal(size=(30_000, 4)) * 3.0
    right = log_softmax(0.5 * logits, axis=1)
    labels = (right + random.gumbel(size=right.shape)).argmax(axis=1)
    counts = counted(Data(logits.astype(np.float32), labels), constants, np.eye(4, dtype="f4"))
    slope, intercept = fit_map(counts, 0.0, constants, shifts=True)
    assert intercept == 0.0
    assert slope == pytest.approx(0.5, rel=0.2)


def test_margins_that_hardly_name_a_class_are_made_surer() -> None:
    random = np.random.default_rng(4)
    constants = replace(TWO, classes=10, dimension=10)
    logits = 0.5 * random.normal(size=(30_000, 10))
    right = log_softmax(4.0 * logits, axis=1)
    labels = (right + random.gumbel(size=right.shape)).argmax(axis=1)
    counts = counted(Data(logits.astype(np.float32), labels), constants, np.eye(10, dtype="f4"))
    assert fit_map(counts, 0.0, constants, shifts=True)[0] > 2.0


@pytest.mark.parametrize("bias", [False, True])
def test_a_turned_head_has_turned_logits(bias: bool) -> None:
    random = np.random.default_rng(2)
    head = random.normal(size=(2, 5 + bias)).astype(np.float32)
    x = random.normal(size=(30, 5))
    shifts = np.array([0.5, -2.0])
    [turned] = turn_head(GD, TWO, (head,), 0.3, shifts)
    assert score.logits((turned,), x) == pytest.approx(
        0.3 * score.logits((head,), x) + shifts, abs=1e-5
    )
    [scaled] = turn_head(GD, TWO, (head,), 0.3, np.zeros(2))
    assert scaled.shape == head.shape


def test_the_law_moves_no_answer_and_makes_margins_less_sure() -> None:
    random = np.random.default_rng(3)
    constants = replace(TWO, classes=7)
    head = random.normal(size=(7, 5)).astype(np.float32)
    x = random.normal(size=(400, 5))
    (turned,), how = Calibrating(GD, constants, 0.25).run((head,), Data(x, None), None)
    assert (score.logits((turned,), x).argmax(1) == score.logits((head,), x).argmax(1)).all()
    assert how.slope == how.law == slope_by_law(GD, constants, 0.25) < 1.0
    assert how.share is None


@pytest.mark.parametrize(
    ("learner", "constants", "mu", "expected"),
    [
        (GD, TWO, 0.25, 0.23),
        (GD, TWO, 5.0, 0.23),
        (GD, replace(TWO, relation="replace_one"), 0.25, 0.23),
        (GD, replace(TWO, classes=10), 0.25, 0.23 * 5**0.5),
        (GD, replace(TWO, classes=10), 0.1, 0.23 * 5 ** (0.5 + 0.15 * math.log(2.5))),
        (GD, replace(TWO, classes=10), 0.01, 0.23 * 5 ** (0.5 + 0.15 * math.log(5.0))),
        (GD, replace(TWO, classes=100), 0.01, 1.0),
        (SIGMOID, replace(TWO, classes=6, labels=MANY), 0.25, 0.23 * 7**0.5),
        # a quarter of the clip for each of a unit's records
        (GD, replace(TWO, cap=16), 0.25, 0.23 ** (1.0 + math.log(4.0) / math.log(32.0 * 2**0.5))),
        # half is clipped by its logarithm, which matters less where training is weak
        (GD, replace(TWO, length=(32.0 / 2**0.5) ** 0.5), 0.25, 0.23**0.5),
        (
            GD,
            replace(TWO, length=(32.0 / 2**0.5) ** 0.5),
            0.025,
            0.23 ** (0.5 + 0.1 * math.log(10)),
        ),
        # nothing is clipped, so nothing is too sure
        (GD, replace(TWO, length=0.5), 0.25, 1.0),
        (learner_of({"name": "dp_adam"}), TWO, 0.25, 0.23),
        # not measured
        (SIGMOID, TWO, 0.25, 1.0),
        (learner_of({"name": "dp_gd", "init": "public"}), TWO, 0.25, 1.0),
        (learner_of({"name": "dp_ls"}), TWO, 0.25, 1.0),
        (learner_of({"name": "dp_gd"}), replace(TWO, classes=1), 0.25, 1.0),
    ],
)
def test_the_slope_follows_from_public_figures(learner, constants, mu, expected) -> None:
    assert slope_by_law(learner, constants, mu) == pytest.approx(expected)


def test_a_map_that_no_head_can_take_is_refused_before_it_is_charged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of weights that are a plug-in's own nobody may know how to turn their logits."""
    bought = Calibrating(GD, TWO, 1.0, 0.1, 0.01)
    assert len(bought.declared.draws) == 1
    own = SimpleNamespace(logits=layers.logits, scorer=layers.scorer)
    monkeypatch.setattr(calibrate, "weights_of", lambda _: own)
    with pytest.raises(BadInput, match=r"Set final\.calibrate: null"):
        _ = bought.declared
    assert Calibrating(GD, TWO, 1.0).declared.draws == ()


def test_findings_are_turned_about_their_public_bias() -> None:
    random = np.random.default_rng(4)
    constants = replace(TWO, classes=5, labels=MANY)
    head = random.normal(size=(5, 5)).astype(np.float32)
    x = random.normal(size=(50, 5)).astype(np.float32)
    labels = np.array([number_of_findings([0] * 5)] * 50)
    weights, how = Calibrating(SIGMOID, constants, 0.25).run((head,), Data(x, labels), None)
    before, after = (scorer_of(SIGMOID, constants).logits(each, x) for each in ((head,), weights))
    assert after == pytest.approx(how.slope * before, abs=1e-5)
    assert sigmoid_bias(5) != 0.0
