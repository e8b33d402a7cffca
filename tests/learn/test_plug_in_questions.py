"""Questions of a plug-in that its price does not cover are refused, whatever mistake makes them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from support import Silent

from dpladder.config.label_sets import MANY
from dpladder.config.model import Resources
from dpladder.errors import BadInput, Refused
from dpladder.learn import linear, trainings
from dpladder.learn.curator import Curator
from dpladder.learn.data import Data
from dpladder.learn.interface import Constants, Hyper
from dpladder.learn.queries import (
    Cells,
    Curvatures,
    GradientSum,
    LinearHead,
    LossDifference,
    LossSums,
    Query,
    QueryCall,
    RecordSum,
    ResidualSum,
    RightCount,
    SecondMoments,
    UnitMean,
    UnitsByClass,
    WeighedSums,
    declared,
)
from dpladder.learn.scorers import ClassScorer
from dpladder.methods.dp_gd import Descent

CLASSES, WIDTH = 4, 3
CONSTANTS = Constants(40, CLASSES, WIDTH)
ONE = Resources(threads=1, mem_mb=50)
NAMED: dict[str, Any] = {"name": "sums", "multiplier": 1.0}
MOMENTS = SecondMoments(**NAMED, radius=1.0, by_class=True)
CURVES = Curvatures(name="curves", multiplier=1.0, radius=1.0)


def data_of(count: int = 40) -> Data:
    random = np.random.default_rng(0)
    features = random.normal(size=(count, WIDTH)).astype(np.float32)
    units = random.integers(0, 256, (count, 16)).astype(np.uint8)
    return Data(features, random.integers(0, CLASSES, count), units)


def ask_all(queries: Sequence[Query], *steps: Callable[[], Any], data: Data | None = None) -> Any:
    """The answers, without noise, to questions that are asked one after the other."""

    def begin(_: Any, __: Any) -> Any:
        answers = []
        for step in steps:
            answers.append((yield step()))
        return answers

    silent: Any = Silent()
    curator = Curator(data or data_of(), CONSTANTS, ONE)
    [answers] = curator.run(begin, [tuple(queries)], [silent])
    return answers


# --- a sum that comes class by class --------------------------------------------------------------


@pytest.mark.parametrize(
    "query", [MOMENTS, WeighedSums(**NAMED, radius=1.0, apart=True)], ids=["moments", "sums"]
)
def test_a_class_is_answered_once_a_release(query: Query) -> None:
    """All classes together cost what one release does, for a record is of one of them. The same
    class four times would cost four."""
    with pytest.raises(Refused, match="each class once"):
        ask_all([query], lambda: query.at(0), lambda: query.at(0))
    with pytest.raises(Refused, match="each class once"):
        ask_all([query], lambda: [query.at(0), query.at(0)])


@pytest.mark.parametrize("label", [-1, CLASSES, 0.5, True, np.float64(1.0)], ids=str)
def test_a_class_that_is_none_is_not_answered(label: Any) -> None:
    with pytest.raises(Refused, match="each class once"):
        ask_all([MOMENTS], lambda: MOMENTS.at(label))


def test_the_next_release_begins_when_all_classes_were_asked() -> None:
    twice = SecondMoments(name="sums", multiplier=1.0, radius=1.0, by_class=True, count=2)
    each = [lambda label=label: twice.at(label) for label in (*range(CLASSES), *range(CLASSES))]
    answers = ask_all([twice], *each)
    for one, other in zip(answers[:CLASSES], answers[CLASSES:], strict=True):
        assert torch.equal(one, other)


def test_all_classes_are_asked_at_the_same_weights() -> None:
    """Probabilities of one record add to 1 at one head's weights, and at several heads' they need
    not: four classes would move by 1, which is 2.6 times the declared bound."""
    weights = torch.zeros(CLASSES, WIDTH, dtype=torch.float64)
    with pytest.raises(Refused, match="the same arguments"):
        ask_all([CURVES], lambda: CURVES.at(weights, 0), lambda: CURVES.at(weights + 1.0, 1))
    with pytest.raises(Refused, match="the same arguments"):
        ask_all([CURVES], lambda: CURVES.at(weights, 0), lambda: CURVES.at(weights.add_(1.0), 1))


# --- weights that a method changes in place -------------------------------------------------------

FAR = 40.0 * torch.eye(CLASSES, WIDTH, dtype=torch.float64)


def test_curvatures_follow_weights_that_were_moved_in_place() -> None:
    """The probabilities of the residuals before would not add to 1 at these weights, nor keep the
    bound."""
    residuals = ResidualSum(**NAMED, radius=1.0)
    weights = torch.zeros(CLASSES, WIDTH, dtype=torch.float64)
    [fresh] = ask_all([CURVES], lambda: [CURVES.at(FAR, label) for label in range(CLASSES)])
    _, moved = ask_all(
        [residuals, CURVES],
        lambda: residuals.at(weights),
        lambda: [CURVES.at(weights.copy_(FAR), label) for label in range(CLASSES)],
    )
    for one, other in zip(moved, fresh, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize(
    "other",
    [ResidualSum(**NAMED, radius=0.1), ResidualSum(**NAMED, radius=1.0, link="sigmoid")],
    ids=["another ball", "another link"],
)
def test_curvatures_do_not_lean_on_residuals_of_another_kind(other: ResidualSum) -> None:
    [fresh] = ask_all([CURVES], lambda: [CURVES.at(FAR, label) for label in range(CLASSES)])
    _, after = ask_all(
        [other, CURVES],
        lambda: other.at(FAR),
        lambda: [CURVES.at(FAR, label) for label in range(CLASSES)],
    )
    for one, expected in zip(after, fresh, strict=True):
        assert torch.equal(one, expected)


# --- the public sample ----------------------------------------------------------------------------

HEAD = LinearHead()
OF_A_RECORD: dict[str, Any] = {"of": lambda x, _: x.sum(), "of_shape": ()}
ZEROS = torch.zeros(CLASSES, WIDTH, dtype=torch.float64)
QUESTIONS: dict[str, tuple[Query, tuple[Any, ...]]] = {
    "losses": (LossSums(**NAMED, model=HEAD), (ZEROS[None], torch.ones(()).double())),
    "differences": (LossDifference(**NAMED, model=HEAD), (ZEROS + 1.0, ZEROS)),
    "weighed": (WeighedSums(**NAMED, radius=1.0), ()),
    "moments": (SecondMoments(**NAMED, radius=1.0), ()),
    "residuals": (ResidualSum(**NAMED, radius=1.0), (ZEROS,)),
    "curvatures": (CURVES, (ZEROS, 0)),
    "of a record": (RecordSum(**NAMED, **OF_A_RECORD), ()),
    "right": (RightCount(**NAMED), ((np.eye(CLASSES, WIDTH, dtype=np.float32),), ClassScorer())),
}


@pytest.mark.parametrize("kind", QUESTIONS)
def test_nothing_private_is_answered_as_if_it_were_public(kind: str) -> None:
    """Answers about the public sample carry no noise: only gradients are asked of it."""
    query, arguments = QUESTIONS[kind]
    with pytest.raises(Refused, match="public sample"):
        ask_all([query], lambda: QueryCall(query, arguments, step=0))


# --- prices that a kind does not earn -------------------------------------------------------------

WHOLE: dict[str, Callable[[], Query]] = {
    "weighed": lambda: WeighedSums(**NAMED, radius=1.0, sampling_rate=0.01),
    "moments": lambda: SecondMoments(**NAMED, radius=1.0, sampling_rate=0.01),
    "residuals": lambda: ResidualSum(**NAMED, radius=1.0, sampling_rate=0.01),
    "curvatures": lambda: Curvatures(**NAMED, radius=1.0, sampling_rate=0.01),
    "of a record": lambda: RecordSum(**NAMED, **OF_A_RECORD, sampling_rate=0.01),
    "right": lambda: RightCount(**NAMED, sampling_rate=0.01),
    "cells": lambda: Cells(**NAMED, cells=(2,), sampling_rate=0.01),
    "units": lambda: UnitsByClass(**NAMED, classes=CLASSES, sampling_rate=0.01),
    "mean": lambda: UnitMean(**NAMED, radius=1.0, width=WIDTH, sampling_rate=0.01),
}


@pytest.mark.parametrize("kind", WHOLE)
def test_what_reads_all_records_is_not_priced_as_a_sample(kind: str) -> None:
    with pytest.raises(BadInput, match="all records"):
        WHOLE[kind]()


VECTORS: dict[str, Query] = {
    "gradient": GradientSum(**NAMED, model=HEAD, distribution="laplace"),
    "of a record": RecordSum(**NAMED, of=torch.abs, of_shape=(3,), distribution="laplace"),
    "cells": Cells(**NAMED, cells=(2,), distribution="laplace"),
    "class by class": WeighedSums(**NAMED, radius=1.0, apart=True, distribution="laplace"),
}


@pytest.mark.parametrize("kind", VECTORS)
def test_laplace_noise_is_for_single_numbers(kind: str) -> None:
    """It is priced by lengths in L1, and bounds of vectors are lengths in L2."""
    with pytest.raises(BadInput, match="Laplace"):
        declared([VECTORS[kind]], CONSTANTS)


@pytest.mark.parametrize("points", [1, 3])
def test_laplace_noise_is_for_each_loss_by_itself(points: int) -> None:
    losses = LossSums(**NAMED, model=HEAD, points=points, distribution="laplace")
    [counted] = declared([losses], CONSTANTS).events
    assert counted.count == points
    assert math.prod(losses.draw(CONSTANTS).shape) == points


class Halved(GradientSum):
    """Says half of what the curator keeps."""

    def sensitivity(self, constants: Constants) -> float:
        return super().sensitivity(constants) / 2


def test_a_learner_brings_no_kind_of_query_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    own = SimpleNamespace(queries=lambda *_: (Halved(**NAMED, model=HEAD),))
    monkeypatch.setattr(trainings, "method", lambda _: own)
    with pytest.raises(Refused, match="no kind of query of dpladder's own"):
        trainings.declare(Descent(), Hyper(1.0, 1, 1.0), CONSTANTS)


# --- what a function is asked about ---------------------------------------------------------------


def test_each_question_is_answered_at_its_own_numbers() -> None:
    query = RecordSum(
        **NAMED, of=lambda x, _, factor: factor * x.sum(), of_shape=(), clip=100.0, count=2
    )
    one, twice = ask_all([query], lambda: query.at(1.0), lambda: query.at(2.0))
    assert float(twice) == pytest.approx(2 * float(one), rel=1e-6)


# --- labels that a kind cannot read ---------------------------------------------------------------


@pytest.mark.parametrize("kind", ["gradient", "losses", "differences", "residuals", "curvatures"])
@pytest.mark.parametrize("labels", [2, MANY])
def test_a_query_about_one_class_is_refused_where_a_record_may_be_of_several(
    kind: str, labels: Any
) -> None:
    """Its label would be no place among the logits, and the record would stop the run."""
    query = {"gradient": GradientSum(**NAMED, model=HEAD)} | {
        k: q for k, (q, _) in QUESTIONS.items()
    }
    with pytest.raises(BadInput, match="one class for each record"):
        declared([query[kind]], replace(CONSTANTS, labels=labels))


@pytest.mark.parametrize("kind", ["weighed", "moments", "of a record"])
def test_a_query_that_reads_several_classes_is_asked(kind: str) -> None:
    assert declared([QUESTIONS[kind][0]], replace(CONSTANTS, labels=2)).draws


# --- products that the machine was tried with -----------------------------------------------------


def test_gradients_that_one_training_asks_for_together_share_no_product(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A machine is tried with as many heads in one product as trainings share a pass, and no more
    (linear.refuse_places)."""
    rows, logits_by = [], linear.logits_by

    def noting(flat: Any, chunk: int) -> Any:
        rows.append(len(flat))
        return logits_by(flat, chunk)

    monkeypatch.setattr(linear, "logits_by", noting)
    query = GradientSum(**NAMED, model=HEAD, count=3)
    here = [ZEROS, ZEROS + 1.0, FAR]
    [together] = ask_all([query], lambda: [query.at(weights) for weights in here])
    assert set(rows) == {CLASSES}
    for answer, weights in zip(together, here, strict=True):
        [alone] = ask_all([query], lambda at=weights: query.at(at))
        assert torch.equal(answer, alone)


