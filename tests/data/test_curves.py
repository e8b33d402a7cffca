"""Curves of a table's numbers: hat functions on knots beside the number itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dpladder.config.curves import curves_of
from dpladder.data.centre import Map
from dpladder.data.columns import column_as_json, matrix_of, restored_columns
from dpladder.privacy.arrays import curves_width, with_curves
from dpladder.use import graph, standalone

COLUMNS = restored_columns(
    [
        {"name": "sex", "levels": ["f", "m"]},
        {"name": "age", "range": [0.0, 100.0]},
        {"name": "dose", "range": [0.0, 999.0], "scale": "log", "knots": [9.0, 99.0]},
        {"name": "year", "range": [1900.0, 2000.0], "curve": False},
        {"name": "height", "range": [1.0, 2.0], "missing": 1.5, "mark_missing": True, "knots": 2},
        "as it is",
    ]
)
PEOPLE = {
    "sex": ["f", "m"],
    "age": [25.0, 130.0],
    "dose": [0.0, 99.0],
    "year": [1950.0, 1950.0],
    "height": [None, 1.75],
    "as it is": [7.0, 8.0],
}
numbers = st.lists(st.floats(-3, 3), min_size=1, max_size=9)


def rows_of(columns: Any, people: dict[str, Any]) -> Any:
    return matrix_of(columns, people.__getitem__)


def test_a_row_has_its_numbers_and_the_hats_of_those_that_are_curves() -> None:
    rows, curves = rows_of(COLUMNS, PEOPLE), curves_of(COLUMNS, 4)
    assert rows[:, 3] == pytest.approx([-1.0, 1 / 3])  # thirds of the logarithm of one more
    whole = with_curves(rows, curves)
    assert np.array_equal(whole[:, : rows.shape[1]], rows)
    age, dose, height = np.split(whole[:, rows.shape[1] :], [5, 9], axis=1)
    assert age.tolist() == [[0, 1, 0, 0, 0], [0, 0, 0, 0, 1]]
    assert dose == pytest.approx(np.array([[1.0, 0, 0, 0], [0, 0, 1, 0]]), abs=1e-12)
    assert height.tolist() == [[0, 1, 0], [0, 0.5, 0.5]]
    assert whole.shape[1] == rows.shape[1] + curves_width(curves)
    assert Map(curves=curves).width(rows.shape[1]) == whole.shape[1]
    assert np.array_equal(Map(curves=curves)(rows), whole.astype(np.float32))


def test_columns_of_lines_alone_are_as_they_were() -> None:
    assert curves_of(COLUMNS[:2], 0) == ()
    assert Map().facts == Map(curves=curves_of(COLUMNS[:2], 0)).facts
    assert "curves" not in Map().facts


@settings(max_examples=50, deadline=None)
@given(numbers, st.lists(st.floats(-0.99, 0.99), max_size=5, unique=True))
def test_a_sum_of_hats_is_the_curve_through_its_knots(xs: list[float], inner: list[float]) -> None:
    knots = np.array([-1.0, *sorted(inner), 1.0])
    if (np.diff(knots) < 1e-6).any():
        return
    heights = np.cos(3 * knots)
    curves = (((0, tuple(knots.tolist())),),)
    hats = with_curves(np.array(xs)[:, None], curves)[:, 1:]
    assert hats @ heights == pytest.approx(np.interp(xs, knots, heights), abs=1e-9)
    assert hats.sum(axis=1) == pytest.approx(1.0)


def test_a_block_of_two_bases_has_all_their_products() -> None:
    rows = np.array([[0.5, 1.0, 0.0, -1.0]])
    curves = (((0, (-1.0, 0.0, 1.0)), (1, 2)), ((0, (-1.0, 1.0)), (3, (-1.0, 1.0))))
    found = with_curves(rows, curves)[0, 4:]
    assert found.tolist() == [0, 0, 0.5, 0, 0.5, 0, 0.25, 0, 0.75, 0]
    assert curves_width(curves) == len(found)


def test_a_cross_multiplies_hats_or_levels_and_a_line_has_two_hats() -> None:
    crosses = [("height", "sex"), ("year", "age")]
    rows = rows_of(COLUMNS, PEOPLE)
    for pieces in (0, 4):
        alone, curves = curves_of(COLUMNS, pieces), curves_of(COLUMNS, pieces, crosses)
        assert curves[: len(alone)] == alone
        hats, ages = 3, pieces + 1 if pieces else 2
        assert [curves_width([block]) for block in curves[len(alone) :]] == [hats * 2, 2 * ages]
        products = with_curves(rows, curves)[:, rows.shape[1] + curves_width(alone) :]
        assert products[:, :6].tolist() == [[0, 0, 1, 0, 0, 0], [0, 0, 0, 0.5, 0, 0.5]]
        assert products[:, 6:].sum(axis=1) == pytest.approx(1.0)
        assert products[0, 6 : 6 + ages] == pytest.approx(products[0, 6 + ages :])  # 1950 is amid


def test_exports_make_the_same_numbers() -> None:
    rows, curves = rows_of(COLUMNS, PEOPLE), curves_of(COLUMNS, 4, [("age", "sex")])
    people = [dict(zip(PEOPLE, cells, strict=True)) for cells in zip(*PEOPLE.values(), strict=True)]
    told = [column_as_json(column) for column in COLUMNS]
    for module in (standalone, graph):
        assert np.array(module.rows_of(told, people)) == pytest.approx(rows)
    tensors = with_curves(torch.from_numpy(rows), curves, torch)
    assert np.array_equal(tensors.numpy(), with_curves(rows, curves))


@pytest.mark.parametrize(
    ("column", "says"),
    [
        ({"knots": 3}, "need a range"),
        ({"scale": "log"}, "need a range"),
        ({"range": [-1.0, 1.0], "scale": "log"}, "begins at 0 or above"),
        ({"range": [0.0, 1.0], "knots": [0.5], "curve": False}, "knots are of curves"),
        ({"range": [0.0, 1.0], "knots": [0.5, 0.5]}, "above the one before"),
        ({"range": [0.0, 1.0], "knots": [1.0]}, "inside the range"),
    ],
)
def test_knots_that_make_no_curve_are_refused(column: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        restored_columns([{"name": "x", **column}])
