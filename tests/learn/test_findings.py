"""Learning findings: the gradient of each record against autograd, what a record may count, and
what is told of each finding."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from counted import cells_of, figures_from
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.metrics import roc_auc_score
from support import Seeded, SumsInMemory

from dpladder.config.label_sets import PRESENT, UNKNOWN, number_of_findings
from dpladder.config.learner_sections import SharedSums
from dpladder.config.model import Resources
from dpladder.learn.counts import sum_of
from dpladder.learn.data import Data
from dpladder.learn.interface import Constants, Hyper, sigmoid_bias
from dpladder.learn.linear import clipped_sum, resident, summed_losses
from dpladder.learn.links import Link
from dpladder.learn.measures import tables
from dpladder.learn.measures.tables import (
    ByFinding,
    MeasuredModel,
    ScoreLookByFinding,
    StandingsByFinding,
)
from dpladder.learn.measures.tested import GroupNames
from dpladder.learn.scorers import FULL, FindingScorer, shares_of_findings
from dpladder.learn.trainings import declare, scorer_of, train
from dpladder.methods.dp_gd import Descent
from dpladder.methods.dp_ls import LeastSquares
from dpladder.privacy.release.meter import Meter
from dpladder_audit.engine.bare import Bare
from dpladder_papers.methods.dp_adam import Adam
from dpladder_papers.methods.dp_adam_wosm import AdamNoSecondMoment
from dpladder_papers.methods.dp_fc import FeatureCovariance
from dpladder_papers.methods.dp_mlp import HiddenLayer
from dpladder_papers.methods.dp_prodigy import StepSizeFree
from dpladder_papers.methods.dp_prototypes import Prototypes
from dpladder_papers.methods.hyfree_dp import HyperparameterFree

CLASSES, DIMENSION = 4, 6
CONSTANTS = Constants(n0=60, classes=CLASSES, dimension=DIMENSION, labels="many")
LINK = Link("sigmoid", CLASSES, "many")
ONE = Resources(threads=1)


def states_of(count: int, seed: int = 0):
    return np.random.default_rng(seed).integers(0, 3, (count, CLASSES))


def records(count: int = 60, seed: int = 0, views: int = 1, length: float = 1.0):
    random = np.random.default_rng(seed)
    shape = (count, DIMENSION) if views == 1 else (count, views, DIMENSION)
    states = states_of(count, seed)
    labels = np.array([number_of_findings(own.tolist()) for own in states])
    x = random.normal(size=shape) * length * random.lognormal(size=(count, *[1] * (len(shape) - 1)))
    return Data(x.astype(np.float32), labels), states


def by_autograd(x, states, head, bound: float):
    """One record's clipped gradient, of binary cross-entropy summed over its known classes."""
    weights = torch.tensor(head, dtype=torch.float64, requires_grad=True)
    rows = torch.tensor(np.atleast_2d(x), dtype=torch.float64)
    logits = rows @ weights.T + sigmoid_bias(CLASSES)
    known = torch.tensor(states != UNKNOWN)
    wanted = torch.tensor(states == PRESENT, dtype=torch.float64).expand(len(rows), -1)
    loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, wanted, reduction="none")
    (gradient,) = torch.autograd.grad(loss[:, known].sum(1).mean(), weights)
    return gradient * min(1.0, bound / max(float(gradient.norm()), 1e-300))


@pytest.mark.parametrize("views", [1, 3])
@pytest.mark.parametrize("bound", [0.3, 1e6])
def test_one_gradient_a_record_is_clipped_over_all_its_known_classes(views: int, bound: float):
    data, states = records(views=views)
    head = np.random.default_rng(1).normal(size=(CLASSES, DIMENSION))
    held = resident(data, CONSTANTS, ONE, views)
    found = clipped_sum(held, torch.tensor(head)[None], bound, held.chunks(), link=LINK)[0]
    counted = (states != UNKNOWN).any(1)
    wanted = sum(
        by_autograd(x, own, head, bound)
        for x, own, counts in zip(data.features, states, counted, strict=True)
        if counts
    )
    assert found.numpy() == pytest.approx(wanted.numpy(), rel=2e-5, abs=2e-5)