# --- samples --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "allowed"),
    [
        (("often twice once", "often twice", "often"), True),
        (("often", "twice often", "often once twice"), True),
        (("often once twice", "often twice"), True),
        (("often twice", "often twice", "often once"), False),
        (("often once", "often twice", "often twice"), False),
        (("twice", "twice", "once"), True),  # the last one joins the sample before
    ],
)
def test_rarer_sampled_queries_share_the_samples_that_they_are_priced_on(
    steps: tuple[str, ...], allowed: bool
) -> None:
    """Once in one sample and once in another, they cost more than together in the first."""
    queries = {
        name: LossSums(name=name, multiplier=1.0, model=HEAD, sampling_rate=0.5, count=count)
        for name, count in (("often", 3), ("twice", 2), ("once", 1))
    }
    bound = torch.ones(()).double()

    def begin(_: Any, __: Any) -> Any:
        for names in steps:
            yield [queries[name].at(ZEROS[None], bound) for name in names.split()]

    halves: Any = Halves()
    ask = Curator(data_of(), CONSTANTS, ONE).run
    if allowed:
        ask(begin, [(*queries.values(),)], [halves])
    else:
        with pytest.raises(Refused, match="in the same steps"):
            ask(begin, [(*queries.values(),)], [halves])


class Halves(Silent):
    """Samples that are the first half of the records, and the second half, in turn."""

    def __init__(self) -> None:
        self.drawn = 0

    def mask(self, name: str, ids: Any) -> Any:
        self.drawn += 1
        first = np.arange(len(ids)) < len(ids) // 2
        return first if self.drawn % 2 else ~first


