"""A linear head of a table is a sum over columns: what each adds, and how much of that is noise."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from dpladder.config.curves import curves_of
from dpladder.data.centre import Map
from dpladder.data.columns import column_as_json, matrix_of, restored_columns
from dpladder.learn import score
from dpladder.learn.effects import effects_of

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
    """Weights that differ by such noise alone have curves that differ by it."""
    clean, told = head(2), facts(2)
    told["calibration"] = {"slope": 0.4}  # of the weights as they are released
    noise, runs = 0.4 * 0.5 / 2.0, 4000
    sums = effects_of(clean, told)
    assert sums is not None
    bands = {one.columns: one.sd for one in sums.effects().each}
    drawn: dict[Any, list[Any]] = {columns: [] for columns in bands}
    for _ in range(runs):
        moved = (clean[0] + RANDOM.normal(scale=noise, size=clean[0].shape),)
        noised = effects_of(moved, told)
        assert noised is not None
        for one in noised.effects().each:
            drawn[one.columns].append(one.values[0])
    for columns, sd in bands.items():
        found = np.std(drawn[columns], axis=0)
        assert found == pytest.approx(np.array(sd), rel=0.08, abs=1e-9)


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
