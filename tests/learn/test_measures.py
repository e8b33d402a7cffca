"""Measures from counts: by class, over classes, and of ranking; with the sd that their noise really
has."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from dpladder.config.label_sets import number_of
from dpladder.config.telling import BINS
from dpladder.learn import measures
from dpladder.learn.interface import Constants

RANDOM = np.random.default_rng(7)


def test_a_record_is_in_one_count_and_in_one_bin() -> None:
    labels = np.array([0, 1, 1, -1, 2, 5])
    found = measures.by_class(np.array([0, 0, 1, 1, 2, 0]), labels, 3)
    assert found.tolist() == [[1, 0], [1, 1], [1, 0]]  # what names no class is in none
    scores = np.array([-1e300, 0.0, np.inf, 1.0, np.nan, 3.0])
    bins = measures.by_score(scores, np.array([0, 1, 1, -1, 1, 0]), np.array([0.5, 2.0]))
    assert bins.tolist() == [[1, 0, 1], [1, 0, 2]]


def test_by_group_a_prediction_is_right_that_is_one_of_its_records_classes() -> None:
    labels = np.array([number_of({0, 2}, 3), number_of({0, 2}, 3), 1, -1])
    found = measures.by_group(np.array([2, 1, 1, 0]), labels, np.array([0, 0, 1, 1]), 3, 2)
    assert found.tolist() == [[1, 1], [1, 0]]


def test_bins_are_public_and_split_at_the_decision() -> None:
    weights = [RANDOM.normal(size=(2, 5)).astype(np.float32)]
    edges = measures.edges(weights, Constants(100, 2, 5), None)
    assert len(edges) == BINS - 1
    assert np.all(np.diff(edges) > 0)
    assert np.array_equal(edges, measures.edges(weights, Constants(100, 2, 5), None))
    zero = measures.by_score(np.array([0.0, 1e-300]), np.array([0, 0]), edges)[0]
    # a tie predicts the first class
    assert zero[BINS // 2 - 1] == 1 == zero[BINS // 2]
    flat = measures.edges([np.zeros((2, 5), np.float32)], Constants(100, 2, 5), None)
    assert np.all(np.diff(flat) > 0)


def test_auc_is_what_binned_scores_rank() -> None:
    labels = RANDOM.integers(0, 2, 500)
    scores = labels + RANDOM.normal(size=500)
    edges = np.linspace(-2, 3, BINS - 1)
    found = measures.auc(measures.by_score(scores, labels, edges), 0.0)
    assert found is not None
    assert found.value == pytest.approx(
        roc_auc_score(labels, np.searchsorted(edges, scores, side="right"))
    )
    assert found.sd == 0


def test_the_noise_is_as_large_as_it_is_said_to_be() -> None:
    """Each sd against a thousand draws of the noise."""
    counts, sd = np.array([[90.0, 10.0], [15.0, 25.0]]), 1.5
    bins = np.outer([1, 1], np.linspace(4, 20, BINS)) * [[2.0], [1.0]]
    bins[1] = bins[1][::-1]
    draws = [
        (
            measures.balanced(
                [measures.share(*row, sd) for row in counts + sd * RANDOM.normal(size=counts.shape)]
            ),
            measures.auc(bins + sd * RANDOM.normal(size=bins.shape), sd),
        )
        for _ in range(1000)
    ]
    for place, exact in ((0, (0.9 + 0.375) / 2), (1, None)):
        values = np.array([pair[place].value for pair in draws])  # type: ignore[union-attr]
        told = np.median([pair[place].sd for pair in draws])  # type: ignore[union-attr]
        assert values.std() == pytest.approx(told, rel=0.15)
        if exact is not None:
            assert values.mean() == pytest.approx(exact, abs=0.01)


def test_what_noise_hides_is_not_told() -> None:
    assert measures.share(3.0, 2.0, 2.0) is None
    assert measures.share(-3.0, 30.0, 2.0).value == 0.0  # type: ignore[union-attr]
    assert measures.balanced([measures.share(30, 3, 1.0), None]) is None
    assert measures.auc(np.array([[5.0] * 16, [0.0] * 16]), 1.0) is None
    assert measures.share(0.0, 0.0, 0.0) is None  # a class that a public test source lacks


def test_groups_are_counted_apart_and_the_lowest_share_is_the_worst():
    labels, groups = np.array([0, 0, 1, 1, 2, -1]), np.array([0, 1, 1, 2, -1, 0])
    found = measures.by_group(np.array([0, 1, 1, 1, 2, 0]), labels, groups, 3, 3)
    # neither a record of no group nor one of no class
    assert found.tolist() == [[1, 0], [1, 1], [1, 0]]
    shares = {"a": measures.share(9, 1, 0.1), "b": measures.share(3, 3, 0.1)}
    name, worst = measures.worst(shares)
    assert (name, worst.value) == ("b", 0.5)
    assert measures.worst({**shares, "c": None}) is None
