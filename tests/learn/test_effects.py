"""A linear head of a table is a sum over columns: what each adds, and how much of that is noise."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpladder.config.curves import curves_of
from dpladder.config.dataset_sections import NumberTarget
from dpladder.config.label_sets import MANY
from dpladder.data.centre import Map
from dpladder.data.columns import column_as_json, matrix_of, restored_columns
from dpladder.learn import score
from dpladder.learn.effects import effects_of, with_monotone

RANDOM = np.random.default_rng(3)
COLUMNS = restored_columns(
    [
        {"name": "age", "range": [0.0, 100.0]},
        {"name": "sex", "levels": ["f", "m"]},
        {"name": "dose", "range": [0.0, 999.0], "scale": "log"},
        {"name": "height", "range": [1.0, 2.0], "missing": 1.5, "mark_missing": True},
    ]
)
CURVES = curves_of(COLUMNS, 4, [("age", "sex")])
PEOPLE = {
    "age": [3.0, 50.0, 99.0],
    "sex": ["f", "m", "x"],
    "dose": [0.0, 7.0, 900.0],
    "height": [1.2, None, 1.9],
}
ROWS = matrix_of(COLUMNS, PEOPLE.__getitem__)
STORED = ROWS.shape[1]
CENTRED = RANDOM.normal(size=Map(curves=CURVES).width(STORED)) / 5


def facts(classes: int, **changes: Any) -> dict[str, Any]:
    """What a model's file says of itself."""
    inference = {
        "classes": [f"class {one}" for one in range(classes)],
        "columns": [column_as_json(one) for one in COLUMNS],
        "map": Map(CENTRED, 9.0, None, 0.0, False, None, CURVES).facts,
    }
    config = {"learner": {"name": "dp_gd"}, "features.typical": 2.0}
    return {"inference": inference | changes, "config": config, "kappa": 0.5}


def head(classes: int) -> tuple[Any, ...]:
    """Random weights, the bias last."""
    return (RANDOM.normal(size=(classes, len(CENTRED) + 1)).astype(np.float32),)


@pytest.mark.parametrize("classes", [1, 2, 3])
def test_a_prediction_is_the_sum_of_its_terms(classes: int) -> None:
    told = facts(classes) if classes > 1 else facts(1, range=[10.0, 30.0])
    weights = head(classes)
    sums = effects_of(weights, told)
    assert sums is not None
    terms = sums.terms(ROWS, CENTRED)
    assert [*terms] == ["age", "sex", "dose", "height", "age x sex"]
    logits = score.logits(weights, Map(CENTRED, 9.0, None, 0.0, curves=CURVES)(ROWS))
    shown = logits @ sums.sums.T
    rest = shown - sum(terms.values())
    assert rest == pytest.approx(np.broadcast_to(rest[:1], rest.shape), abs=1e-4)
    if classes == 2:
        assert shown[:, 0] == pytest.approx(logits[:, 1] - logits[:, 0])


def test_a_column_s_curve_is_what_its_number_adds() -> None:
    sums = effects_of(head(2), facts(2))
    assert sums is not None
    effects = sums.effects()
    assert effects.of == ("class 1",)
    assert [one.spread for one in effects.each] == sorted(
        (one.spread for one in effects.each), reverse=True
    )
    for effect in effects.each:
        [values], places = effect.values, [*product(*effect.at)]
        assert np.mean(values) == pytest.approx(0.0, abs=1e-9)
        assert effect.spread == pytest.approx(np.ptp(values))
        people = {other: [cells[0]] * len(places) for other, cells in PEOPLE.items()}
        people |= {
            name: [*at] for name, at in zip(effect.columns, zip(*places, strict=True), strict=True)
        }
        rows = matrix_of(COLUMNS, people.__getitem__)
        name = " x ".join(effect.columns)
        assert sums.terms(rows, CENTRED)[name][:, 0] == pytest.approx(values)