@pytest.mark.parametrize("length", [0.01, 1.0, 1e3])
def test_no_record_of_any_findings_weighs_more_than_the_bound(length: float):
    data, _ = records(40, length=length)
    heads = torch.tensor(np.random.default_rng(1).normal(size=(1, CLASSES, DIMENSION)))
    for place in range(40):
        one = Data(data.features[place : place + 1], data.labels[place : place + 1])
        held = resident(one, replace(CONSTANTS, n0=1), ONE)
        total = clipped_sum(held, heads, 0.5, held.chunks(), link=LINK)
        assert float(total.norm()) <= 0.5 * (1 + 1e-6)


def test_a_class_that_is_unknown_has_no_slope_and_no_loss():
    data, states = records()
    held = resident(data, CONSTANTS, ONE)
    head = torch.tensor(np.random.default_rng(1).normal(size=(1, CLASSES, DIMENSION)))
    for place, own in enumerate(states):
        one = Data(data.features[place : place + 1], data.labels[place : place + 1])
        held = resident(one, replace(CONSTANTS, n0=1), ONE)
        slope = clipped_sum(held, head, 1e6, held.chunks(), link=LINK)[0]
        assert not slope[own == UNKNOWN].any()
        moved = head.clone()
        moved[:, own == UNKNOWN] += 7.0
        both = (
            summed_losses(held, weights, lambda losses: losses, held.chunks(), link=LINK)
            for weights in (head, moved)
        )
        assert next(both) == next(both)


def test_losses_are_cross_entropies_summed_over_known_classes():
    _, states = records()
    logits = np.random.default_rng(2).normal(size=(60, CLASSES)) * 3
    numbers = torch.tensor([number_of_findings(own.tolist()) for own in states])
    found = LINK.losses(torch.tensor(logits), numbers[:, None], dim=1).numpy()
    p = expit(logits + sigmoid_bias(CLASSES))
    each = -np.where(states == PRESENT, np.log(p), np.log1p(-p)) * (states != UNKNOWN)
    assert found == pytest.approx(each.sum(1), rel=1e-6)


@pytest.mark.parametrize(
    ("learner", "eta"),
    [
        (Descent(link="sigmoid"), 2.0),
        (Adam(link="sigmoid"), 0.2),
        (AdamNoSecondMoment(link="sigmoid"), 0.02),
        (StepSizeFree(link="sigmoid"), 1.0),
        (HyperparameterFree(link="sigmoid"), 1.0),
        pytest.param(HiddenLayer(link="sigmoid"), 0.5, marks=pytest.mark.ci),
        (FeatureCovariance(link="sigmoid"), 2.0),
    ],
    ids=lambda given: getattr(given, "name", ""),
)
def test_each_finding_is_learned_by_itself(learner, eta):
    random = np.random.default_rng(3)
    x = random.normal(size=(4000, DIMENSION)).astype(np.float32)
    truth = x @ random.normal(size=(DIMENSION, CLASSES)) > 0.5
    states = np.where(random.random(truth.shape) < 0.3, UNKNOWN, truth)
    labels = np.array([number_of_findings(own.tolist()) for own in states])
    constants = replace(CONSTANTS, n0=4000, length=float(np.linalg.norm(x, axis=1).mean()))
    hyper = Hyper(eta, 30, mu=2.0)
    meter = Meter(declare(learner, hyper, constants).draws, Seeded())
    found = train(Data(x, labels), hyper, learner, constants, meter, ONE)
    meter.close()
    logits = scorer_of(learner, constants).logits(found, x)
    areas = [roc_auc_score(truth[:, place], logits[:, place]) for place in range(CLASSES)]
    assert min(areas) > 0.95


RADIUS, ONCE = 1.5, Hyper(2.0, 1, mu=2.0)
SUMMING = {
    "dp_ls": LeastSquares(radius=RADIUS),
    "dp_ls, shared": LeastSquares(radius=RADIUS, shared=SharedSums(epsilon=1.0)),
    "dp_prototypes": Prototypes(radius=RADIUS),
}


