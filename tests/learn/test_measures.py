"""Measures from counts: which cells a record is in, what follows from noised tables, and the
deviation that their noise really has."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from counted import cells_of, figures_from
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import softmax
from scipy.stats import binomtest
from sklearn.metrics import f1_score, roc_auc_score

from dpladder.config.dataset_sections import NumberTarget
from dpladder.config.evaluate_sections import (
    MEASURES,
    OF_FINDINGS,
    OF_NUMBERS,
    TABLES_OF,
    Measure,
)
from dpladder.config.label_sets import (
    ABSENT,
    MANY,
    NUMBER,
    PRESENT,
    TARGET_STEPS,
    UNKNOWN,
    number_of,
    number_of_findings,
)
from dpladder.learn.counts import FINEST, add_up, sum_of
from dpladder.learn.data import Data
from dpladder.learn.interface import Constants
from dpladder.learn.measures import figures, ranking, tables
from dpladder.learn.measures.intervals import NoisedTables, mean_of, share
from dpladder.learn.measures.tables import (
    Answers,
    ByClass,
    ByGroup,
    MeasuredModel,
    ScoreLook,
    Standings,
)
from dpladder.learn.measures.tested import GroupNames
from dpladder.learn.scorers import ClassScorer, FindingScorer, NumberScorer, Scorer
from dpladder.privacy.accounting.rounding import NoisedFigure

RANDOM = np.random.default_rng(7)
BINS = 16  # of scores, in tests of before
HEAD = (np.zeros((3, 1), np.float32),)
GROUPS = GroupNames(("a", "b", "c"), ("a", "b", "c"), ("a", "b", "c"))


def saying(logits: list[list[float]], **facts: object) -> MeasuredModel:
    """A model that says this of each record, whatever it is."""
    scorer: Scorer = ClassScorer(
        lambda _, rows: np.array(logits, np.float64)[rows[:, 0].astype(int)]
    )
    classes = len(logits[0])
    about = ((), scorer, Constants(100, classes, 1), tuple("abc")[:classes])
    return MeasuredModel(*about, **facts)  # type: ignore[arg-type]


def records(labels: list[int], groups: list[int] | None = None) -> Data:
    rows = np.arange(len(labels), dtype=np.float32)[:, None]
    return Data(rows, np.array(labels), groups=None if groups is None else np.array(groups))


def one_hot(predicted: list[int], classes: int = 3) -> list[list[float]]:
    return np.eye(classes)[predicted].tolist()


def test_a_record_is_in_one_count_of_its_class() -> None:
    model = saying(one_hot([0, 0, 1, 1, 2, 0]))
    found = cells_of(ByClass(), model, records([0, 1, 1, -1, 2, 5]))
    assert found.tolist() == [[1, 0], [1, 1], [1, 0]]  # what names no class is in none


def test_a_table_of_answers_holds_each_record_once() -> None:
    model = saying(one_hot([0, 1, 1, 2, 2]))
    cells = cells_of(Answers(), model, records([0, 0, 1, 2, -1]))
    assert cells.tolist() == [[1.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]


def test_groups_are_counted_apart_and_a_prediction_is_right_that_is_one_of_its_records_classes():
    several = [number_of({0, 2}, 3), number_of({0, 2}, 3), 1, -1, 2]
    model = saying(one_hot([2, 1, 1, 0, 2]), groups=GROUPS)
    found = cells_of(ByGroup(), model, records(several, [0, 0, 1, 1, -1]))
    # neither a record of no group nor one of no class
    assert found.tolist() == [[1, 1], [1, 0], [0, 0]]


ODD_SCORES = [-1e300, 0.0, np.inf, 1.0, np.nan, 3.0]


def test_a_score_is_in_one_cell_and_has_one_standing_whatever_it_is() -> None:
    model = saying([[0.0, score] for score in ODD_SCORES])
    data = records([0, 1, 1, -1, 1, 0])
    look = cells_of(ScoreLook(), model, data)
    assert look.sum(axis=1).tolist() == [2, 3]
    assert (look[0, 0], look[1, -1]) == (1, 2)
    bought = {"by_class": (np.array([[1.0, 1.0], [3.0, 0.0]]), 0.0), "score_look": (look, 0.0)}
    ranks = sum_of(Standings().question(model, 1.0, bought), data, model.constants)
    # of the first class the share of the second above each, and of the second that of the first
    # below it; what is no number stands at 0. Half of the first class is below 0, so half is left
    # open of the second: .5, 1 and .5, of which one is told right, are 1 each.
    assert ranks == pytest.approx(np.array([[5 / 3, 1 / 3], [3.0, 0.0]]))


def test_where_a_score_stands_is_public_and_rises_with_it() -> None:
    """It follows from the noised look alone, however noised."""
    look = RANDOM.normal(size=(2, ranking.CELLS)) * 9.0
    bought = ranking.BoughtScores(look, 9.0, np.array([[24.0, -4.0], [-7.0, 4.0]]), 3.0)
    order, again = ranking.ranking_of(bought), ranking.ranking_of(bought)
    scores = np.sort(RANDOM.normal(size=300) * 8)
    for one in (0, 1):
        standing = order.standing(scores, one)
        assert np.array_equal(standing, again.standing(scores, one))
        assert (np.diff(standing) >= 0).all()
        assert standing.min() >= 0.0
        assert standing.max() <= 1.0
        assert np.isfinite(order.standing(np.array(ODD_SCORES), one)).all()


@pytest.mark.parametrize("findings", [False, True], ids=["two classes", "findings"])
def test_a_decision_without_noise_is_what_who_acts_at_the_threshold_gets(findings: bool) -> None:
    scores, labels = RANDOM.normal(size=900) * 2, RANDOM.integers(0, 2, 900)
    scores[0] = math.log(0.2 / 0.8)  # just there: acts
    if findings:
        scorer = FindingScorer(lambda _, rows: scores[rows[:, 0].astype(int), None])
        constants = Constants(100, 1, 1, labels=MANY)
        model = MeasuredModel((np.zeros((1, 1), np.float32),), scorer, constants, ("a",))
        numbers = [number_of_findings([int(one)]) for one in labels]
    else:
        model = saying(np.stack([0 * scores, scores], axis=1).tolist())
        numbers = labels.tolist()
    released = tables.exact(("decision",), replace(model, threshold=0.2), records(numbers))
    told = tables.figures_of_counts(released)
    assert released.threshold == told.threshold == 0.2
    acts, has = scores >= math.log(0.2 / 0.8), labels == 1
    truth = {
        "sensitivity": acts[has].mean(),
        "specificity": (~acts)[~has].mean(),
        "positive_predictive_value": has[acts].mean(),
        "negative_predictive_value": (~has)[~acts].mean(),
    }
    for name, value in truth.items():
        figure = told.figures[f"{name}_at_threshold"]
        assert figure is not None
        assert figure.value == pytest.approx(value, abs=1e-9)


def test_calibration_without_noise_is_that_of_the_predictions_themselves() -> None:
    logits = RANDOM.normal(size=(800, 3)) * 3
    labels = RANDOM.integers(-1, 3, 800)
    found = tables.exact(("calibration",), saying(logits.tolist()), records(labels.tolist()))
    known = labels >= 0
    sure = softmax(logits[known], axis=1).max(axis=1)
    right = logits[known].argmax(axis=1) == labels[known]
    bins = np.minimum((sure * 10).astype(int), 9)
    gaps = [abs((sure[bins == one] - right[bins == one]).sum()) for one in range(10)]
    told = tables.figures_of_counts(found)
    error, above = (told.figures[name] for name in ("calibration_error", "overconfidence"))
    assert error is not None
    assert above is not None
    assert error.value == pytest.approx(sum(gaps) / known.sum(), abs=1e-6)
    assert above.value == pytest.approx(sure.mean() - right.mean(), abs=1e-6)
    assert told.accuracy == right.mean()
    for one in told.reliability or ():
        inside = bins == round(one.lower * 10)
        assert one.total == pytest.approx(inside.sum(), abs=1e-6)
        if inside.any():
            assert one.confidence == pytest.approx(sure[inside].mean(), abs=1e-6)


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf, 1e308])
def test_a_record_is_as_sure_as_one_record_can_be_whatever_its_logits_are(odd: float) -> None:
    """And moves no other record, to the last bit."""
    logits = [*RANDOM.normal(size=(40, 3)).tolist(), [odd, 0.0, 1.0]]
    labels = [0, 1, 2, 0] * 10 + [1]
    without, among = (
        cells_of(tables.Confidence(), saying(logits), records(labels[:number]))
        for number in (40, 41)
    )
    assert 1.0 - 1e-8 <= np.abs(among - without).sum() <= 1.0


def test_one_record_more_moves_no_other_ones_confidence() -> None:
    """A product over more rows rounds otherwise."""
    random = np.random.default_rng(3)
    row = random.normal(size=384).astype(np.float32)
    head = (np.stack([row, random.permutation(row)]),)
    rows = random.normal(size=(300, 384)).astype(np.float32)
    labels = np.zeros(300, np.int64)
    sure, _, _ = ClassScorer().confidences(head, rows, labels)
    for end in range(1, 40):
        fewer, _, _ = ClassScorer().confidences(head, rows[:end], labels[:end])
        assert np.array_equal(fewer, sure[:end])


def test_of_findings_each_that_is_known_is_an_even_part_of_its_record() -> None:
    logits = np.array([[2.0, -1.0, 0.5], [0.2, 3.0, -4.0]])
    scorer = FindingScorer(lambda _, rows: logits[rows[:, 0].astype(int)])
    labels = [number_of_findings(own) for own in ((PRESENT, UNKNOWN, ABSENT), (UNKNOWN,) * 3)]
    model = MeasuredModel(HEAD, scorer, Constants(9, 3, 1, labels="many"), tuple("abc"))
    found = cells_of(tables.Confidence(), model, records(labels))
    assert found.sum() == pytest.approx(1.0, abs=1e-8)  # of the second nothing is known
    assert found[:, 0].sum() == pytest.approx(0.5, abs=1e-8)  # the first class is told right
    assert found[:, 1].sum() == pytest.approx(0.5, abs=1e-8)


def test_noise_alone_makes_no_model_look_badly_calibrated() -> None:
    """Of one that is right as often as it is sure, in every bin."""
    edge = np.stack([np.arange(10), np.arange(1, 11)], axis=1) / 10
    exact = 300 * np.stack([edge, 1 - edge], axis=1)
    drawn = [figures.figures_of(NoisedTables(one)) for one in noised(8.0, confidence=exact)]
    errors = np.array([one["calibration_error"].value for one in drawn])  # type: ignore[union-attr]
    assert errors.mean() < 0.01
    above = np.array([one["overconfidence"].value for one in drawn])  # type: ignore[union-attr]
    assert abs(above.mean()) < 0.001
    sd = drawn[0]["overconfidence"].sd  # type: ignore[union-attr]
    assert above.std() == pytest.approx(sd, rel=0.1)


SHARES = arrays(np.float64, (3, 2, 2), elements=st.floats(allow_nan=True, allow_infinity=True))


@given(arrays(np.int64, (3, 2, 2), elements=st.integers(-2, 7)), SHARES)
def test_a_record_adds_no_more_than_its_query_declares_whatever_its_shares_are(places, shares):
    """And in whatever order records come, to the last bit."""
    each = [add_up((2, 2, 2), 2, places[one : one + 1], shares[one : one + 1]) for one in range(3)]
    for alone in each:
        assert (alone >= 0).all()
        assert (alone.reshape(2, -1).sum(axis=1) <= 1).all()
        assert np.array_equal(alone * FINEST, np.floor(alone * FINEST))
    whole = add_up((2, 2, 2), 2, places, shares)
    assert np.array_equal(whole, np.sum(each, axis=0))
    assert np.array_equal(whole, add_up((2, 2, 2), 2, places[::-1], shares[::-1]))


AGE = NumberTarget(range=(0, 100))


def a_head(measure: Measure) -> MeasuredModel:
    classes = 2 if measure in ("auc", "decision") else 3
    if measure in OF_NUMBERS:
        weights = (np.float32([[2.0, -1.0, 0.5]]),)
        constants = Constants(50, 1, 3, labels=NUMBER)
        return MeasuredModel(weights, NumberScorer(), constants, ("age",), None, AGE)
    head = (RANDOM.normal(size=(classes, 3)).astype(np.float32),)
    names, groups = tuple("abc")[:classes], GROUPS if measure == "groups" else None
    return MeasuredModel(
        head, ClassScorer(), Constants(50, classes, 3), names, groups, threshold=0.3
    )


@pytest.mark.parametrize("measure", MEASURES)
def test_no_record_moves_a_measures_tables_further_than_their_noise_is_for(measure) -> None:
    model = a_head(measure)
    classes = model.constants.classes
    wanted = tables.tables_of((measure,), model)
    prices = tables.prices_of(wanted, 1.0)
    assert math.fsum(mu**2 for mu in prices) == pytest.approx(1.0)
    queries = [one.query(model, mu) for one, mu in zip(wanted, prices, strict=True)]
    rows, labels = RANDOM.normal(size=(60, 3)), RANDOM.integers(-1, classes, 60)
    if measure in OF_NUMBERS:
        labels = RANDOM.integers(-1, 2, 60) * TARGET_STEPS
    rows[:4] = [[0, 0, 0], [np.inf, 0, 0], [np.nan, 1, 1], [1e30, -1e30, 0]]
    groups = RANDOM.integers(-1, 3, 60)

    bought: dict[str, tuple[np.ndarray, float]] = {}

    def counts(table: tables.CellTable, some: slice) -> np.ndarray:
        data = Data(rows[some], labels[some], groups=groups[some])
        return sum_of(table.question(model, 1.0, bought), data, model.constants)

    for table, query in zip(wanted, queries, strict=True):
        moved = [
            np.linalg.norm(counts(table, slice(end + 1)) - counts(table, slice(end)))
            for end in range(60)
        ]
        assert max(moved) <= query.bound(model.constants)
        assert max(moved) > 0.7 * query.bound(model.constants)  # the noise is for no less
        bought[table.holds] = (counts(table, slice(60)), 1.0)  # what later ones follow from


def test_what_a_release_says_of_itself_is_all_that_its_figures_need() -> None:
    bought = {table for names in TABLES_OF.values() for table in names}
    assert bought | {"sizes", *OF_FINDINGS.values()} == tables.TABLES.keys()
    assert len({figure.name for figure in figures.FIGURES}) == len(figures.FIGURES)
    known = {holds for figure in figures.FIGURES for holds in figure.of}
    assert known - {"scores", "scores_by_finding"} <= tables.TABLES.keys()  # those of before


def test_auc_is_that_of_the_scores_themselves_where_nothing_is_noised() -> None:
    labels = RANDOM.integers(0, 2, 500)
    scores = labels * 1.5 + RANDOM.normal(size=500)
    model = saying([[0.0, score] for score in scores])
    found = tables.figures_of_counts(tables.exact(("auc",), model, records(labels.tolist())))
    assert found.figures["auc"] is not None
    assert found.figures["auc"].value == pytest.approx(roc_auc_score(labels, scores), abs=1e-3)


def test_auc_of_bins_of_before_is_still_told_with_what_ties_may_hide() -> None:
    labels = RANDOM.integers(0, 2, 500)
    scores = labels + RANDOM.normal(size=500)
    places = np.searchsorted(np.linspace(-2, 3, BINS - 1), scores, side="right")
    counts = add_up((2, BINS), 1, *tables.one_cell_each(labels * BINS + places))
    found = figures.auc_of_bins(counts, 0.0)
    assert found is not None
    assert found.value == pytest.approx(roc_auc_score(labels, places))
    assert found.sd == 0
    all_in_one = figures.auc_of_bins(np.array([[0.0, 90.0, 0.0], [0.0, 10.0, 0.0]]), 0.0)
    assert all_in_one is not None
    assert all_in_one.interval == (0.0, 1.0)


def test_f1_is_the_mean_over_classes_and_of_a_finding_that_of_who_has_it() -> None:
    truth, said = np.repeat(np.indices((3, 3)).reshape(2, -1), ANSWERS.ravel().astype(int), axis=1)
    found = figures.f1_of_answers(NoisedTables({"answers": (ANSWERS, 0.0)}), 0)
    assert found is not None
    assert found.value == pytest.approx(f1_score(truth, said, average="macro"))
    counts = np.array([[70.0, 9.0], [30.0, 11.0]])
    present, right = np.repeat([[0, 0, 1, 1], [1, 0, 1, 0]], counts.ravel().astype(int), axis=1)
    one = figures.f1_of_finding(NoisedTables({"by_finding": (counts[None], 0.0)}), 0)
    assert one is not None
    assert one.value == pytest.approx(f1_score(present, present == right))
    few = NoisedTables({"by_finding": ((counts * [[1.0], [0.05]])[None], 2.0)})
    assert figures.f1_of_finding(few, 0) is None


def noised(sd: float, **exact: np.ndarray) -> Iterator[dict[str, tuple[np.ndarray, float]]]:
    for _ in range(1000):
        yield {
            holds: (counts + sd * RANDOM.normal(size=counts.shape), sd)
            for holds, counts in exact.items()
        }


BIN_COUNTS = np.outer([1, 1], np.linspace(4, 20, BINS)) * [[2.0], [1.0]]
BIN_COUNTS[1] = BIN_COUNTS[1][::-1]
ANSWERS = np.array([[80.0, 15.0, 5.0], [10.0, 90.0, 8.0], [4.0, 6.0, 50.0]])
EXACT = {
    "answers": ANSWERS,
    "by_finding": np.array([[[300.0, 40.0], [30.0, 90.0]], [[200.0, 90.0], [50.0, 80.0]]]),
    "by_class": np.array([[90.0, 10.0], [15.0, 25.0]]),
    "scores": BIN_COUNTS,
}


def test_the_noise_is_as_large_as_it_is_said_to_be() -> None:
    """Each figure's deviation against a thousand draws of the noise."""
    drawn = [figures.figures_of(NoisedTables(one)) for one in noised(1.5, **EXACT)]
    exact = figures.figures_of(
        NoisedTables({holds: (counts, 0.0) for holds, counts in EXACT.items()})
    )
    for name, without in exact.items():
        values = np.array([one[name].value for one in drawn])  # type: ignore[union-attr]
        deviation = np.median([one[name].sd for one in drawn])  # type: ignore[union-attr]
        assert values.std() == pytest.approx(deviation, rel=0.15), name
        assert without is not None
        assert values.mean() == pytest.approx(without.value, abs=0.01), name