def test_a_band_is_the_deviation_of_isotropic_noise_in_the_weights() -> None:
    """A curve is a sum over weights, so its variance is that of one weight times what each of them
    moves it by, squared."""
    clean, told = head(2), facts(2)
    told["calibration"] = {"slope": 0.4}  # of the weights as they are released
    sums = effects_of(clean, told)
    assert sums is not None
    effects = sums.effects().each
    squares = [np.zeros(len(one.values[0])) for one in effects]
    for place in np.ndindex(clean[0].shape):
        moved = clean[0].astype(np.float64)
        moved[place] += 1.0
        noised = effects_of((moved,), told)
        assert noised is not None
        by_columns = {one.columns: one.values[0] for one in noised.effects().each}
        for square, one in zip(squares, effects, strict=True):
            square += (np.array(by_columns[one.columns]) - one.values[0]) ** 2
    for square, one in zip(squares, effects, strict=True):
        assert 0.4 * 0.5 / 2.0 * np.sqrt(square) == pytest.approx(np.array(one.sd), abs=1e-6)


@pytest.mark.parametrize(
    "changes",
    [
        {"map": Map(CENTRED, 9.0, 32.0, 0.2, curves=CURVES).facts},  # rows at one length
        {"map": Map(CENTRED, 1.0, None, 0.0, curves=CURVES).facts},  # long rows are cut
        {"columns": ["age"]},  # without a range
        {"columns": []},
    ],
)
def test_what_is_no_sum_has_no_curves(changes: dict[str, Any]) -> None:
    assert effects_of(head(2), facts(2, **changes)) is None
    assert effects_of((*head(2), *head(2)), facts(2)) is None


@given(
    classes=st.integers(1, 3),
    data=st.data(),
    directions=st.dictionaries(
        st.sampled_from(["age", "dose", "height"]), st.sampled_from(["up", "down"]), min_size=1
    ),
    pieces=st.sampled_from([0, 1, 4]),
)
def test_a_released_curve_rises_or_falls_alone_and_is_the_nearest_such(
    classes: int, data: st.DataObject, directions: dict[str, str], pieces: int
) -> None:
    """Of a number, of two classes and of findings; what no column names stays as it was."""
    curves = curves_of(COLUMNS, pieces)
    width = Map(curves=curves).width(STORED)
    numbers = st.floats(-9.0, 9.0, width=32)
    flat = data.draw(st.lists(numbers, min_size=classes * width, max_size=classes * width))
    head = np.array(flat, np.float32).reshape(classes, width)
    head = np.concatenate([head, np.ones((classes, 1), np.float32)], axis=1)
    target = NumberTarget(range=(10.0, 30.0)) if classes == 1 else None
    labels: Any = MANY if classes == 3 else 1
    (turned,) = with_monotone((head,), COLUMNS, curves, directions, target, labels)
    again = with_monotone((turned,), COLUMNS, curves, directions, target, labels)
    assert again[0] == pytest.approx(turned, abs=1e-4)
    for before, after in zip(
        *(shown(one, curves, target, labels) for one in (head, turned)), strict=True
    ):
        name = after.columns[0]
        if name not in directions:
            assert before == after
            continue
        sign = 1.0 if directions[name] == "up" else -1.0
        for old, new in zip(before.values, after.values, strict=True):
            scale = 10.0 if classes == 1 else 1.0
            assert np.diff(np.array(new) * sign).min() >= -1e-4 * scale
            if np.diff(np.array(old) * sign).min() >= 0.0:  # it was so already
                assert new == pytest.approx(old, abs=1e-3 * scale)


def shown(head: Any, curves: Any, target: Any, labels: Any) -> list[Any]:
    """The effects of a head, in the order of columns."""
    told = facts(len(head), map=Map(None, None, None, 0.0, curves=curves).facts)
    told["config"]["dataset.labels"] = labels
    if target is not None:
        told["inference"]["range"] = target.range
    sums = effects_of((head,), told)
    assert sums is not None
    return sorted(sums.effects().each, key=lambda one: one.columns)


def test_the_nearest_curve_pools_neighbours_that_fall() -> None:
    """Worked by hand: of a line of weight 0 and hats 1, 3, 2, 5, 4 the second and third become 2.5,
    the last two 4.5; half of a log-odds' change goes to each class."""
    columns = restored_columns([{"name": "age", "range": [0.0, 100.0]}])
    curves = curves_of(columns, 4)
    head = np.zeros((2, 7), np.float32)
    head[1, 1:6] = [1.0, 3.0, 2.0, 5.0, 4.0]
    (turned,) = with_monotone((head,), columns, curves, {"age": "up"}, None, 1)
    assert turned[0] == pytest.approx([0.0, 0.0, 0.25, -0.25, 0.25, -0.25, 0.0])
    assert turned[1] - turned[0] == pytest.approx([0.0, 1.0, 2.5, 2.5, 4.5, 4.5, 0.0])
