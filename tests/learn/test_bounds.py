"""What a record adds to a sum is finite and no longer than the query's bound, whatever the record
and whatever the query is asked at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from support import Silent, answer_of

from dpladder.config.label_sets import MANY
from dpladder.config.model import Resources
from dpladder.errors import BadInput, Refused
from dpladder.learn.curator import Curator
from dpladder.learn.data import Data
from dpladder.learn.finetune.forms import Looked, Product, SummedGradients
from dpladder.learn.interface import Constants
from dpladder.learn.queries import (
    Cells,
    Curvatures,
    Flat,
    GradientSum,
    LinearHead,
    LossDifference,
    LossSums,
    OfModel,
    Query,
    RecordSum,
    ResidualSum,
    RightCount,
    SecondMoments,
    UnitMean,
    UnitsByClass,
    WeighedSums,
)
from dpladder.learn.scorers import ClassScorer
from dpladder.privacy.arrays import clip_rows, to_length

CLASSES, WIDTH = 20, 3
NAMED: dict[str, Any] = {"name": "sums", "multiplier": 1.0}
NAN, INF = float("nan"), float("inf")
PERCEPTRON = Flat("dpladder.learn.perceptron", (((4, WIDTH), (CLASSES, 4)), False, "softmax"), 92)


def root(x: Any, _: Any) -> Any:
    """No number of records with a value below 0."""
    return x.sqrt()


def overflowing(x: Any, _: Any) -> Any:
    return (x * 1e30).double() ** 9


def of_zero(x: Any, _: Any) -> Any:
    """Infinite, and no number, where a value is 0."""
    return torch.stack([1.0 / x[0], x[1] / x[1], x[2]])


QUERIES: dict[str, Query] = {
    "gradients": GradientSum(**NAMED, model=LinearHead()),
    "gradients with a bias": GradientSum(**NAMED, model=LinearHead(bias=True)),
    "gradients, automatic": GradientSum(**NAMED, model=LinearHead(), clipping="automatic"),
    "gradients, sigmoids": GradientSum(**NAMED, model=LinearHead(link="sigmoid")),
    "a perceptron's gradients": GradientSum(**NAMED, model=PERCEPTRON),
    "losses": LossSums(**NAMED, model=LinearHead()),
    "differences": LossDifference(**NAMED, model=LinearHead()),
    "class sums": WeighedSums(**NAMED, radius=1.0),
    "class sums, class by class": WeighedSums(**NAMED, radius=1.0, apart=True),
    "weights that are no numbers": WeighedSums(**NAMED, radius=1.0, by=root, sums=WIDTH),
    "weights that overflow": WeighedSums(
        **NAMED, radius=1.0, by=overflowing, sums=WIDTH, constant=1.0
    ),
    "moments": SecondMoments(**NAMED, radius=1.0),
    "moments, class by class": SecondMoments(**NAMED, radius=1.0, by_class=True),
    "residuals": ResidualSum(**NAMED, radius=1.0),
    "residuals, sigmoids": ResidualSum(**NAMED, radius=1.0, link="sigmoid"),
    "curvatures": Curvatures(**NAMED, radius=1.0),
    "curvatures, sigmoids": Curvatures(**NAMED, radius=1.0, link="sigmoid"),
    "a count": RightCount(**NAMED),
    "roots": RecordSum(**NAMED, of=root, of_shape=(WIDTH,)),
    "what overflows": RecordSum(**NAMED, of=overflowing, of_shape=(WIDTH,)),
    "fractions": RecordSum(**NAMED, of=of_zero, of_shape=(WIDTH,)),
    "whole numbers": RecordSum(**NAMED, of=lambda _, label: label * 3, of_shape=()),
    "the mean": UnitMean(**NAMED, radius=1.0, width=WIDTH),
    "the mean on a sphere": UnitMean(**NAMED, radius=1.0, width=WIDTH, exact=True),
    "units": UnitsByClass(**NAMED, classes=CLASSES),
    "cells": Cells(**NAMED, cells=(3,)),
}
ROWS = {
    "a plain record": (1.0, 2.0, 3.0),
    "a value below zero": (-1.0, 2.0, 3.0),
    "a value that is no number": (NAN, 2.0, 3.0),
    "an infinite value": (INF, -INF, 3.0),
    "values that overflow": (3e38, -3e38, 3e38),
    "values as large as count": (9e14, 0.0, 0.0),
    "the smallest values": (1e-45, -1e-45, 0.0),
    "a zero among others": (0.0, 0.0, 1.0),
    "zeros": (0.0, 0.0, 0.0),
}
# of weights: how large they are
SIZES = {"zero": 0.0, "one": 1.0, "2^54": 2.0**54, "huge": 1e300, "infinite": INF, "none": NAN}


def arguments(query: Query, size: float) -> Iterator[tuple[Any, ...]]:
    """Of each question that makes one answer."""
    signs = torch.tensor(np.random.default_rng(0).choice([-1.0, 1.0], (CLASSES, WIDTH)))
    signs[: CLASSES // 2] = 1.0  # of classes that tie
    weights = signs * size
    match query:
        case OfModel(model=LinearHead(bias=bias)):
            weights = torch.nn.functional.pad(weights, (0, int(bias)), value=1.0)
        case OfModel():
            weights = torch.full((92,), size, dtype=torch.float64)
    match query:
        case LossSums():
            yield weights[None], torch.ones(()).double()
        case LossDifference():
            yield weights, -weights
        case GradientSum() | ResidualSum():
            yield (weights,)
        case Curvatures():
            yield from ((weights, label) for label in range(CLASSES))
        case RightCount():
            yield (weights.float().numpy(),), ClassScorer()
        case _ if query.parts(Constants(4, CLASSES, WIDTH)) > 1:
            yield from ((label,) for label in range(CLASSES))
        case _:
            yield ()


def total_of(query: Query, data: Data, size: float) -> torch.Tensor:
    """All that the query's one answer holds, without noise."""
    constants, silent = Constants(4, CLASSES, WIDTH), Silent()
    if isinstance(query, UnitMean | UnitsByClass | Cells):
        from dpladder.learn import counts

        places = np.zeros((len(data.labels), 1, 1), np.int64), data.features[:, :1, None]
        asked = query.at(lambda _: places) if isinstance(query, Cells) else query.at()
        meter: Any = silent
        return torch.from_numpy(np.asarray(counts.ask(asked, data, constants, meter))).ravel()

    def begin(_: Any, __: Any) -> Any:
        return (yield [query.at(*each) for each in arguments(query, size)])

    curator = Curator(data, constants, Resources(threads=1, mem_mb=50))
    meters: Any = [silent]
    [answers] = curator.run(begin, [(query,)], meters)
    return torch.cat([answer.double().ravel() for answer in answers])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("name", QUERIES)
