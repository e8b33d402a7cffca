"""A private classifier in three lines of Python: scikit-learn's manners, and the workflow's
books."""

from __future__ import annotations

import contextlib
import inspect
import math
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
import yaml
from scipy.sparse import csr_matrix
from sklearn import (
    ensemble,
    feature_selection,
    model_selection,
    multiclass,
    multioutput,
    pipeline,
)
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import (
    ColumnTransformer,
    TransformedTargetRegressor,
    make_column_selector,
)
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import RANSACRegressor
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    Normalizer,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.utils import all_estimators
from sklearn.utils.estimator_checks import check_estimator

import dpladder
from dpladder import PrivateClassifier, estimator
from dpladder.config.dataset_sections import Column
from dpladder.config.level_texts import level_as_text
from dpladder.data import tables
from dpladder.data.cells import text_of
from dpladder.data.columns import restored_columns
from dpladder.data.datasets import open_source
from dpladder.data.layout import Layout
from dpladder.data.tables import frame_as_bytes, frame_in
from dpladder.errors import BadInput, Refused
from dpladder.privacy.accounting.events import Spend
from dpladder.privacy.ledger import book
from dpladder.privacy.ledger.book import Ledger
from dpladder.privacy.ledger.home import open_home

import_module("sklearn.experimental.enable_halving_search_cv")  # makes two more of them known
COLUMNS: dict[str, Any] = {"age": (0, 100), "sex": ["f", "m"]}


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPLADDER_HOME", str(tmp_path / "home"))


