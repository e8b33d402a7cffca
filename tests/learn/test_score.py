"""Predictions, noised counts, and the files that weights live in."""

from __future__ import annotations

import numpy as np
import pytest
from counted import cells_of, right_of
from hypothesis import given
from hypothesis import strategies as st
from support import Seeded

from dpladder.config.label_sets import number_of
from dpladder.errors import BadInput, Refused
from dpladder.learn import counts, score, weights
from dpladder.learn.counts import right_counts
from dpladder.learn.data import Data
from dpladder.learn.finetune.predict import logits as logits_of_network
from dpladder.learn.interface import Constants
from dpladder.learn.measures.tables import MeasuredModel, RightAndWrong, margin
from dpladder.learn.queries import declared
from dpladder.learn.scorers import FULL, ClassScorer, LossScorer, Scorer, shares_of_losses
from dpladder.methods.dp_finetune import FineTune
from dpladder.privacy.accounting import events
from dpladder.privacy.release.meter import Meter
from dpladder.search.sweep_value import ceiling

CONSTANTS = Constants(n0=500, classes=4, dimension=6)


def linear(count=500, dtype=np.float32, seed=0):
    random = np.random.default_rng(seed)
    head = random.normal(size=(4, 6)).astype(np.float32)
    return (head,), random.normal(size=(count, 6)).astype(dtype), random.integers(-1, 4, count)


def right_and_wrong(head, features, labels, scorer: Scorer) -> np.ndarray:
    model = MeasuredModel(head, scorer, CONSTANTS, tuple("abcd"))
    return cells_of(RightAndWrong(), model, Data(features, labels))


@given(st.lists(st.floats(), max_size=8), st.floats(0.1, 20.0))
def test_a_loss_counts_as_a_share_of_the_bound_whatever_it_is(losses, most):
    found = shares_of_losses(np.array(losses, np.float64), most)
    assert ((found >= 0) & (found <= FULL)).all()
    assert shares_of_losses(
        np.array([-1.0, 0.0, most / 2, most, np.inf, np.nan]), most
    ) == pytest.approx([FULL, FULL, FULL / 2, 0.0, 0.0, 0.0])


def test_a_language_models_records_count_by_their_losses_and_those_without_a_label_nothing():
    scorer = LossScorer(lambda _, rows: rows[:, 0], 2.0)
    rows, labels = np.array([[0.0], [1.0], [9.0], [0.0]]), np.array([0, 0, 0, -1])
    counts = right_and_wrong((), rows, labels, scorer)
    assert counts == pytest.approx([1.5 * FULL, 1.5 * FULL])


@pytest.mark.parametrize("count", [0, 1, 500, 9000])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_linear_head_predicts_its_largest_logit(count, dtype):
    (head,), features, labels = linear(count, dtype)
    expected = (features.astype(np.float64) @ head.T).argmax(axis=1)
    assert np.array_equal(ClassScorer().predict((head,), features), expected)
    assert right_of(ClassScorer(), (head,), features, labels) == (expected == labels).sum()


def test_a_prediction_is_right_that_is_one_of_its_records_classes():
    (head,), features, _ = linear(9000)
    sets = [(0,), (1, 2), (0, 1, 3), (), (0, 1, 2, 3)] * 1800
    labels = np.array([number_of(own, 4) for own in sets])
    expected = sum(
        int(one) in own for one, own in zip((features @ head.T).argmax(axis=1), sets, strict=True)
    )
    assert right_and_wrong((head,), features, labels, ClassScorer()).tolist() == [
        expected,
        7200 - expected,
    ]
    told = right_counts(ClassScorer(), [(head,), (-head,)], Data(features, labels)).tolist()
    assert told == [expected, right_of(ClassScorer(), (-head,), features, labels)]


def test_a_last_column_is_the_bias():
    features = np.zeros((3, 6), np.float32)
    head = np.zeros((4, 7), np.float32)
    head[2, 6] = 1.0
    assert ClassScorer().predict((head,), features).tolist() == [2, 2, 2]


def test_layers_meet_in_a_relu():
    inner = np.array([[1.0], [-1.0]], np.float32)
    outer = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.5]], np.float32)
    features = np.array([[2.0], [-2.0], [0.3]], np.float32)
    assert score.logits((inner, outer), features).tolist() == [
        [2.0, 0.5],
        [0.0, 2.5],
        [np.float32(0.3), 0.5],
    ]