def share_of(right: float, wrong: float, sd: float) -> NoisedFigure | None:
    one = NoisedTables({"row": (np.array([right, wrong]), sd)})
    return share(one, one.at("row", 0), one.at("row", np.s_[:]))


def test_what_noise_hides_is_not_told() -> None:
    assert share_of(3.0, 2.0, 2.0) is None
    assert share_of(-3.0, 30.0, 2.0).value == 0.0  # type: ignore[union-attr]
    few = NoisedTables({"by_class": (np.array([[30.0, 3.0], [1.0, 1.0]]), 1.0)})
    assert figures.balanced_accuracy(few, 0) is None
    assert figures.auc_of_bins(np.array([[5.0] * 16, [0.0] * 16]), 1.0) is None
    assert share_of(0.0, 0.0, 0.0) is None  # a class that a public test source lacks


def test_an_interval_without_noise_is_wilsons_and_stays_within_what_is_possible() -> None:
    found = share_of(9.0, 1.0, 0.0)
    assert found is not None
    wilson = binomtest(9, 10).proportion_ci(0.95, "wilson")
    assert found.interval == pytest.approx((wilson.low, wilson.high), abs=1e-3)
    all_right = share_of(300.0, -4.0, 2.0)
    assert all_right is not None
    assert all_right.value == all_right.interval[1] == 1.0
    assert 0.9 < all_right.interval[0] < 1.0