def test_a_record_adds_no_more_than_the_bound_and_wipes_out_no_other(
    name: str, size: float
) -> None:
    query = QUERIES[name]
    bound = query.bound(Constants(4, CLASSES, WIDTH))
    others = np.array([[1.0, 2.0, 3.0], [2.0, 1.0, 0.5]], np.float32)
    units = np.arange(48, dtype=np.uint8).reshape(3, 16)
    before = total_of(query, Data(others, np.array([0, 1]), units[:2]), size)
    for row in ROWS.values():
        for label in (0, CLASSES - 1):
            features = np.vstack([others, np.array(row, np.float32)])
            after = total_of(query, Data(features, np.array([0, 1, label]), units), size)
            assert after.isfinite().all()
            assert float((after - before).norm()) <= bound * (1 + 1e-9), row


@pytest.mark.parametrize(
    "query",
    [
        WeighedSums(**NAMED, radius=1.0, by="presence"),
        WeighedSums(**NAMED, radius=1.0, by="lack"),
        GradientSum(**NAMED, model=LinearHead(link="sigmoid")),
    ],
    ids=["presence", "lack", "gradients"],
)
def test_a_record_of_any_findings_adds_no_more_than_the_bound(query: Query) -> None:
    constants = Constants(4, 3, WIDTH, labels=MANY)
    asked = query.at(torch.zeros(3, WIDTH).double()) if isinstance(query, OfModel) else query.at()
    for label in range(27):
        for row in ROWS.values():
            data = Data(np.array([row], np.float32), np.array([label]))
            total = answer_of(asked, data, constants)
            assert torch.isfinite(total).all()
            assert float(total.norm()) <= query.bound(constants)


@pytest.mark.parametrize("bad", [NAN, INF, -INF, 3e38])
def test_a_gradient_of_a_network_without_a_finite_length_adds_zeros(bad: float) -> None:
    """In each form that a layer's gradients come in, wherever in it the number stands."""
    from dpladder.learn.bounds import clip

    ones, words = torch.ones(3, 2, 4), torch.zeros(3, 2, dtype=torch.int64)
    broken = ones.clone()
    broken[1, 0, 0] = bad
    forms = [
        *(Product(broken, ones, bias, turned) for bias in (0, 1) for turned in (0, 1)),
        *(Product(ones, broken, bias, turned) for bias in (0, 1) for turned in (0, 1)),
        Product(broken, broken, True, False).as_matrices(),
        Looked(broken, words, 5),
        SummedGradients([broken.flatten(1), ones.flatten(1)]),
    ]
    for form in forms:
        norms = torch.maximum(form.squares(), form.terms()).sqrt()
        factor = clip(norms, 1.0)
        total = torch.cat([part.flatten() for part in form.sums(factor)])
        assert total.isfinite().all()
        assert total.norm() <= 3.0 * (1 + 1e-6)
        if not np.isfinite(bad):
            assert factor[1] == 0.0


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("scale", [clip_rows, to_length])
def test_a_row_without_a_finite_length_has_none_in_a_ball(scale: Any) -> None:
    rows = np.array([[NAN, 1.0], [INF, 1.0], [-INF, 0.0], [1e200, 1e200], [3.0, 4.0]])
    assert scale(rows, 1.0) == pytest.approx(np.array([[0.0, 0.0]] * 4 + [[0.6, 0.8]]))


