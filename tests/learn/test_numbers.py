"""Numbers as targets: sums with a constant, ridge, scorer, tables and figures, each beside plain
NumPy."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from counted import cells_of
from support import Seeded, SmoothMeter, answer_of

from dpladder.config.dataset_sections import NumberTarget
from dpladder.config.label_sets import NUMBER, TARGET_STEPS
from dpladder.config.model import Resources
from dpladder.errors import BadInput
from dpladder.learn.bounds import SLACK
from dpladder.learn.data import Data
from dpladder.learn.interface import Constants, Hyper
from dpladder.learn.measures.numbers import NumberScale, scale_of
from dpladder.learn.measures.tables import (
    TABLES,
    AbsoluteErrors,
    CellTable,
    MeasuredModel,
    RightAndWrong,
    Sizes,
    Squares,
    exact,
    figures_of_counts,
    released,
)
from dpladder.learn.measures.tested import CountTable
from dpladder.learn.moments import to_matrix
from dpladder.learn.queries import ResidualSum, SecondMoments, WeighedSums, declared
from dpladder.learn.scorers import NumberScorer
from dpladder.learn.trainings import declare, scorer_of, train
from dpladder.methods.dp_ridge import Ridge
from dpladder.privacy.accounting.events import mu
from dpladder_audit.engine.records import NUMBERS, ZERO_RECORD, data_of

DIMENSION, COUNT, RADIUS = 4, 700, 1.5  # more than one chunk, the last filled up
CONSTANTS = Constants(COUNT, 1, DIMENSION, labels=NUMBER)
NAMED: dict[str, Any] = {"name": "sums", "multiplier": 1.0}
RANDOM = np.random.default_rng(3)


def records(count: int = COUNT) -> Data:
    """Numbers that follow from features, and records that count as nothing."""
    features = RANDOM.normal(size=(count, DIMENSION))
    places = np.clip(0.5 + features @ [0.1, -0.2, 0.0, 0.05], 0.0, 1.0)
    labels = np.round(places * TARGET_STEPS).astype(np.int64)
    labels[::9], labels[4::50] = -1, TARGET_STEPS + 1
    features[7::60], features[3::80] = 0.0, np.nan
    features[5::70] = 1e30
    return Data(features.astype(np.float32), labels)


def in_plain_numpy(data: Data, radius: float, constant: float) -> tuple[Any, Any]:
    """What records in the ball are, with a constant if there is one, and where their numbers lie,
    from -1 to 1."""
    x = data.features.astype(np.float64)
    lengths = np.linalg.norm(x, axis=1)
    counts = (data.labels >= 0) & (data.labels <= TARGET_STEPS) & (lengths > 0) & (lengths < 1e15)
    x, inside = x[counts], radius * (1 - SLACK)
    x = x * np.minimum(1.0, inside / lengths[counts])[:, None]
    y = 2.0 * data.labels[counts] / TARGET_STEPS - 1.0
    return np.c_[x, np.full(len(x), constant * inside)] if constant else x, y


@pytest.mark.parametrize("constant", [0.0, 0.5, 1.0])
def test_sums_with_a_constant_are_those_of_plain_numpy(constant: float) -> None:
    data = records()
    x, y = in_plain_numpy(data, RADIUS, constant)
    assert 0 < len(x) < COUNT
    moments = SecondMoments(**NAMED, radius=RADIUS, constant=constant)
    sums = WeighedSums(**NAMED, radius=RADIUS, by="number", constant=constant)
    found = np.asarray(to_matrix(answer_of(moments.at(), data, CONSTANTS)))
    assert found == pytest.approx(x.T @ x, rel=1e-5, abs=1e-3)
    found = np.asarray(answer_of(sums.at(), data, CONSTANTS))
    assert found == pytest.approx((y @ x)[None], rel=1e-5, abs=1e-3)


HOSTILE = [*NUMBERS, ((1e14, -1e14, 1e14), 0), ((1e30, 0.0, 0.0), 0), ((np.inf, 0, 0), 0)]
KINDS = [
    WeighedSums(**NAMED, radius=RADIUS, by="number"),
    WeighedSums(**NAMED, radius=RADIUS, by="number", constant=0.5),
    SecondMoments(**NAMED, radius=RADIUS, constant=0.5),
]


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("query", KINDS, ids=["numbers", "numbers, constant", "moments, constant"])
def test_no_record_moves_a_sum_further_than_its_noise_is_for(query: Any, relation: Any) -> None:
    constants = Constants(9, 1, 3, relation, cap=2, labels=NUMBER)

    def summed(*units: Any) -> Any:
        return np.asarray(answer_of(query.at(), data_of([ZERO_RECORD, *units], cap=2), constants))

    others = [summed(unit) for unit in HOSTILE] if relation == "replace_one" else [summed()]
    moved = [np.linalg.norm(summed(unit) - other) for unit in HOSTILE for other in others]
    assert all(map(math.isfinite, moved))
    assert 0.99 * query.sensitivity(constants) < max(moved) <= query.sensitivity(constants)


def test_queries_of_classes_refuse_numbers_and_those_of_numbers_refuse_classes() -> None:
    for query in (WeighedSums(**NAMED, radius=1.0), ResidualSum(**NAMED, radius=1.0)):
        with pytest.raises(BadInput, match=r"dataset\.target is a number"):
            declared([query], CONSTANTS)
    with pytest.raises(BadInput, match="declares none"):
        declared([KINDS[0]], replace(CONSTANTS, labels=1, classes=2))


# --- ridge ---


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("share", [0.2, 0.5])
def test_ridge_declares_what_it_may_spend(share: float, relation: Any) -> None:
    constants = replace(CONSTANTS, relation=relation, cap=3)
    for constant in (0.0, 0.5):
        costs = declare(Ridge(share=share, constant=constant), Hyper(1.0, 1, 0.7), constants)
        each = [mu(counted.event) * math.sqrt(counted.count) for counted in costs.events]
        assert math.hypot(*each) == pytest.approx(0.7, rel=1e-9)
        assert len(costs.draws) == 2


@pytest.mark.parametrize("constant", [0.0, 0.5])
@pytest.mark.parametrize("ridge", [1e-3, 0.5])
def test_ridge_without_noise_is_least_squares_whose_eigenvalues_are_raised(
    ridge: float, constant: float
) -> None:
    data, hyper = records(), Hyper(1 / ridge, 1, 1e9)  # hardly any noise
    learner, constants = Ridge(radius=1.2, constant=constant), replace(CONSTANTS, length=2.0)
    meter = SmoothMeter(declare(learner, hyper, constants).draws, Seeded())
    weights = train(data, hyper, learner, constants, meter, Resources(threads=1))
    meter.close()
    x, y = in_plain_numpy(data, 2.4, constant)
    values, vectors = np.linalg.eigh(x.T @ x / COUNT)
    theta = vectors @ (vectors.T @ (y @ x / COUNT) / np.maximum(values, ridge))
    if constant:
        theta[-1] *= 2.4 * constant
    assert weights[0].shape == (1, DIMENSION + bool(constant))
    assert weights[0] == pytest.approx(theta[None], abs=2e-3)
    shares = scorer_of(learner, constants).shares(weights, data.features[:5], data.labels[:5])
    said = data.features[:5] @ theta[:DIMENSION] + (theta[-1] if constant else 0.0)
    off = np.clip((1 + said) / 2, 0, 1) - data.labels[:5] / TARGET_STEPS
    right = np.where(data.labels[:5] >= 0, 1 - off**2, 0.0)
    known = np.isfinite(said)
    assert shares[known] == pytest.approx(right[known], abs=2e-3)


# --- scorer, tables and figures ---

TARGET = NumberTarget(column="age", range=(20.0, 60.0))
LARGEST = 10.0  # error that is counted
SAID = np.array([-1.0, 0.0, 0.2, 1e9, np.nan, -np.inf, 0.1, 0.3])  # from -1 to 1
PLACES = np.array([0.0, 0.5, 0.5, 1.0, 0.4, 0.9, 0.62, 0.3])
OFF = np.array([0.0, 0.0, 0.4, 0.0, 0.4, 1.0, 0.28, 1.0])  # in largest errors, cut to 1


def model() -> MeasuredModel:
    """It says of each record what its one feature is."""
    constants = Constants(100, 1, 1, labels=NUMBER)
    weights = (np.ones((1, 1)),)
    return MeasuredModel(weights, NumberScorer(), constants, (), target=TARGET, error=LARGEST)


def eight_records(unknown: bool = False) -> Data:
    labels = np.round(PLACES * TARGET_STEPS).astype(np.int64)
    return Data(SAID[:, None], np.where(unknown, -1, labels))


def test_a_record_counts_by_how_far_its_number_is_off() -> None:
    of = model()
    shares = of.scorer.shares(of.weights, eight_records().features, eight_records().labels)
    off = np.abs((1 + np.clip(np.nan_to_num(SAID), -1, 1)) / 2 - PLACES)
    assert shares == pytest.approx(1 - off**2, abs=1e-7)
    assert not of.scorer.shares(
        of.weights, eight_records().features, eight_records(True).labels
    ).any()


def test_tables_of_numbers_are_those_of_plain_numpy() -> None:
    squares = [
        [len(OFF) - (OFF**2).sum(), (OFF**2).sum(), 0.0],
        [(PLACES**2).sum(), (PLACES - PLACES**2).sum(), (1 - PLACES).sum()],
    ]
    wanted: dict[str, tuple[CellTable, Any]] = {
        "absolute": (AbsoluteErrors(), [len(OFF) - OFF.sum(), OFF.sum()]),
        "squares": (Squares(), squares),
        "right": (RightAndWrong(), squares[0][:2]),
    }
    for table, counts in wanted.values():
        assert cells_of(table, model(), eight_records()) == pytest.approx(
            np.array(counts), abs=1e-6
        )
        assert not cells_of(table, model(), eight_records(True)).any()


def test_each_table_of_numbers_is_priced_for_what_a_record_may_move_it() -> None:
    for table in (AbsoluteErrors(), Squares(), RightAndWrong()):
        moved = []
        for said in (*SAID, 1e30):
            for label in (-1, 0, 1, TARGET_STEPS // 2, TARGET_STEPS, TARGET_STEPS + 1, 2**62):
                one = Data(np.array([[said]]), np.array([label]))
                moved.append(float(np.linalg.norm(cells_of(table, model(), one))))
        bound = table.query(model(), 1.0).bound(model().constants)
        assert 0.99 * bound < max(moved) <= bound + 1e-9


def test_a_look_at_numbers_counts_each_record_once_in_each_row() -> None:
    looking = replace(model(), error=None)
    look, one = cells_of(Sizes(), looking, eight_records()), Data(SAID[:1, None], np.zeros(1, int))
    assert look.sum(axis=1).tolist() == [8, 8]
    assert np.linalg.norm(cells_of(Sizes(), looking, one)) == Sizes().query(looking, 1.0).bound(
        looking.constants
    )
    assert not cells_of(Sizes(), looking, eight_records(True)).any()


def noised_look(errors: Any, places: Any, sd: float, seed: int = 2) -> dict[str, Any]:
    cells = NumberScale.cells(np.asarray(errors), np.asarray(places))
    counts = np.stack([np.bincount(column, minlength=40) for column in cells.T]).astype(float)
    return {"sizes": (counts + sd * np.random.default_rng(seed).normal(size=counts.shape), sd)}


def test_a_look_says_where_to_cut_and_nothing_where_noise_hides_it() -> None:
    """Errors of a hundredth of the range, and numbers in all of it."""
    random = np.random.default_rng(0)
    errors, places = np.abs(random.normal(0, 0.01, 2000)), random.random(2000)
    found = scale_of(noised_look(errors, places, 5.0), (0.0, 70.0), None)
    assert 0.03 < found.cut < 0.1
    assert found.largest == 70.0 * found.cut
    assert found.errors(np.array([0.0, found.cut / 2, 0.9])).tolist() == [0.0, 0.5, 1.0]
    assert found.deviation is not None
    assert found.deviation.value == pytest.approx(places.std(), rel=0.3)
    with_tail = scale_of(
        noised_look([*errors, *[0.8] * 100], [*places, *[0.4] * 100], 5.0), (0, 1), None
    )
    assert with_tail.cut > 0.8
    hidden = scale_of(noised_look(errors[:50], places[:50], 20.0), (0.0, 70.0), None)
    assert (hidden.cut, hidden.centre, hidden.half, hidden.deviation) == (1.0, 0.5, 0.5, None)


def test_a_spread_that_a_lucky_draw_shows_is_no_larger_than_its_interval_says() -> None:
    """Stays of a few days, whose spread noise nearly hides: where it was shown it was too large,
    beyond its interval in half of the draws, and R² with it."""
    random = np.random.default_rng(0)
    stays = np.minimum(random.exponential(0.2, (400, 865)), 1.0)
    true = np.minimum(random.exponential(0.2, 100_000), 1.0).std()
    shown = [
        scale_of(noised_look(places / 5, places, 10.5, seed), (0.0, 1.0), None).deviation
        for seed, places in enumerate(stays)
    ]
    lows = [one.interval[0] for one in shown if one is not None]
    assert lows
    assert sum(low > true for low in lows) <= 3  # it was 18 of the 47 shown


def many() -> tuple[Data, Any, Any]:
    """A test part, with the numbers and the predictions in units of the target."""
    places = RANDOM.beta(2, 3, size=3000)
    said = 2 * places - 1 + RANDOM.normal(scale=0.15, size=3000)
    data = Data(said[:, None], np.round(places * TARGET_STEPS).astype(np.int64))
    return data, 20 + 40 * places, 20 + 40 * np.clip((1 + said) / 2, 0, 1)


def test_figures_of_numbers_without_noise_are_those_of_plain_numpy() -> None:
    data, numbers, predicted = many()
    errors = np.minimum(np.abs(predicted - numbers), 10.0)
    found = figures_of_counts(exact(("rmse", "mae", "r2"), model(), data))
    rmse = math.sqrt((errors**2).mean())
    wanted = {"rmse": rmse, "mae": errors.mean(), "r2": 1 - (rmse / numbers.std()) ** 2}
    for name, value in wanted.items():
        figure = found.figures[name]
        assert figure is not None
        assert figure.value == pytest.approx(value, rel=1e-4)
        assert figure.sd == 0.0
    assert found.range == (20.0, 60.0)


def test_the_noise_in_figures_of_numbers_is_as_large_as_it_is_said_to_be() -> None:
    """2,000 draws of noise. Means lie within 4 deviations over the root of 2,000 and a hundredth
    of one, and deviations within 8 % of what is said."""
    data, *_ = many()
    random, sd, draws = np.random.default_rng(1), 6.0, 2000
    bought = ("right_and_wrong", "squares", "absolute_errors")
    counts = {holds: cells_of(TABLES[holds], model(), data) for holds in bought}
    for tables in (("right_and_wrong", "absolute_errors"), ("squares", "absolute_errors")):
        told: dict[str, list[Any]] = {}
        for place in range(draws + 1):
            noise = sd if place else 0.0
            noised = {
                holds: CountTable(
                    (counts[holds] + noise * random.normal(size=counts[holds].shape)).tolist(),
                    noise,
                )
                for holds in tables
            }
            for name, figure in figures_of_counts(released(model(), noised)).figures.items():
                told.setdefault(name, []).append(figure)
        assert {*told} == {"rmse", "mae", "rmse_of_mean", "r2"}
        if "squares" not in tables:  # nothing says where numbers lie
            for name in ("rmse_of_mean", "r2"):
                assert told.pop(name) == [None] * (draws + 1)
        for exactly, *drawn in told.values():
            values = np.array([one.value for one in drawn])
            spread, said = values.std(), np.mean([one.sd for one in drawn])
            assert abs(values.mean() - exactly.value) < (4 / math.sqrt(draws) + 0.01) * spread
            assert said == pytest.approx(spread, rel=0.08)


def test_figures_that_noise_hides_are_not_told() -> None:
    few = Data(np.full((3, 1), 0.1), np.full(3, TARGET_STEPS // 2))
    tables = {
        holds: CountTable(cells_of(TABLES[holds], model(), few).tolist(), 5.0)
        for holds in ("squares", "absolute_errors")
    }
    figures = figures_of_counts(released(model(), tables)).figures
    assert figures["rmse"] is None
    assert figures["mae"] is None
    assert figures["r2"] is None


def test_what_counts_as_nothing_has_no_constant() -> None:
    """Nor have the rows that fill up chunks."""
    data = Data(np.ones((5, DIMENSION), np.float32), np.full(5, -1))
    for query in KINDS:
        assert not np.asarray(answer_of(query.at(), data, CONSTANTS)).any()