def test_of_a_record_with_several_views_the_record_itself_is_scored():
    head = np.eye(2, dtype=np.float32)
    features = np.array([[[5.0, 0.0], [0.0, 1.0], [0.0, 1.0]]], np.float32)
    assert ClassScorer().predict((head,), features).tolist() == [0]


def test_a_networks_head_is_summed_row_by_row_to_the_last_bit():
    """A library's product has other last bits, and may have others in other places."""
    random = np.random.default_rng(3)
    head, features = (random.normal(size=(size, 385)).astype(np.float32) for size in (7, 48))
    own = logits_of_network(FineTune(trains="head"), Constants(48, 7, 385))
    assert np.array_equal(own((head,), features), score.row_by_row_logits((head,), features))


@pytest.mark.parametrize("of", ["head", "heads", "network"])
def test_one_record_more_tips_no_other_ones_tie(of):
    """Classes whose weights have one sum tie on a record of equal features, and how a product is
    rounded says which of them it is."""
    width, most = {"head": (384, 620), "heads": (64, 130), "network": (385, 48)}[of]
    random = np.random.default_rng(3)
    row = random.normal(size=width).astype(np.float32)
    head = np.stack([row, random.permutation(row)])
    features = np.tile(random.uniform(0.5, 1.0, (most, 1)).astype(np.float32), width)
    learner, constants = FineTune(trains="head"), Constants(most, 2, width)
    own = logits_of_network(learner, constants) if of == "network" else None

    def right(features):
        labels = np.ones(len(features), np.int64)
        if of == "heads":
            return right_counts(ClassScorer(), [(head,)] * 5, Data(features, labels))[0]
        return ClassScorer(own).shares((head,), features, labels).sum()

    first = {right(features[place:]) - right(features[place + 1 :]) for place in range(40)}
    last = {right(features[: most - place]) for place in range(40)}
    assert first <= {0, 1}
    assert set(np.diff(sorted(last))) <= {1}


@given(st.integers(1, 700), st.integers(1, 40), st.integers(0, 2**32), st.booleans())
def test_logits_by_themselves_hang_on_nothing_but_their_record(width, records, seed, turned):
    random = np.random.default_rng(seed)
    layers = random.normal(size=(5, width)), random.normal(size=(3, 6))
    features = random.normal(size=(records, width))
    features = np.asfortranarray(features) if turned else features
    together = score.row_by_row_logits(layers, features)
    alone = [score.row_by_row_logits(layers, row[None])[0] for row in features]
    assert np.array_equal(together, alone)
    assert together == pytest.approx(score.logits(layers, features), rel=1e-9, abs=1e-9)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [1.0, 1e4, 1e305])