def summed(learner, data, constants=CONSTANTS):
    """What a learner releases, without noise, and its weights."""
    if learner.purchases:
        sums = SumsInMemory(covariance=np.ones(DIMENSION * (DIMENSION + 1) // 2))
        data = replace(data, shared=sums)
    meter = Bare(declare(learner, ONCE, constants).draws, Seeded())
    (weights,) = train(data, ONCE, learner, constants, meter, ONE)
    return {name: totals[0] for name, totals in meter.totals.items()}, weights


def inside(rows):
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows.astype(np.float64) * np.minimum(1.0, RADIUS * (1 - 2.0**-10) / lengths)


def test_least_squares_of_findings_are_a_newton_step_from_their_public_share():
    data, states = records(length=3.0)
    constants = replace(CONSTANTS, length=6.0)
    sums, weights = summed(SUMMING["dp_ls"], data, constants)
    x, target = inside(data.features), np.zeros((CLASSES, DIMENSION))
    for row, own in zip(x, states, strict=True):
        lacking = np.where(own == UNKNOWN, 0.0, (own == PRESENT) - 1 / CLASSES)
        lacking *= CLASSES / (CLASSES - 1)
        target += np.outer(lacking / max(1.0, np.linalg.norm(lacking)), row)
    assert sums["targets"] == pytest.approx(target, rel=1e-5, abs=1e-5)
    counted = x[(states != UNKNOWN).any(1)]
    hessian = counted.T @ counted / 60 + 0.5 * np.eye(DIMENSION)
    step = CLASSES * np.linalg.solve(hessian, target.T / 60).T
    assert weights == pytest.approx(step * RADIUS / 6.0, rel=1e-4, abs=1e-5)


def test_a_finding_has_a_prototype_of_those_that_have_it_and_one_of_those_that_lack_it():
    data, states = records(length=3.0)
    sums, weights = summed(SUMMING["dp_prototypes"], data)
    found = np.zeros((2, CLASSES, DIMENSION))
    for row, own in zip(inside(data.features), states, strict=True):
        told = [own == PRESENT, own == 0]
        sides = sum(side.any() for side in told)
        for place, side in enumerate(told):
            found[place, side] += row / np.sqrt(max(side.sum() * sides, 1))
    assert sums["sums"] == pytest.approx(found.reshape(-1, DIMENSION), rel=1e-5, abs=1e-5)
    present, absent = found / np.linalg.norm(found, axis=2, keepdims=True)
    assert weights == pytest.approx(present - absent, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("learner", SUMMING.values(), ids=SUMMING)
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_no_unit_of_any_findings_moves_all_sums_together_further_than_mu(learner, relation):
    """Of every unit of two records: each of its findings present, absent or unknown; replaced by
    its opposite, of every kind too."""
    constants = replace(CONSTANTS, n0=2, classes=2, relation=relation, cap=2)
    far = np.full((2, DIMENSION), 1e6, np.float32)
    scales = {draw.name: draw.scale for draw in declare(learner, ONCE, constants).draws}
    units = [
        Data(sign * far, np.full(2, number_of_findings(states)))
        for sign in (1, -1)
        for states in product(range(3), repeat=2)
    ]
    moved = [
        np.concatenate([np.ravel(total) / scales[name] for name, total in sums.items()])
        for sums, _ in (summed(learner, unit, constants) for unit in units)
    ]
    others = moved if relation == "replace_one" else [np.zeros_like(moved[0])]
    worst = max(float(np.linalg.norm(one - other)) for one in moved for other in others)
    # opposite records have one second moment
    twice = relation == "replace_one" and learner == SUMMING["dp_ls"]
    assert (0.7 if twice else 0.99) * ONCE.mu < worst <= ONCE.mu


@given(
    st.lists(st.integers(0, 2), min_size=CLASSES, max_size=CLASSES),
    st.lists(st.floats(), min_size=CLASSES, max_size=CLASSES),
)
def test_a_record_counts_a_share_whatever_its_findings_and_logits_are(states, logits):
    labels = np.array([number_of_findings(states)])
    (share,) = shares_of_findings(np.array([logits]), labels)
    assert 0.0 <= share <= FULL < 1.0
    if labels[0] < 0:
        assert share == 0.0


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf, 1e308])
def test_a_logit_that_is_no_number_moves_no_count_further_than_another(odd: float) -> None:
    """Of nan the model says nothing, as of 0."""
    logits, none = np.full((3, CLASSES), odd), np.zeros((3, CLASSES))
    labels = np.array([number_of_findings([state] * CLASSES) for state in (0, PRESENT, UNKNOWN)])
    found = shares_of_findings(logits, labels)
    assert np.isfinite(found).all()
    assert ((found >= 0.0) & (found <= FULL)).all()
    if math.isnan(odd):
        assert np.array_equal(found, shares_of_findings(none, labels))
    model = MeasuredModel(MODEL, FindingScorer(lambda *_: logits), CONSTANTS, tuple("abcd"))
    bought: dict[str, tuple[np.ndarray, float]] = {}
    for table in (ByFinding(), ScoreLookByFinding(), StandingsByFinding()):
        counts = sum_of(table.question(model, 1.0, bought), Data(logits, labels), CONSTANTS)
        bought[table.holds] = (counts, 0.0)
        assert np.isfinite(counts).all()
        in_one = counts.reshape(CLASSES, -1).sum(axis=1)
        assert in_one == pytest.approx(2, abs=1e-8), "each is in one count"


def test_a_share_is_one_less_the_mean_square_of_what_is_wrong():
    states = [PRESENT, 0, UNKNOWN, 0]
    logits = np.array([[2.0, -1.0, 9.0, 0.0]])
    wrong = [(expit(2.0) - 1) ** 2, expit(-1.0) ** 2, 0.25]
    found = shares_of_findings(logits, np.array([number_of_findings(states)]))
    assert found == pytest.approx([FULL * (1 - np.mean(wrong))], rel=1e-12)


MODEL = (np.zeros((CLASSES, DIMENSION), np.float32),)


def a_model(what: str = "", constants: Constants = CONSTANTS) -> MeasuredModel:
    """Its logits are the records' first features."""
    scorer = FindingScorer(lambda _, rows: np.asarray(rows[:, :CLASSES], np.float64))
    groups = GroupNames(("x", "y"), ("x", "y"), ("x", "y")) if what == "groups" else None
    return MeasuredModel(MODEL, scorer, constants, tuple("abcd"), groups)


@pytest.mark.parametrize("what", ["accuracy", "classes", "auc", "groups"])
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("cap", [1, 3])
def test_no_unit_moves_counts_of_findings_further_than_their_noise_is_for(what, relation, cap):
    """Random neighbours, and the worst: every class known, and each told the other way."""
    constants = replace(CONSTANTS, relation=relation, cap=cap)
    model = a_model(what, constants)
    wanted = tables.tables_of((what,), model)
    prices = tables.prices_of(wanted, 1.0)
    queries = [one.query(model, mu) for one, mu in zip(wanted, prices, strict=True)]
    declared = {query.name: query.draw(constants) for query in queries}
    random = np.random.default_rng(4)
    # looks that say something, and public whatever they say
    bought = {
        one.holds: (random.normal(10.0, 5.0, one.shape(model)), 5.0)
        for one in wanted
        if one.holds in ("by_finding", "score_look_by_finding")
    }
    groups = np.arange(30) % 2
    base = replace(records(30)[0], groups=groups)
    farthest = dict.fromkeys(declared, 0.0)
    for case in range(60):
        states = states_of(2, case) if case else np.zeros((2, CLASSES), int)
        labels = [number_of_findings(own.tolist()) for own in states]
        rows = random.normal(size=(2, DIMENSION)) * 5 if case else np.array([[9.0] * 6, [-9.0] * 6])
        ends = [
            Data(
                np.concatenate([base.features, np.repeat(rows[end : end + 1], cap, axis=0)]),
                np.concatenate([base.labels, [labels[end]] * cap]),
                groups=np.append(groups, [end * (case % 2)] * cap),
            )
            for end in (0, 1)
        ]
        one, other = ends if relation == "replace_one" else (ends[0], base)
        if what == "groups":
            assert cells_of(wanted[0], model, one).shape == (2, 2)
        for table, (name, draw) in zip(wanted, declared.items(), strict=True):
            ask = table.question(model, 1.0, bought)
            moved = float(
                np.linalg.norm(sum_of(ask, one, constants) - sum_of(ask, other, constants))
            )
            assert moved <= draw.sensitivity * (1 + 1e-9)
            farthest[name] = max(farthest[name], moved / draw.sensitivity)
    if what in ("classes", "auc"):
        assert farthest["counts"] == pytest.approx(1.0)  # the noise is for no less


def test_counts_of_findings_are_of_known_ones_alone():
    data, states = records()
    logits = data.features[:, :CLASSES]
    found = cells_of(ByFinding(), a_model(), data)
    for place in range(CLASSES):
        known = states[:, place] != UNKNOWN
        present, told = states[known, place] == PRESENT, logits[known, place] > 0
        wanted = [
            [(~told & ~present).sum(), (told & ~present).sum()],
            [(told & present).sum(), (~told & present).sum()],
        ]
        assert found[place].tolist() == wanted


def test_what_is_told_of_each_finding_without_noise_is_exact():
    data, states = records(4000)
    found = tables.exact(("auc",), a_model(), data)
    (counts, _), (look, _), (ranks, _) = tables.arrays_of(found).values()
    assert np.array_equal(counts.sum(axis=2), look.sum(axis=2))
    assert ranks.sum(axis=2) == pytest.approx(counts.sum(axis=2))
    told = tables.figures_of_counts(found)
    areas = []
    for place, one in enumerate(told.findings):
        known = states[:, place] != UNKNOWN
        present, logits = states[known, place] == PRESENT, data.features[known, place]
        said = logits > 0
        assert one.figures["sensitivity"].value == pytest.approx(
            (said & present).sum() / present.sum()
        )
        assert one.figures["specificity"].value == pytest.approx(
            (~said & ~present).sum() / (~present).sum()
        )
        assert one.figures["balanced"].value == pytest.approx(
            (one.figures["sensitivity"].value + one.figures["specificity"].value) / 2
        )
        assert one.accuracy.value == pytest.approx((said == present).mean())
        assert (one.present, one.absent) == (present.sum(), (~present).sum())
        areas.append(roc_auc_score(present, logits))
        assert one.figures["auc"].value == pytest.approx(areas[-1], abs=1e-3)
    assert told.figures["auc"].value == pytest.approx(np.mean(areas), abs=1e-3)
    assert told.figures["balanced"].value == pytest.approx(
        np.mean([one.figures["balanced"].value for one in told.findings])
    )
    known = states != UNKNOWN
    right = (data.features[:, :CLASSES] > 0) == (states == PRESENT)
    assert told.accuracy == pytest.approx((right & known).sum() / known.sum())


def test_the_deviation_of_each_figure_is_that_of_its_noise():
    random = np.random.default_rng(5)
    counts = random.integers(300, 900, (CLASSES, 2, 2)).astype(float)
    bins = random.integers(20, 90, (CLASSES, 2, 16)).astype(float)  # of scores, as before
    drawn = [
        figures_from(
            tuple("abcd"),
            "findings",
            by_finding=(counts + random.normal(size=counts.shape) * 8, 8.0),
            scores_by_finding=(bins + random.normal(size=bins.shape) * 4, 4.0),
        )
        for _ in range(400)
    ]

    def holds(values, deviations):
        assert np.std(values) == pytest.approx(np.mean(deviations), rel=0.15)

    holds([one.accuracy for one in drawn], [one.accuracy_sd for one in drawn])
    for name in ("balanced", "auc"):
        each = [one.figures[name] for one in drawn]
        holds([one.value for one in each], [one.sd for one in each])
    for name in ("accuracy", "sensitivity", "specificity", "balanced", "auc"):
        first = [one.findings[0] for one in drawn]
        each = [one.figures.get(name, one.accuracy) for one in first]
        holds([one.value for one in each], [one.sd for one in each])


def test_nothing_is_told_of_a_finding_that_noise_hides():
    counts = np.full((CLASSES, 2, 2), 500.0)
    counts[2, 1] = 3.0
    told = figures_from(tuple("abcd"), "findings", by_finding=(counts, 5.0))
    assert told.figures["balanced"] is None
    assert "auc" not in told.figures
    hidden, shown = told.findings[2].figures, told.findings[1].figures
    assert hidden["sensitivity"] is None
    assert hidden["balanced"] is None
    assert hidden["specificity"] is not None
    assert shown["balanced"] is not None
