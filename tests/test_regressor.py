"""A private regressor in three lines of Python: scikit-learn's manners, the workflow's books."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score

from dpladder import PrivateClassifier, PrivateRegressor
from dpladder.errors import BadInput, Refused

COLUMNS: dict[str, Any] = {"age": (0, 100), "sex": ["f", "m"]}


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPLADDER_HOME", str(tmp_path / "home"))


def people(count: int = 3000) -> tuple[pd.DataFrame, pd.Series]:
    random = np.random.default_rng(0)
    table = pd.DataFrame(
        {"age": random.uniform(0, 100, count), "sex": random.choice(["f", "m"], count)}
    )
    stay = 5.0 + table.age / 5 + 4.0 * (table.sex == "f") + random.normal(size=count)
    return table, stay


def regressor(**more: Any) -> PrivateRegressor:
    given = {
        "lineage": "stays",
        "nominal_size": 2400,
        "target_range": (0, 40),
        "columns": COLUMNS,
        "dataset.target.error": 10,
    }
    return PrivateRegressor(4.0, **{**given, **more})


@pytest.mark.ci
def test_a_fit_is_a_run_of_the_workflow_whose_numbers_are_in_units_of_the_target() -> None:
    table, stay = people()
    stay[::100] = np.nan
    model = regressor().fit(table, stay)
    known = stay.notna()
    numbers = model.predict(table)
    assert numbers.shape == (3000,)
    assert np.abs(numbers - stay)[known].mean() < 2.0
    assert model.score(table[known], stay[known]) > 0.85
    assert 3.9 < model.epsilon_ <= 4.0
    again = regressor().fit(table, stay)
    assert np.array_equal(again.predict(table), numbers)
    loaded = PrivateRegressor.load(model.project_)
    assert loaded.target_range == (0.0, 40.0)
    assert np.array_equal(loaded.predict(table), numbers)
    unread = table.assign(age=table.age.where(table.index > 2))
    with pytest.raises(BadInput, match="3 of 3,000 records cannot be read"):
        model.predict(unread)
    with pytest.raises(BadInput, match="predicts a number, and no probabilities"):
        model.model_.predict_proba(table.drop(columns="sex").assign(sex="f"))
    with pytest.raises(BadInput, match="predicts a number: use PrivateRegressor"):
        PrivateClassifier.load(model.project_)


@pytest.mark.ci
def test_a_matrix_of_one_column_is_learnt_within_its_bounds(tmp_path: Path) -> None:
    """Scaled to one length, R² was 0.00 after the whole epsilon."""
    random = np.random.default_rng(0)
    X = random.uniform(20, 90, (3000, 1))
    y = X[:, 0] / 4 + random.normal(0, 1, 3000)
    model = regressor(columns=None, bounds=(0, 100)).fit(X, y)
    assert model.score(X, y) > 0.9
    loaded = PrivateRegressor.load(model.project_)
    assert np.array_equal(loaded.predict(X), model.predict(X))
    assert loaded.bounds == ([0.0], [100.0])


def test_a_classifier_is_no_regressor(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("dataset: {lineage: a, target: null}\nprivacy: {}\n")
    with pytest.raises(BadInput, match="tells classes apart: use PrivateClassifier"):
        PrivateRegressor.load(tmp_path)


def test_a_model_of_another_total_is_not_loaded(tmp_path: Path) -> None:
    """A plan of another total writes the config anew; the message says what to do."""
    (tmp_path / "config.yaml").write_text(
        "dataset: {lineage: a, nominal_size: 9, target: {range: [0, 1]}}\n"
        "privacy: {epsilon: 2.0, delta: 1.0e-6}\n"
    )
    with pytest.raises(BadInput, match=r"holds no model of total 2, .* Fit with the total of a"):
        PrivateRegressor.load(tmp_path)


def test_it_is_a_regressor_to_scikit_learn_and_can_be_cloned() -> None:
    model = regressor()
    assert is_regressor(model)
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(NotFittedError, match="PrivateRegressor"):
        model.predict(people(3)[0])
    with pytest.raises(Refused, match="PrivateRegressor cannot be fitted by scikit-learn's"):
        cross_val_score(model, *people(50), error_score="raise")


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"target_range": None}, "needs target_range"),
        ({"target_range": 40}, "target_range is 40"),
        ({"target_range": (40, 0)}, r"given \[40\.0, 0\.0\]; must be \[smallest, largest\]"),
        ({"target_range": (0, np.inf)}, "it should be a finite number"),
        ({"dataset.target.error": 41}, r"given 41; must not be longer than the range"),
        ({"learner.name": "dp_ls"}, "it tells classes apart; use dp_gd or dp_ridge"),
    ],
)
def test_parameters_that_cannot_be_are_refused(more: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        regressor(**more).fit(*people(50))


@pytest.mark.parametrize(
    ("numbers", "says"),
    [
        (["long"] * 50, "none of its 50 entries is a finite number"),
        ([np.nan] * 50, "none of its 50 entries is a finite number"),
        ([1.0] * 49, "y has 49 entries for 50 records"),
        (np.ones((50, 2)), "one number for each record"),
    ],
)
def test_numbers_that_cannot_be_used_are_refused_for_nothing(numbers: Any, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        regressor().fit(people(50)[0], numbers)
