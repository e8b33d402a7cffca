"""What a student of a released head learns, and what it forgets."""

from __future__ import annotations

import numpy as np

from dpladder.learn import student
from dpladder.learn.data import Data
from dpladder.learn.scorers import ClassScorer

CLASSES, WIDTH, SEEN = 3, 40, 10


def records(count: int, seed: int) -> Data:
    """Records that take up a few of the directions that there are."""
    rng = np.random.default_rng(seed)
    x = np.zeros((count, WIDTH), np.float32)
    x[:, :SEEN] = rng.normal(size=(count, SEEN))
    return Data(x, np.full(count, -1))


def head(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(CLASSES, WIDTH)).astype(np.float32)


def test_a_student_names_what_its_teacher_names_and_forgets_where_no_record_is() -> None:
    found, ridge = student.taught((head(1),), records(2000, seed=2), CLASSES)
    assert found.shape == (CLASSES, WIDTH)
    assert ridge > 0
    assert np.abs(found[:, SEEN:]).max() < 1e-6
    other = records(500, seed=3).features
    same = ClassScorer().predict((found,), other) == ClassScorer().predict((head(1),), other)
    assert same.mean() > 0.9


def test_labels_of_the_records_are_not_read() -> None:
    data = records(50, seed=2)
    told = Data(data.features, np.random.default_rng(4).integers(0, CLASSES, 50))
    one, other = (student.taught((head(1),), given, CLASSES)[0] for given in (data, told))
    assert np.array_equal(one, other)


def test_its_strength_is_chosen_by_leaving_each_record_out() -> None:
    """The closed form is what fits to all other records are."""
    data = records(12, seed=5)
    x = data.features.astype(np.float64)
    wanted = np.eye(CLASSES)[ClassScorer().predict((head(1),), data.features)] - 1 / CLASSES
    values, axes = np.linalg.eigh(x.T @ x)
    missed = 0.0
    for left in range(12):
        rest = np.arange(12) != left
        fit = np.linalg.solve(x[rest].T @ x[rest] + 0.5 * np.eye(WIDTH), x[rest].T @ wanted[rest])
        missed += float(np.square(wanted[left] - x[left] @ fit).sum())
    assert np.isclose(student._leave_one_out_error(x @ axes, values, wanted, 0.5), missed)


def test_one_class_alone_is_learned() -> None:
    always = np.zeros((CLASSES, WIDTH), np.float32)  # a tie, which the first class wins
    found, _ = student.taught((always,), records(50, seed=2), CLASSES)
    assert np.isfinite(found).all()