def test_a_query_that_is_asked_twice_in_one_step_sees_two_samples() -> None:
    """Each is priced as a sample of its own: two answers about one sample cost more."""
    data = data_of()
    rate: dict[str, Any] = {"sampling_rate": 0.5, "count": 2}
    gradient = GradientSum(**NAMED, model=HEAD, **rate)
    losses = LossSums(name="losses", multiplier=1.0, model=HEAD, **rate)
    bound = torch.ones(()).double()

    def begin(_: Any, __: Any) -> Any:
        return (
            yield [
                gradient.at(ZEROS),
                losses.at(ZEROS[None], bound),
                gradient.at(ZEROS),
                losses.at(ZEROS[None], bound),
            ]
        )

    halves: Any = Halves()
    [answers] = Curator(data, CONSTANTS, ONE).run(begin, [(gradient, losses)], [halves])
    whole = [GradientSum(**NAMED, model=HEAD), LossSums(**NAMED, model=HEAD)]
    for first in (0, 20):
        half = slice(first, first + 20)
        of_half = Data(data.features[half], data.labels[half])
        [expected] = ask_all(whole[:1], lambda: whole[0].at(ZEROS), data=of_half)
        assert torch.allclose(answers[first // 10], expected, atol=1e-6)
        [expected] = ask_all(whole[1:], lambda: whole[1].at(ZEROS[None], bound), data=of_half)
        assert torch.allclose(answers[first // 10 + 1], expected, atol=1e-6)
    assert halves.drawn == 2