@pytest.fixture
def no_run(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Runs that were to begin: none does."""
    begun: list[Any] = []
    monkeypatch.setattr("dpladder.estimator.follow", lambda command, *_: begun.append(command) or 1)
    return begun


def classifier(**more: Any) -> PrivateClassifier:
    given = {
        "lineage": "patients",
        "nominal_size": 1000,
        "classes": ["well", "ill"],
        "columns": COLUMNS,
    } | more
    if given["columns"] is None and "bounds" not in more:  # rows of whose length nothing is asked
        given = {"features.length": 32.0} | given
    return PrivateClassifier(1.0, **given)


def patients(count: int = 1500) -> tuple[pd.DataFrame, Any]:
    random = np.random.default_rng(0)
    age, sex = random.uniform(0, 100, count), random.choice(["f", "m"], count)
    ill = age + 20 * (sex == "m") + random.normal(0, 5, count) > 60
    return pd.DataFrame({"age": age, "sex": sex}), np.where(ill, "ill", "well")


def test_parameters_are_scikit_learns_with_config_keys_among_them() -> None:
    model = classifier(**{"learner.name": "dp_adam"})
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(epsilon=2.0, **{"final.steps": 9}).get_params()["final.steps"] == 9
    assert model.epsilon == 2.0


def test_a_fit_writes_a_project_that_the_command_line_understands(tmp_path: Path) -> None:
    people, _ = patients()
    said = classifier(lifetime=8.0, **{"learner.name": "dp_adam"}).plan(people)
    assert "final model at epsilon = 1.0000" in said
    config = yaml.safe_load((tmp_path / "dpladder-projects/patients/config.yaml").read_text())
    assert config["learner"] == {"name": "dp_adam"}
    assert config["privacy"]["lifetime"] == {"epsilon": 8.0}
    assert not (tmp_path / "home" / "released").exists()


@pytest.mark.parametrize(
    "change",
    [
        {"classes": None},
        {"nominal_size": None},
        {"lineage": None},
        {"columns": None},
        {"columns": {"weight": (0, 200)}},
    ],
    ids="-".join,
)
def test_what_is_not_declared_is_refused_before_anything_is_read(
    change: dict[str, Any], approved: Callable[..., None], tmp_path: Path
) -> None:
    people, labels = patients(20)
    with pytest.raises(BadInput) as refused:
        classifier(**change).fit(people, labels)
    approved(str(refused.value))
    assert not [*tmp_path.rglob("records.*")]


@pytest.mark.parametrize(
    ("records", "labels"),
    [
        (np.zeros((4, 2, 2, 2, 2)), [0] * 4),
        (np.array([["a", "b"]]), [0]),
        (np.zeros((4, 2)), [0, 1]),
        (np.zeros((4, 2)), np.eye(2)[[0, 1, 0, 1]]),
        (np.zeros((4, 2)), None),
        (np.zeros((4, 2)), 1),
        (None, [0] * 4),
        ([[1.0], [1.0, 2.0]], [0, 1]),
        (np.zeros(4), [0] * 4),
        (np.zeros((4, 0)), [0] * 4),
        (np.zeros((4, 2)) * 1j, [0] * 4),
        (np.zeros((4, 2), object), [0] * 4),
        (np.zeros((4, 8, 8)), [0] * 4),
        (np.zeros((4, 8, 8, 5), np.uint8), [0] * 4),
    ],
)
def test_records_that_cannot_be_used_are_refused(
    records: Any, labels: Any, approved: Callable[..., None], no_run: list[Any]
) -> None:
    with pytest.raises(BadInput) as refused:
        classifier(columns=None, classes=[0, 1]).fit(records, labels)
    approved(str(refused.value))
    assert not no_run


def test_records_of_which_hardly_any_counts_are_refused(no_run: list[Any]) -> None:
    with pytest.raises(BadInput, match=r"19[89] of 200"):
        classifier(columns=None, classes=[0, 1]).fit(np.full((200, 2), np.nan), [0] * 200)
    assert not no_run


DAYS = pd.date_range("2020-01-01", periods=60)
UNREAD = {
    "days": DAYS,
    "days with a zone": DAYS.tz_localize("UTC"),
    "days as objects": pd.Series([*DAYS.date]),
    "spans of time": pd.to_timedelta(np.arange(60), unit="h"),
    "months": pd.period_range("2020-01", periods=60, freq="M"),
    "complex": np.arange(60) * 1j,
    "bytes": [b"f", b"m"] * 30,
}


@pytest.mark.parametrize("values", UNREAD.values(), ids=UNREAD)
@pytest.mark.parametrize("said", [(0, 100), None, ["yes", "no"]], ids=["range", "number", "levels"])
def test_a_column_of_which_its_declaration_reads_nothing_is_refused_for_nothing(
    values: Any, said: Any, no_run: list[Any], tmp_path: Path
) -> None:
    """Every record would count as nothing, and a count that says so be charged."""
    people, labels = patients(60)
    with pytest.raises(BadInput, match=r"columns: age holds no.*; its type is .*Nothing was spent"):
        classifier(columns=COLUMNS | {"age": said}).fit(people.assign(age=values), labels)
    assert not no_run
    assert not [*tmp_path.rglob("config.yaml")]


@pytest.mark.parametrize(
    "labels", [[True, False], DAYS[:2], [b"i", b"w"], [1, 0], np.array([1j, 2]), [None, None]]
)
def test_labels_of_which_none_names_a_class_are_refused_for_nothing(
    labels: Any, no_run: list[Any], tmp_path: Path
) -> None:
    people, _ = patients(60)
    with pytest.raises(BadInput, match=r"y: none of its 60 labels is .*Nothing was spent"):
        classifier().fit(people, [*labels] * 30)
    assert not no_run
    assert not [*tmp_path.rglob("config.yaml")]


def handed_over(model: PrivateClassifier, X: Any, y: Any, **more: Any) -> Any:
    """What a fit laid down for its run, which does not begin."""
    with pytest.raises(Refused, match="stopped"):
        model.fit(X, y, **more)
    config = yaml.safe_load((model.project_ / "config.yaml").read_text("utf-8"))["dataset"]
    with contextlib.chdir(model.project_):
        columns = restored_columns(config.get("columns", ()))
        return open_source(config["source"], Layout(columns))


TRUTH = [True, False, True, True] * 15


@pytest.mark.parametrize("said", [(0, 1), [False, True], [0, 1], (False, True)], ids=str)
@pytest.mark.parametrize(
    "values",
    [
        np.array(TRUTH),
        pd.array([*TRUTH[:-1], None], "boolean"),
        [*TRUTH[:-1], None],
        [*map(int, TRUTH)],
    ],
    ids=["bool", "nullable", "objects", "numbers"],
)
def test_truth_is_0_and_1_in_columns_labels_and_classes(
    said: Any, values: Any, no_run: list[Any]
) -> None:
    people, _ = patients(60)
    truth = pd.Series(values)
    model = classifier(columns={"age": (0, 100), "smokes": said}, classes=[False, True])
    source = handed_over(model, people.assign(smokes=truth), truth)
    for row in range(59):
        wanted = (
            [2.0 * TRUTH[row] - 1] if isinstance(said, tuple) else [1.0 - TRUTH[row], TRUTH[row]]
        )
        assert source.read(row)[1:].tolist() == wanted
    assert source.labels[:59] == [str(int(one)) for one in TRUTH[:59]]
    assert [*handed_over(classifier(classes=[0, 1]), people, truth).labels] == [*source.labels]


def test_what_a_mask_hides_is_missing_in_records_labels_and_ids(no_run: list[Any]) -> None:
    random = np.random.default_rng(0)
    matrix = np.ma.array(random.normal(size=(60, 2)), mask=np.zeros((60, 2), bool))
    labels = np.ma.array(np.arange(60) % 2, mask=np.arange(60) == 1)
    ids = np.ma.array(np.arange(60), mask=np.arange(60) < 2)
    matrix[0, 1] = np.ma.masked
    model = classifier(columns=None, classes=[0, 1])
    for given in (labels, labels[:, None], [*labels]):
        source = handed_over(model, matrix, given, ids=ids)
        assert np.isnan(source.read(0)).tolist() == [False, True]
        assert [*map(str, source.labels[:4])] == ["0", "", "0", "1"]
        assert [*map(str, source.ids[:3])] == ["", "", "2"]


@pytest.mark.parametrize("said", [(0, 1, 2), ("f", "m"), (1,), np.array(["f", "m"]), {1, 2}, "fm"])
def test_a_range_is_a_pair_and_levels_are_a_list(said: Any) -> None:
    people, _ = patients(60)
    with pytest.raises(BadInput, match=r"range as a pair.*levels as a list"):
        classifier(columns={"age": said}).plan(people)


def test_a_list_of_two_numbers_has_levels(no_run: list[Any]) -> None:
    people, labels = patients(60)
    stages = people.assign(age=np.arange(60) % 3)
    source = handed_over(
        classifier(columns={"age": [1, 2]}, **{"dataset.equal_rows": "one_record"}), stages, labels
    )
    assert [source.read(row).tolist() for row in range(3)] == [[0, 0], [1, 0], [0, 1]]


@pytest.mark.parametrize("act", ["plan", "fit"])
def test_a_project_that_somebody_made_is_not_written_over(
    act: str, no_run: list[Any], tmp_path: Path
) -> None:
    people, labels = patients(60)
    (tmp_path / "made").mkdir()
    config = tmp_path / "made" / "config.yaml"
    config.write_text("# mine\ndataset: {lineage: patients}\n")
    model = classifier(project=tmp_path / "made")
    with pytest.raises(BadInput, match=r"somebody else wrote.*Name another folder"):
        model.plan(people) if act == "plan" else model.fit(people, labels)
    assert [path.name for path in (tmp_path / "made").iterdir()] == ["config.yaml"]
    assert config.read_text().startswith("# mine")
    assert not no_run


@pytest.mark.parametrize(
    "change",
    [
        {"columns": ["age", "sex"]},
        {"columns": {"age": 5}},
        {"columns": {"age": (100, 0)}},
        {"columns": {0: (0, 1)}},
        {"classes": "well"},
        {"classes": ["well"]},
        {"epsilon": "one"},
        {"epsilon": -1},
        {"epsilon": float("nan")},
        {"lifetime": "long"},
        {"nominal_size": "many"},
        {"lineage": "../patients"},
        {"lineage": 3},
        {"project": "taken"},
        {"learner.nme": "dp_adam"},
        {"privacy.epsilon.more": 1},
        {"learner.momentum": 1j},
        {"final.targets": 2.0},
    ],
    ids="-".join,
)
def test_parameters_that_cannot_be_are_refused(
    change: dict[str, Any], approved: Callable[..., None], no_run: list[Any]
) -> None:
    Path("taken").touch()
    people, labels = patients(200)
    with pytest.raises(BadInput) as refused:
        classifier().set_params(**change).fit(people, labels)
    approved(str(refused.value))
    assert not no_run


@pytest.mark.parametrize(
    "change", [{"epsilon": -1}, {"learner.nme": "dp_adam"}, {"respend": ["nobody"]}], ids="-".join
)
def test_a_plan_and_a_fit_refuse_the_same_mistake_alike(
    change: dict[str, Any], no_run: list[Any]
) -> None:
    people, labels = patients(200)
    model = classifier().set_params(**change)
    told = []
    for act in (lambda: model.plan(people), lambda: model.fit(people, labels)):
        with pytest.raises(BadInput) as refused:
            act()
        told.append(str(refused.value))
    assert told[0] == told[1]
    assert not no_run


@pytest.mark.parametrize(
    ("columns", "renamed", "wanted"),
    [
        ({"label": (0, 100), "sex": ["f", "m"]}, {"age": "label"}, "label has a meaning"),
        ({"id": (0, 100), "sex": ["f", "m"]}, {"age": "id"}, "id has a meaning"),
        ({"age": (0, 100), "sex": None}, {}, "sex holds no number"),
    ],
)
def test_columns_that_a_source_cannot_hold_are_refused(
    columns: dict[str, Any], renamed: dict[str, str], wanted: str, no_run: list[Any]
) -> None:
    people, labels = patients(200)
    with pytest.raises(BadInput, match=wanted):
        classifier(columns=columns).fit(people.rename(columns=renamed), labels)
    assert not no_run


def test_records_that_a_missing_number_loses_are_told(no_run: list[Any]) -> None:
    people, labels = patients(200)
    people.loc[:9, "age"] = np.nan
    columns = {"age": {"range": (0, 100), "missing": 40}, "sex": ["f", "m"]}
    with warnings.catch_warnings(action="error"), pytest.raises(Refused):
        classifier(columns=columns).fit(people, labels)  # a figure stands for them: nobody is lost
    some = pytest.warns(UserWarning, match='without a number in age.*"missing"')
    with some, pytest.raises(Refused):
        classifier(columns={"age": (0, 100), "sex": ["f", "m"]}).fit(people, labels)
    assert len(no_run) == 2


def test_ids_that_many_records_share_are_refused(no_run: list[Any]) -> None:
    people, labels = patients(200)
    with pytest.raises(BadInput, match="199 of 200 ids stand more than once"):
        classifier().fit(people, labels, ids=["a"] * 200)
    assert not no_run


def test_lists_tensors_columns_of_labels_and_numpy_numbers_are_taken(no_run: list[Any]) -> None:
    matrix, labels = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    for records, told, classes in (
        (matrix.tolist(), labels.tolist(), [0, 1]),
        (torch.tensor(matrix), torch.tensor(labels), np.array([0, 1])),
        (matrix, labels[:, None], np.array([0, 1], np.float32)),
    ):
        keys = {"learner.momentum": np.float64(0.5)}
        model = classifier(columns=None, classes=classes, **keys)
        with pytest.raises(Refused, match="stopped"):
            model.fit(records, told)
        with np.load(model.project_ / "data" / "records.npz") as written:
            assert written["labels"].tolist() == [*map(str, labels)]
    assert len(no_run) == 3


def test_what_a_record_lacks_decides_nothing_about_others(no_run: list[Any]) -> None:
    """pandas makes floats of a column's integers, and of ids, where one of them is missing."""
    X, y = patients()
    X, ids = X.assign(age=range(len(X))), pd.Series(range(len(X)))
    written = []
    for _ in range(2):
        model = classifier()
        with pytest.raises(Refused):
            model.fit(X, y, ids=ids)
        [records] = Path().glob("**/data/records.frame")
        written.append(rows_in(records.read_bytes())[1])
        X.loc[len(X) - 1, "age"] = np.nan
        ids.iloc[-1] = np.nan
    assert written[0][:-1] == written[1][:-1]
    assert written[0][-1] != written[1][-1]


@pytest.mark.parametrize(
    "strange", [{"age": "old"}, {"sex": 1.5}, {"seen": pd.Timestamp(9, unit="s")}]
)
def test_a_value_of_another_kind_decides_nothing_about_others(
    strange: dict[str, Any], no_run: list[Any]
) -> None:
    """pandas writes a column in another way where a word, or an hour, stands in it. Without ids
    all others would be known by other rows then, lie in other parts and lose their levels."""
    people = [
        {"age": float(np.float32(row) / 3), "sex": float(row % 2), "seen": pd.Timestamp(2020, 1, 1)}
        for row in range(1, 9)
    ]
    declared = {"age": (0, 100), "sex": ["0", "1"], "seen": ["2020-01-01"]}
    written = []
    for last in ({}, strange):
        table = pd.DataFrame([*people, people[0] | {"age": 77.0} | last])
        table = table if last else table.astype({"age": np.float32})
        with pytest.raises(Refused):
            classifier(columns=declared).fit(table, ["ill", "well", "ill"] * 3)
        [records] = Path().glob("**/data/records.frame")
        written.append(rows_in(records.read_bytes())[1])
    assert written[0][:-1] == written[1][:-1]
    assert written[0][0][1:] == ["1", "2020-01-01", "ill"]


ODD = [*map(chr, range(32)), *'",;\t|\\ \x7f\x85\u2028\ufeff\ud800\udfffaé1']


def odd_texts(random: np.random.Generator, count: int) -> list[str]:
    return ["".join(random.choice(ODD, random.integers(1, 9))) for _ in range(count)]


@pytest.mark.parametrize("seed", range(6))
def test_rows_of_any_text_are_handed_over_row_for_row(
    seed: int, no_run: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cell that became a record of its own would let one person move sums any number of times."""
    monkeypatch.setattr(tables, "BLOCK_ROWS", 10)
    random, count = np.random.default_rng(seed), 40
    names = [f"n{place}{name}" for place, name in enumerate(odd_texts(random, 3))]
    cells = [odd_texts(random, count) for _ in names]
    # pandas' own texts hold no half of a surrogate pair
    table = pd.DataFrame(
        np.array(cells, object).T, columns=pd.Index(names, dtype=object), dtype=object
    )
    words = [f"{place}{name}" for place, name in enumerate(odd_texts(random, 4))]
    labels = [words[row % 4] for row in range(count)]
    ids = [f"{row}{text}" for row, text in enumerate(odd_texts(random, count))]
    levels = {name: (column[0], "other") for name, column in zip(names, cells, strict=True)}
    model = classifier(classes=words, columns={name: [*both] for name, both in levels.items()})
    with contextlib.suppress(Refused, BadInput):  # a config may refuse a name, which is public
        model.fit(table, labels, ids=ids)
    path = model.project_ / "data" / "records.frame"
    wanted = [[*row] for row in zip(*cells, labels, ids, strict=True)]
    assert rows_in(path.read_bytes()) == ([*names, "label", "id"], wanted)
    columns = tuple(Column.model_construct(name=name, levels=both) for name, both in levels.items())
    source = open_source(f"frame:{path}", Layout(columns))
    assert len(source.labels) == count
    for place, column in enumerate(cells):
        first = [float(level_as_text(cell) == level_as_text(column[0])) for cell in column]
        assert [source.read(row)[2 * place] for row in range(count)] == first


def test_rows_forged_in_a_cell_or_an_id_are_one_record_each(no_run: list[Any]) -> None:
    people, labels = patients(60)
    forged = "m\n" + "1,m,ill\n" * 100 + '"'
    ids = [*map(str, range(59)), forged]
    people.loc[59, "sex"] = forged
    model = classifier()
    with pytest.raises(Refused, match="stopped"):
        model.fit(people, labels, ids=ids)
    config = yaml.safe_load((model.project_ / "config.yaml").read_text("utf-8"))
    with contextlib.chdir(model.project_):
        source = open_source(config["dataset"]["source"], Layout(("age",)))
    assert (len(source.labels), len(source.ids or ())) == (60, 60)


def test_records_that_fit_did_not_write_whole_are_refused(tmp_path: Path) -> None:
    whole = frame_as_bytes({"age": ["1", None], "label": ["ill", "well"]})
    assert [*open_source_of(whole, tmp_path).labels] == ["ill", "well"]
    other = pa.BufferOutputStream()
    with pa.ipc.new_file(other, pa.schema([("0", pa.binary())])) as file:
        file.write_batch(pa.record_batch([pa.array([b"1"])], ["0"]))
    for broken in (b"", whole[:-3], whole[: len(whole) // 2], b"1\n2\n", other.getvalue()):
        with pytest.raises(BadInput, match=r"Call fit again"):
            open_source_of(broken, tmp_path)


def rows_in(content: bytes) -> tuple[list[str], list[list[str | None]]]:
    names, batches = frame_in(content)
    columns = [
        [
            None if cell is None else text_of(cell)
            for one in batches
            for cell in one[place].to_pylist()
        ]
        for place in range(len(names))
    ]
    return names, [[*row] for row in zip(*columns, strict=True)]


def open_source_of(content: Any, folder: Path) -> Any:
    (folder / "records.frame").write_bytes(content)
    return open_source(f"frame:{folder / 'records.frame'}", Layout(("age",)))


def test_a_label_that_is_a_word_makes_no_words_of_others(no_run: list[Any]) -> None:
    matrix, labels = np.random.default_rng(0).normal(size=(60, 2)), [0.0, 1.0] * 30
    model = classifier(columns=None, classes=[0, 1])
    with pytest.raises(Refused, match="stopped"):
        model.fit(matrix, [*labels[:-1], "unknown"])
    with np.load(model.project_ / "data" / "records.npz") as written:
        assert written["labels"].tolist() == [*["0", "1"] * 29, "0", ""]


def test_a_column_that_stands_twice_is_refused() -> None:
    people, labels = patients(20)
    twice = pd.concat([people, people[["age"]]], axis=1)
    with pytest.raises(BadInput, match="age more than once"):
        classifier().fit(twice, labels)


def search_a_grid(model: PrivateClassifier, people: Any, labels: Any) -> None:
    GridSearchCV(model, {"epsilon": [1.0]}, error_score="raise").fit(people, labels)


def cross_validate(model: PrivateClassifier, people: Any, labels: Any) -> None:
    cross_val_score(model, people, labels, error_score="raise")


@pytest.mark.parametrize("tune", [search_a_grid, cross_validate])
def test_tuning_that_nobody_pays_for_is_refused(tune: Any, tmp_path: Path) -> None:
    people, labels = patients(60)
    with pytest.raises(Refused, match="choosing by scores that nobody paid for"):
        tune(classifier(), people, labels)
    assert not (tmp_path / "dpladder-projects").exists()


def two_classes(people: Any) -> tuple[Any, Any]:
    return np.stack([people.age, people.age + 1.0], axis=1), (people.age > 60).astype(int)


AROUND: dict[str, Callable[[Any], Any]] = {
    "AdaBoostClassifier": lambda model: ensemble.AdaBoostClassifier(model),
    "AdaBoostRegressor": lambda model: ensemble.AdaBoostRegressor(model),
    "BaggingClassifier": lambda model: ensemble.BaggingClassifier(model),
    "BaggingRegressor": lambda model: ensemble.BaggingRegressor(model),
    "CalibratedClassifierCV": lambda model: CalibratedClassifierCV(model),
    "ClassifierChain": lambda model: multioutput.ClassifierChain(model),
    "ColumnTransformer": lambda model: ColumnTransformer([("a", model, [0])]),
    "FeatureUnion": lambda model: pipeline.FeatureUnion([("a", model)]),
    "FixedThresholdClassifier": lambda model: model_selection.FixedThresholdClassifier(model),
    "FrozenEstimator": lambda model: FrozenEstimator(model),
    "GridSearchCV": lambda model: GridSearchCV(model, {"epsilon": [1]}, error_score="raise"),
    "HalvingGridSearchCV": lambda model: model_selection.HalvingGridSearchCV(
        model, {"epsilon": [1]}, error_score="raise"
    ),
    "HalvingRandomSearchCV": lambda model: model_selection.HalvingRandomSearchCV(
        model, {"epsilon": [1, 2]}, error_score="raise"
    ),
    "MultiOutputClassifier": lambda model: multioutput.MultiOutputClassifier(model),
    "MultiOutputRegressor": lambda model: multioutput.MultiOutputRegressor(model),
    "OneVsOneClassifier": lambda model: multiclass.OneVsOneClassifier(model),
    "OneVsRestClassifier": lambda model: multiclass.OneVsRestClassifier(model),
    "OutputCodeClassifier": lambda model: multiclass.OutputCodeClassifier(model, random_state=0),
    "Pipeline": lambda model: make_pipeline(FunctionTransformer(), model),
    "RANSACRegressor": lambda model: RANSACRegressor(model, min_samples=10),
    "RFE": lambda model: feature_selection.RFE(model),
    "RFECV": lambda model: feature_selection.RFECV(model),
    "RandomizedSearchCV": lambda model: model_selection.RandomizedSearchCV(
        model, {"epsilon": [1]}, n_iter=1, error_score="raise"
    ),
    "RegressorChain": lambda model: multioutput.RegressorChain(model),
    "SelectFromModel": lambda model: feature_selection.SelectFromModel(model),
    "SelfTrainingClassifier": lambda model: SelfTrainingClassifier(model),
    "SequentialFeatureSelector": lambda model: feature_selection.SequentialFeatureSelector(model),
    "StackingClassifier": lambda model: ensemble.StackingClassifier([("a", model)]),
    "StackingRegressor": lambda model: ensemble.StackingRegressor([("a", model)]),
    "TransformedTargetRegressor": lambda model: TransformedTargetRegressor(model),
    "TunedThresholdClassifierCV": lambda model: model_selection.TunedThresholdClassifierCV(model),
    "VotingClassifier": lambda model: ensemble.VotingClassifier([("a", model)]),
    "VotingRegressor": lambda model: ensemble.VotingRegressor([("a", model)]),
}
AS_IT_IS = {"Pipeline", "TransformedTargetRegressor"}  # it is fitted once, on what was given
IN_OTHER_WORDS = {  # scikit-learn's own, before any fit
    "AdaBoostClassifier": "sample_weight",
    "ColumnTransformer": "fit and transform",
    "FeatureUnion": "should implement fit and transform",
    "FrozenEstimator": "not fitted",
    "StackingRegressor": "should be a regressor",
    "VotingRegressor": "should be a regressor",
}


def test_every_meta_estimator_of_scikit_learn_is_known() -> None:
    """A new one that fits copies would take one model's answers for all of them."""
    asks = {"estimator", "estimators", "steps", "transformers", "transformer_list"}
    takes = {
        name
        for name, kind in all_estimators()
        if asks & {*inspect.signature(kind.__init__).parameters}
    }
    assert takes <= {*AROUND}


@pytest.mark.parametrize("name", AROUND)
def test_a_meta_estimator_is_refused_in_a_sentence_or_fits_what_it_was_given(
    name: str, no_run: list[Any]
) -> None:
    """Each copy would write other records or labels under the same version, and take the first
    one's answers."""
    records, labels = two_classes(patients(60)[0])
    several = labels.to_numpy()[:, None] if "MultiOutput" in name or "Chain" in name else labels
    around = AROUND[name](classifier(columns=None, classes=[0, 1]))
    wanted = (
        "stopped" if name in AS_IT_IS else IN_OTHER_WORDS.get(name, "cannot be fitted by scikit")
    )
    with pytest.raises(Exception, match=wanted):
        around.fit(records, several)
    assert len(no_run) == (name in AS_IT_IS)
    for path in Path().glob("**/records.npz"):
        with np.load(path) as written:
            assert written["features"].tolist() == records.tolist()
            assert written["labels"].tolist() == [*map(str, labels)]


class Centred(FunctionTransformer):  # type: ignore[misc]
    """It learns, and has the tags of what does not."""

    def fit(self, X: Any, y: Any = None) -> Any:
        self.middle_ = np.mean(X, axis=0)
        return super().fit(X, y)


def by_value(X: Any) -> list[int]:
    return [int(np.argmax(np.var(X, axis=0)))]


SCALED = {
    "standardscaler": (StandardScaler(),),
    "simpleimputer": (SimpleImputer(),),
    "pca": (Normalizer(), PCA(1)),
    "columntransformer.numbers": (ColumnTransformer([("numbers", StandardScaler(), [0])]),),
    "columntransformer.remainder": (ColumnTransformer([], remainder=StandardScaler()),),
    "columntransformer.a (a function": (ColumnTransformer([("a", "passthrough", by_value)]),),
    "featureunion.b.standardscaler": (
        FeatureUnion([("a", Normalizer()), ("b", make_pipeline(StandardScaler()))]),
    ),
    "centred": (Centred(),),
    "kbinsdiscretizer": (FrozenEstimator(StandardScaler().fit([[0.0] * 2])), KBinsDiscretizer()),
}


@pytest.mark.parametrize("name", SCALED)
def test_a_step_that_learns_from_all_records_is_refused_by_name(
    name: str, no_run: list[Any], tmp_path: Path
) -> None:
    """One value of 1e9 in one record moves what a StandardScaler makes of all others."""
    records, labels = two_classes(patients(60)[0])
    around = make_pipeline(*SCALED[name], classifier(columns=None, classes=[0, 1]))
    with pytest.raises(Refused, match=f"step {re.escape(name)}.* learns from all records") as no:
        make_pipeline(FunctionTransformer(), around).fit(records, labels)
    assert "columns" in str(no.value)
    assert not no_run
    assert not (tmp_path / "dpladder-projects").exists()


def test_steps_of_numbers_to_predict_that_learn_are_refused(no_run: list[Any]) -> None:
    records, labels = two_classes(patients(60)[0])
    model = dpladder.PrivateRegressor(
        1.0, lineage="stays", nominal_size=60, target_range=(0, 1), project="stays"
    )
    with pytest.raises(Refused, match=r"step transformer \(StandardScaler\) learns"):
        TransformedTargetRegressor(model, transformer=StandardScaler()).fit(records, labels)
    assert not no_run


def test_steps_that_look_at_one_record_at_a_time_are_taken(no_run: list[Any]) -> None:
    records, labels = two_classes(patients(60)[0])
    public = FrozenEstimator(StandardScaler().fit(np.arange(8.0).reshape(4, 2)))
    columns = ColumnTransformer(
        [("a", Binarizer(threshold=50), [0]), ("b", "passthrough", make_column_selector("more"))],
        remainder="drop",
    )
    steps = (columns, public, FeatureUnion([("c", Normalizer()), ("d", PolynomialFeatures())]))
    frame = pd.DataFrame(records, columns=["age", "more"])
    with pytest.raises(Refused, match="stopped"):
        make_pipeline(*steps, "passthrough", classifier(columns=None, classes=[0, 1])).fit(
            frame, labels
        )
    assert len(no_run) == 1


@pytest.mark.parametrize(
    ("bounds", "ranges"),
    [
        ((0, 100), [[0.0, 100.0], [0.0, 100.0]]),
        (([0, -1], [100, 1]), [[0.0, 100.0], [-1.0, 1.0]]),
        ((np.float32(0), np.array([9, 8])), [[0.0, 9.0], [0.0, 8.0]]),
    ],
)
def test_a_matrix_with_bounds_is_a_table_whose_columns_have_ranges(
    bounds: Any, ranges: list[Any], no_run: list[Any]
) -> None:
    """Its rows were scaled to one length: of one column nothing was left but a sign."""
    records, labels = two_classes(patients(60)[0])
    model = classifier(columns=None, bounds=bounds, classes=[0, 1])
    with pytest.raises(Refused, match="stopped"):
        model.fit(csr_matrix(records), labels)
    config = yaml.safe_load((model.project_ / "config.yaml").read_text())
    assert config["dataset"]["columns"] == [
        {"name": f"x{place}", "range": ends} for place, ends in enumerate(ranges)
    ]
    names, rows = rows_in((model.project_ / "data/records.frame").read_bytes())
    assert names == ["x0", "x1", "label"]
    assert [float(row[0] or "nan") for row in rows] == records[:, 0].tolist()
    loaded = estimator._columns_of(config["dataset"]["columns"])
    assert np.array_equal(loaded["bounds"], np.transpose(ranges))


@pytest.mark.parametrize(
    ("more", "X", "says"),
    [
        ({"bounds": (0, 0)}, np.ones((4, 2)), "of the 2 columns of X"),
        ({"bounds": (0, [1, 2, 3])}, np.ones((4, 2)), "of the 2 columns of X"),
        ({"bounds": (0, math.inf)}, np.ones((4, 2)), "of the 2 columns of X"),
        ({"bounds": 7}, np.ones((4, 2)), "of the 2 columns of X"),
        ({"bounds": (0, 1)}, pd.DataFrame({"age": [1.0] * 4}), "those of a matrix"),
        ({"bounds": (0, 1)}, np.ones((4, 8, 8), np.uint8), "those of a matrix"),
        ({"columns": COLUMNS}, np.ones((4, 20)), "those of a DataFrame"),
    ],
)
@pytest.mark.parametrize("act", ["plan", "fit"])
def test_bounds_that_cannot_be_are_refused(
    more: dict[str, Any], X: Any, says: str, act: str, no_run: list[Any]
) -> None:
    model = classifier(**{"columns": None, "classes": [0, 1], **more})
    with pytest.raises(BadInput, match=says):
        model.plan(X) if act == "plan" else model.fit(X, [0, 1, 0, 1])
    assert not no_run


def test_a_matrix_without_bounds_is_refused_or_said_to_have_directions_alone(
    no_run: list[Any],
) -> None:
    random = np.random.default_rng(0)
    few, many, labels = random.normal(size=(60, 15)), random.normal(size=(60, 16)), [0, 1] * 30
    plain = {"lineage": "patients", "nominal_size": 60}
    model = PrivateClassifier(1.0, classes=[0, 1], **plain)
    number = dpladder.PrivateRegressor(1.0, target_range=(0, 1), **plain)
    for refused, X in ((model, few), (number, few), (number, many)):
        with pytest.raises(BadInput, match=r"without bounds.*bounds=\(low, high\)"):
            refused.plan(X)
        with pytest.raises(BadInput, match=r"without bounds.*bounds=\(low, high\)"):
            refused.fit(X, labels)
    assert "directions alone count" in model.plan(many)
    with (
        pytest.warns(UserWarning, match="directions alone count"),
        pytest.raises(Refused, match="stopped"),
    ):
        model.fit(many, labels)
    said = model.set_params(**{"features.length": 32.0})
    assert "directions" not in said.plan(few)


@pytest.mark.parametrize("kind", ["frame", "matrix"])
def test_other_labels_of_the_same_rows_are_refused_with_the_price_of_asking_anew(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model would be restored: that of the first labels, whatever the others mean."""
    people, _ = patients(60)
    records, ill = two_classes(people)
    X, columns = (people, COLUMNS) if kind == "frame" else (records, None)

    def follow(_: Any, folder: Path) -> int:
        released = folder / "results/main/final/1/weights.safetensors"
        released.parent.mkdir(parents=True, exist_ok=True)
        released.touch()
        return 0

    monkeypatch.setattr("dpladder.estimator.follow", follow)
    monkeypatch.setattr(PrivateClassifier, "_load_release", lambda _: None)
    model = classifier(columns=columns, classes=[0, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, ill).fit(X, ill)
    before = {path: path.read_bytes() for path in model.project_.rglob("*.*") if path.is_file()}
    with pytest.raises(
        Refused, match=r"other labels now.*dataset\.version\": 2.*all of this"
    ) as no:
        model.fit(X[:40], 1 - ill[:40])
    assert "epsilon = 1.0000" in str(no.value)
    after = {path: path.read_bytes() for path in model.project_.rglob("*.*") if path.is_file()}
    assert after == before
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(**{"dataset.version": 2}).fit(X, 1 - ill)
    with pytest.warns(UserWarning, match=r"not those of the last fit.*float32.*version\": 3"):
        model.fit(X[20:], 1 - ill[20:])


def test_fits_in_two_threads_run_in_folders_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that belonged to the process would be that of whoever came last."""
    here, together, folders = Path.cwd(), Barrier(2, timeout=100), []

    def follow(command: Any, folder: Path) -> int:
        together.wait()
        assert Path.cwd() == here
        assert str(folder / "config.yaml") in command
        folders.append(folder.name)
        return 1

    def fit(lineage: str) -> None:
        with pytest.raises(Refused, match=r"stopped: .*has all that was said"):
            classifier(lineage=lineage).fit(*patients(60))

    monkeypatch.setattr("dpladder.estimator.follow", follow)
    with ThreadPoolExecutor(2) as pool:
        assert [*pool.map(fit, ["a", "b"])] == [None, None]
    assert sorted(folders) == ["a", "b"]


def test_a_second_fit_in_a_folder_changes_nothing_under_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would lay its records and its epsilon under a run that goes on, whose model the first one
    then takes for its own."""
    people, labels = patients(60)

    def follow(_: Any, folder: Path) -> int:
        before = {path: path.read_bytes() for path in folder.rglob("*.*") if path.is_file()}
        other = classifier().set_params(epsilon=8.0)
        for act in (lambda: other.fit(people[:40], labels[:40]), lambda: other.plan(people)):
            with pytest.raises(Refused, match="another run goes on"):
                act()
        after = {path: path.read_bytes() for path in folder.rglob("*.*") if path.is_file()}
        assert after == before
        return 1

    monkeypatch.setattr("dpladder.estimator.follow", follow)
    with pytest.raises(Refused, match=r"stopped: .*has all that was said"):
        classifier().fit(people, labels)


def test_a_loaded_classifier_asks_the_same_question(
    no_run: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the keys that it was fitted with, its next fit would be another one, and be paid."""
    monkeypatch.setattr(PrivateClassifier, "_load_release", lambda _: None)
    people, labels = patients(60)
    keys = {"learner.name": "dp_ls", "learner.radius": 2.0, "final.targets": [1.0, 2.0]}
    model = classifier(lifetime=8.0, **keys)
    with pytest.raises(Refused):
        model.fit(people, labels)
    written = (model.project_ / "config.yaml").read_text("utf-8")
    loaded = PrivateClassifier.load(model.project_)
    with pytest.raises(Refused):
        loaded.fit(people, labels)
    again = (model.project_ / "config.yaml").read_text("utf-8")
    assert yaml.safe_load(again) == yaml.safe_load(written)
    assert len(no_run) == 2


@pytest.mark.parametrize(
    "column",
    [
        {"range": [0.0, 100.0], "monotone": "up"},
        {"range": [0.0, 100.0], "knots": [18.0, 65.0]},
        {"range": [0.0, 100.0], "missing": 40.0},
        (0.0, 100.0),
        ["f", "m"],
        None,
    ],
)
def test_a_loaded_estimator_knows_all_that_was_said_of_a_column(column: Any) -> None:
    written = [estimator._column("age", column)]
    assert estimator._columns_of(written) == {"columns": {"age": column}}


def test_nothing_is_predicted_before_a_fit() -> None:
    with pytest.raises(NotFittedError):
        classifier().predict(patients(3)[0])


@pytest.mark.ci
def test_a_fit_is_a_run_of_the_workflow_and_the_second_one_is_free(tmp_path: Path) -> None:
    people, labels = patients()
    people = people.assign(smokes=labels == "ill")
    columns = COLUMNS | {"smokes": [False, True]}
    model = make_pipeline(FunctionTransformer(), classifier(columns=columns))
    model.fit(people, labels)
    fitted = model[-1]
    assert model.score(people, labels) > 0.7
    assert 0.9 < fitted.epsilon_ <= 1.0
    as_numbers = people.assign(smokes=people.smokes.astype(int))
    assert np.array_equal(fitted.predict(as_numbers), fitted.predict(people))
    others = people.assign(smokes=~people.smokes)
    assert not np.array_equal(fitted.predict_proba(others), fitted.predict_proba(people))
    assert "Privacy statement" in fitted.statement_._repr_markdown_()
    again = classifier(columns=columns).fit(people, labels)
    assert np.array_equal(again.model_.weights[0], fitted.model_.weights[0])
    written = fitted.project_ / "results" / "privacy.md"
    signed = written.read_text("utf-8")
    assert fitted.statement_ == signed
    written.write_text(signed.replace("epsilon = 1", "epsilon = 0.1"))
    loaded = PrivateClassifier.load(fitted.project_)
    assert loaded.statement_ == signed != written.read_text("utf-8")
    written.write_text(signed)
    assert np.array_equal(loaded.predict(people), fitted.predict(people))
    mixed = people[["smokes", "sex", "age"]]
    assert np.array_equal(loaded.predict(mixed), fitted.predict(people))
    with pytest.raises(BadInput, match="no column sex"):
        fitted.predict(people[["age", "smokes"]])
    said = subprocess.run(
        [sys.executable, "-m", "dpladder", "verify", str(fitted.project_ / "results")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 0, said.stderr


@pytest.mark.ci
def test_an_exception_says_why_a_run_stopped(capfd: pytest.CaptureFixture[str]) -> None:
    """A script that keeps the exception, and no terminal, had "the line above says why"."""
    dpladder.Ledger("patients", epsilon=8.0, delta=1e-5).count("n", [1], epsilon=0.1)
    with pytest.raises(Refused, match=r"stopped: lineage patients .*\. What is done is kept"):
        classifier(lifetime=8.0).fit(*patients())
    assert capfd.readouterr().err.count("dpladder: lineage patients") == 1


@pytest.mark.long
def test_a_fit_under_other_terms_and_two_fits_at_once_pay_once(tmp_path: Path) -> None:
    people, labels = patients()
    people.assign(label=labels).to_csv(tmp_path / "people.csv", index=False)
    fit = (
        "import pandas, dpladder\n"
        "people = pandas.read_csv('people.csv')\n"
        "dpladder.PrivateClassifier(1.0, lineage='patients', nominal_size=1000, lifetime=8.0,\n"
        "    classes=['well', 'ill'], columns={'age': (0, 100), 'sex': ['f', 'm']},\n"
        "    **{'sweep.rungs': []}).fit(people[['age', 'sex']], people.label)\n"
    )
    runs = [
        subprocess.Popen([sys.executable, "-c", fit], cwd=tmp_path, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    said = [run.communicate()[1].decode() for run in runs]
    assert 0 in [run.returncode for run in runs], said
    for run, words in zip(runs, said, strict=True):
        assert run.returncode == 0 or "another run goes on" in words
    held = spent()
    released = PrivateClassifier.load(classifier().project_).predict(people)
    turned, others = {"classes": ["ill", "well"]}, {"classes": ["ill", "well", "dead"]}
    for change in ({"delta": 1e-5}, {"lifetime": 9.0} | others, {"lifetime": 9.0} | turned):
        model = classifier(**{"lifetime": 8.0, "sweep.rungs": []} | change)
        with pytest.raises(Refused, match=r"stopped: .*lineage patients"):
            model.fit(people, labels)
        if change.get("classes") == others["classes"]:
            with pytest.raises(BadInput, match="knows classes well, ill"):
                PrivateClassifier.load(model.project_)
    assert spent() == held
    # the model is still the first fit's, whatever the refused ones named
    loaded = PrivateClassifier.load(model.project_)
    assert loaded.classes_.tolist() == ["well", "ill"]
    assert np.array_equal(loaded.predict(people), released)
    model = classifier(**{"lifetime": 8.0, "sweep.rungs": []})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        weights = model.fit(people, labels).model_.weights[0]
    with pytest.warns(UserWarning, match="these rows are not those of the last fit"):
        model.fit(people.assign(age=people.age / 2), labels)
    assert np.array_equal(model.model_.weights[0], weights)
    assert spent() == held
    with pytest.raises(BadInput, match="the DataFrame has no column sex"):
        model.predict(people.rename(columns={"sex": "gender"}))


@pytest.mark.long
def test_a_second_model_of_a_lineage_is_stated_with_the_first(tmp_path: Path) -> None:
    people, labels = patients()
    model = classifier(**{"sweep.rungs": [], "features.centre": "none"}).fit(people, labels)
    assert model.epsilon_ <= 1.0
    model.set_params(**{"epsilon": 2.0, "final.targets": [1.0, 2.0]}).fit(people, labels)
    with_the_first = " and all releases before it included."
    assert f"costs epsilon = {model.epsilon_:.4f}, its search{with_the_first}" in model.statement_
    # the folder says which of its models is meant
    loaded = PrivateClassifier.load(model.project_)
    assert (loaded.epsilon, loaded.epsilon_) == (2.0, model.epsilon_)
    assert np.array_equal(loaded.model_.weights[0], model.model_.weights[0])


def test_a_total_that_is_none_of_several_is_refused_before_anything_is_spent(
    no_run: list[Any],
) -> None:
    model = classifier(**{"final.targets": [0.5, 2.0]})
    with pytest.raises(BadInput, match=r"epsilon is 1\.0, and final\.targets has other totals"):
        model.fit(*patients(60))
    assert not no_run


def spent() -> tuple[Spend, ...]:
    return book.load(Ledger(open_home(), "patients")).charged_spends()


@pytest.mark.ci
def test_a_sparse_matrix_that_memory_cannot_hold_is_refused_before_it_is_written_out() -> None:
    wide = csr_matrix((3, 2**40))
    with pytest.raises(BadInput, match="1,099,511,627,776 columns written out need more memory"):
        classifier(columns=None, classes=[0, 1], nominal_size=600).fit(wide, [0, 1, 0])


@pytest.mark.long
def test_numbers_sparse_rows_and_missing_labels_are_taken(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    labels = random.integers(0, 3, 900)
    rows = np.eye(3)[labels] + random.normal(0, 0.2, (900, 3))
    given = np.where(random.uniform(size=900) < 0.1, np.nan, labels)
    model = classifier(columns=None, classes=[0, 1, 2], nominal_size=600)
    model.fit(csr_matrix(rows), given)
    assert model.score(rows, labels) > 0.8
    assert set(model.predict(rows)) <= {0, 1, 2}
    with pytest.raises(BadInput, match="1 of 2 records cannot be read"):
        model.predict([[1.0, 0.0, 0.0], [np.nan, 0.0, 0.0]])
    loaded = PrivateClassifier.load(model.project_)
    np.testing.assert_array_equal(loaded.predict(rows), model.predict(rows), strict=True)


def test_it_is_a_public_name() -> None:
    assert "PrivateClassifier" in dpladder.__all__


def test_equal_rows_without_ids_are_refused_with_two_ways_out(tmp_path: Path) -> None:
    few = np.tile([[0.0, 1.0], [1.0, 0.0]], (100, 1))
    labels = [0, 1] * 100
    with pytest.raises(BadInput, match=r"198 of 200 rows equal.*ids=.*dataset\.equal_rows"):
        classifier(columns=None, classes=[0, 1]).fit(few, labels)


UNDECLARED = [
    "check_estimators_overwrite_params",
    "check_dont_overwrite_parameters",
    "check_readonly_memmap_input",
    "check_estimators_fit_returns_self",
    "check_n_features_in_after_fitting",
    "check_estimators_dtypes",
    "check_positive_only_tag_during_fit",
    "check_dtype_object",
    "check_pipeline_consistency",
    "check_fit1d",
    "check_estimator_sparse_tag",
    "check_estimator_sparse_array",
    "check_estimator_sparse_matrix",
    "check_estimators_pickle",
    "check_f_contiguous_array_estimator",
    "check_classifier_data_not_an_array",
    "check_classifiers_classes",
    "check_classifiers_train",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_fit2d_1feature",
    "check_dict_unchanged",
    "check_fit_idempotent",
    "check_fit_check_is_fitted",
    "check_n_features_in",
    "check_fit2d_predict1d",
    "check_fit_score_takes_y",
    "check_supervised_y_2d",
    "check_complex_data",
    "check_requires_y_none",
]
ONE_RECORD = [
    "check_estimators_empty_data_messages",
    "check_estimators_nan_inf",
    "check_classifiers_one_label",
    "check_classifiers_regression_target",
    "check_supervised_y_no_nan",
    "check_fit2d_1sample",
]
KEYS = ["check_no_attributes_set_in_init"]


def test_of_scikit_learns_checks_those_fail_that_privacy_rules_out() -> None:
    reasons = {
        **dict.fromkeys(UNDECLARED, "nobody declared what reading the data would reveal"),
        **dict.fromkeys(ONE_RECORD, "whether it fails would hang on one record"),
        **dict.fromkeys(KEYS, "keys of the config are parameters too"),
    }
    found = check_estimator(PrivateClassifier(), on_fail=None, on_skip=None)
    failed = {one["check_name"] for one in found if one["status"] == "failed"}
    assert failed == {*reasons}


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("heading", ["A private classifier in a notebook", "A private regressor"])
def test_the_notebook_of_the_page_runs(heading: str, tmp_path: Path) -> None:
    page = (Path(__file__).parents[1] / "docs" / "api.md").read_text("utf-8")
    section = page.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    cells = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    names: dict[str, Any] = {}
    for cell in cells:
        exec(cell, names)
    model = names["model"]
    assert model.epsilon_ <= 1.0
    assert model.score(names["X"], names["y"]) > 0.9