def test_wild_records_are_counted_without_a_word(size):
    """Where warnings are errors, one of them would end a job by what a record says."""
    (head,), features, labels = linear(8)
    features[0], features[1], features[2] = np.nan, np.inf, 3e38
    head, features = size * head.astype(np.float64), features.astype(np.float64)
    features[3] = [1e308, -1e308] * (features.shape[1] // 2)
    assert len(ClassScorer().predict((head,), features)) == 8
    assert len(ClassScorer().confidences((head,), features, labels)[0]) == 8
    assert len(ClassScorer().log_odds((head,), features, labels)[0]) == 8
    assert len(margin((head,), features, None)) == 8


@given(st.floats(1e-4, 10), st.sampled_from(["add_remove", "replace_one"]), st.integers(1, 9))
def test_a_score_costs_what_it_may_spend_and_never_more(mu, relation, cap):
    constants = Constants(n0=500, classes=4, dimension=6, relation=relation, cap=cap)
    asked = declared([score.count_at(mu)], constants)
    (counted,), (draw,) = asked.events, asked.draws
    assert events.mu(counted.event, counted.count) == pytest.approx(mu, rel=1e-9)
    assert events.mu(counted.event, counted.count) <= mu
    assert draw.sensitivity / draw.scale <= mu * (1 + 1e-12)
    assert draw.shape == ()


def test_the_released_count_is_the_count_plus_the_meters_noise():
    head, features, labels = linear()
    draws = declared([score.count_at(0.05)], CONSTANTS).draws
    asked, data = score.count_at(0.05).at(head, ClassScorer()), Data(features, labels)
    meter, again = Meter(draws, Seeded()), Meter(draws, Seeded())
    released = counts.ask(asked, data, CONSTANTS, meter)
    meter.close()
    assert released == again.publish("score", right_of(ClassScorer(), head, features, labels))
    assert draws[0].scale == pytest.approx(1 / 0.05)


def test_a_score_that_costs_more_than_was_declared_is_refused():
    head, features, labels = linear()
    meter = Meter(declared([score.count_at(0.05)], CONSTANTS).draws, Seeded())
    asked = score.count_at(0.06).at(head, ClassScorer())
    with pytest.raises(Refused, match="query score is not what was declared"):
        counts.ask(asked, Data(features, labels), CONSTANTS, meter)


@given(st.lists(st.floats(), max_size=8))
def test_a_record_counts_from_0_to_1_whatever_a_scorer_says_of_it(shares):
    class Lying(Scorer):
        def shares(self, weights, features, labels):
            return np.array(shares, np.float64)

    data = Data(np.zeros((len(shares), 1)), np.zeros(len(shares), np.int64))
    found = counts.right_counts(Lying(), [(), ()], data)
    each = [min(max(share, 0.0), 1.0) if share == share else 0.0 for share in shares]
    assert found == pytest.approx([sum(each)] * 2)


def test_weights_come_back_from_a_file_with_their_metadata(tmp_path):
    layers = tuple(
        np.random.default_rng(0).normal(size=(3 + n, 4)).astype(np.float32) for n in range(12)
    )
    metadata = {"statement": "abc", "config": {"eta": 0.1, "steps": 5}}
    path = tmp_path / "weights.safetensors"
    weights.save(path, layers, metadata)
    found, told = weights.load(path)
    assert told == metadata | {"format": 1}
    assert len(found) == 12
    assert all(np.array_equal(a, b) for a, b in zip(found, layers, strict=True))


def test_the_same_weights_make_the_same_bytes(tmp_path):
    layers = (np.ones((2, 3), np.float32),)
    for name in ("a", "b"):
        weights.save(tmp_path / name, layers, {"z": 1, "a": 2, "k": name == "c"})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_strided_matrix_is_saved_as_it_reads(tmp_path):
    strided = np.arange(12, dtype=np.float32).reshape(3, 4).T
    weights.save(tmp_path / "w", (strided,), {})
    assert np.array_equal(weights.load(tmp_path / "w")[0][0], strided)


@pytest.mark.parametrize("content", [b"", b"no weights"])
def test_a_file_without_weights_is_named(tmp_path, content):
    path = tmp_path / "weights.safetensors"
    with pytest.raises(BadInput, match=r"weights.safetensors does not exist"):
        weights.load(path)
    path.write_bytes(content)
    with pytest.raises(BadInput, match=r"weights.safetensors holds no weights of dpladder"):
        weights.load(path)


@pytest.mark.parametrize(
    ("mu", "n0", "classes", "labels"),
    [
        *((0.0, 1000, 10, 1), (0.01, 500, 2, 1), (0.02, 300, 3, 1)),
        *((0.0, 300, 5, 2), (0.004, 300, 5, 2), (0.02, 300, 5, 2)),
    ],
)
def test_no_training_beats_the_ceiling_of_its_mu(mu, n0, classes, labels):
    """The best there is: every unit of a class that nothing else tells votes for its names, of
    which each is right, and the noised votes decide."""
    random, runs = np.random.default_rng(0), 4000
    votes = np.zeros((runs, classes))
    # in deviations of the noise that hides one unit's vote
    votes[:, :labels] = labels * n0 / classes * mu
    right = (votes + random.normal(size=votes.shape)).argmax(axis=1) < labels
    most = ceiling(mu, n0, classes, labels)
    error = 4 * (most * (1 - most) / runs) ** 0.5
    assert right.mean() <= most + error
    assert right.mean() >= 1 / classes - error


def test_a_ceiling_tells_luck_from_learning():
    assert ceiling(0.0, 4000, 10, 3) == pytest.approx(0.3)
    assert ceiling(0.25, 4000, 10, 3) == 1.0
    assert ceiling(0.0, 4000, 10) == pytest.approx(0.1)
    assert ceiling(0.001, 4000, 10) == pytest.approx(0.189, abs=1e-3)
    assert ceiling(0.25, 4000, 10) == pytest.approx(1.0)