@pytest.mark.parametrize("count", [64, 128])
def test_a_full_chunk_of_records_is_followed_by_a_row_that_counts_as_nothing(count: int) -> None:
    """Rows that fill up a class's chunk would be the last record's, 63 times."""
    random = np.random.default_rng(0)
    features = random.normal(size=(count, WIDTH)).astype(np.float32)
    labels = np.where(np.arange(count) == count - 1, 1, 0)
    query, constants = WeighedSums(**NAMED, radius=1.0), Constants(56, 2, WIDTH)
    whole = answer_of(query.at(), Data(features, labels), constants)
    fewer = answer_of(query.at(), Data(features[:-1], labels[:-1]), constants)
    assert float((whole - fewer).norm()) <= 1.0


def test_a_record_whose_views_cancel_is_as_short_as_the_bound() -> None:
    """Gradients of views that nearly cancel are rounded as what cancelled was."""
    from dpladder.learn.linear import clipped_sum
    from dpladder.learn.records import load

    bound, width = 1.0 - 2.0**-10, 64
    random = np.random.default_rng(0)
    heads = torch.zeros(1, 2, width, dtype=torch.float64)
    for size in (1e3, 1e5, 1e7):
        for apart in (1e-7, 1e-6, 1e-5):
            x = random.normal(size=width) * size
            views = np.stack([x, -x * (1 + apart)])[None].astype(np.float32)
            data = Data(views, np.array([0]))
            records = load(
                data, Constants(1, 2, width), torch.device("cpu"), chunk=64, memory_mb=1, views=2
            )
            total = clipped_sum(records, heads, bound, records.chunks())
            assert float(total.norm()) <= 1.0


@pytest.mark.parametrize("size", [2.0**53, 1e308])
def test_rounding_of_probabilities_makes_no_residual_or_curvature_longer(size: float) -> None:
    """Also at weights that the curator asks about none of."""
    from dpladder.learn import moments
    from dpladder.learn.links import Link
    from dpladder.learn.records import load

    constants, link = Constants(1, CLASSES, WIDTH), Link("softmax", CLASSES)
    data = Data(np.array([[1.0, 2.0, 3.0]], np.float32), np.array([CLASSES - 1]))
    records = load(data, constants, torch.device("cpu"), chunk=64, memory_mb=1)
    weights = torch.full((CLASSES, WIDTH), size, dtype=torch.float64)
    total, levels = moments.residual_sum(records, weights, 1.0, link)
    curved = [
        moments.curvature(records, weights, levels, 1.0, link, label) for label in range(CLASSES)
    ]
    assert float(total.norm()) <= ResidualSum(**NAMED, radius=1.0).bound(constants)
    assert float(torch.stack(curved).norm()) <= Curvatures(**NAMED, radius=1.0).bound(constants)


def test_a_loss_counts_where_float64_tells_its_logits_and_nowhere_else() -> None:
    """Logits of classes that tie differ by how a product rounds, and that by a record's place."""
    query = LossSums(**NAMED, model=LinearHead())
    units = np.arange(32, dtype=np.uint8).reshape(2, 16)
    rows = np.array([[1.0, 2.0, 3.0], [2.0, 1.0, 0.5]], np.float32)
    data = Data(rows, np.array([0, CLASSES - 1]), units)
    assert float(total_of(query, data, 1.0).norm()) > 0
    assert float(total_of(query, data, 2.0**30).norm()) == 0


def test_losses_are_cut_at_no_less_than_float64_tells_them_apart() -> None:
    """Rounding hangs on a record's place: within a bound of 1e-7 a neighbour moved it by half."""
    data = Data(np.ones((1, WIDTH), np.float32), np.zeros(1, np.int64))
    zeros, small = torch.zeros(1, CLASSES, WIDTH).double(), torch.full((), 1e-4).double()
    question = LossSums(**NAMED, model=LinearHead()).at(zeros, small)
    with pytest.raises(Refused, match="nothing was answered"):
        answer_of(question, data, Constants(4, CLASSES, WIDTH))
    with pytest.raises(BadInput, match=r"give at least 0\.002"):
        LossDifference(**NAMED, model=LinearHead(), clip=1e-4).bound(Constants(4, 2, WIDTH, cap=2))