def test_tables_agree_on_what_both_count_and_the_better_known_one_says_more() -> None:
    """A page had two accuracies of one model."""
    sums = {"a": [("right", np.array([1.0, 0.0]))], "b": [("right", np.array([1.0, 1.0, 0.0]))]}
    bought = {"a": (np.array([80.0, 20.0]), 1.0), "b": (np.array([50.0, 45.0, 10.0]), 3.0)}
    found = NoisedTables(bought, sums)
    right = found.at("a", 0)
    assert right.value == pytest.approx(found["b"][:2].sum())
    # one over the variance of each: 1 and 18
    assert right.value == pytest.approx((18 * 80 + 95) / 19)
    assert found.noise(right) == pytest.approx(18 / 19)
    assert found["a"][1] == 20.0


def test_the_mean_of_figures_about_the_same_records_is_no_surer_than_one_of_them() -> None:
    one = share_of(80.0, 20.0, 0.0)
    apart, together = mean_of([one] * 4), mean_of([one] * 4, same_records=True)
    assert one is not None
    assert apart is not None
    assert together is not None
    assert together.interval == pytest.approx(one.interval)
    assert apart.spread == pytest.approx(one.spread / 2)


def test_the_lowest_share_is_the_worst_and_none_is_where_one_cannot_be_told():
    groups = GroupNames(("a", "b"), ("a", "b"), ("a", "b"))
    for last, name in (([3.0, 3.0], "b"), ([0.0, 0.0], None)):
        found = figures_from((), "classes", groups, by_group=([[9.0, 1.0], last], 0.1))
        assert (found.worst and found.worst.name) == name
