"""Curves of a table keep only what is not zero: the sums of whole rows, record by record."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dpladder.config.label_sets import NUMBER, number_of_target
from dpladder.config.model import Resources
from dpladder.data.centre import Map, Mapped
from dpladder.learn.data import Data
from dpladder.learn.interface import Constants
from dpladder.learn.linear import clipped_sum, resident, summed_losses
from dpladder.learn.links import Link
from dpladder.learn.records import LONGEST_SINGLE
from dpladder.learn.thin_rows import ThinRows

ONE, COUNT, COLUMNS = Resources(threads=1), 700, 5
KNOTS = (-1.0, -0.5, 0.0, 0.25, 1.0)
CURVES = (*(((column, KNOTS),) for column in range(3)), ((0, KNOTS), (4, (-1.0, 1.0))))
BOUND = 0.3


def table(count=COUNT, seed=0):
    random = np.random.default_rng(seed)
    rows = random.uniform(-1, 1, (count, COLUMNS)).astype(np.float32)
    rows[: count // 3, 2] = 0.25  # many lie on a knot
    return rows, random.integers(0, 2, count)


def mapped(rows, mean=True):
    """Rows that are longer once they lose what they lose."""
    public = -2.0 * Map(curves=CURVES)(table(50, 9)[0]).mean(axis=0).astype(np.float64)
    return Mapped(rows, Map(public if mean else None, radius=9.0, curves=CURVES))


def records_of(features, labels, classes=2, bias=True, several=1):
    width = features.shape[-1]
    constants = Constants(n0=COUNT, classes=classes, dimension=width, labels=several)
    return resident(Data(features, labels), constants, ONE, bias=bias)


def heads(trainings, classes, width, seed=1):
    drawn = np.random.default_rng(seed).normal(size=(trainings, classes, width))
    return torch.from_numpy(drawn)


def summed(records, weights, link, rows=None):
    return clipped_sum(records, weights, BOUND, rows or records.chunks(), link=link).numpy()


def one_by_one(features, labels, weights, link, bias):
    """The sum in float64, without a product of many records."""
    x = features[:].astype(np.float64)
    x = np.hstack([x, np.ones((len(x), 1))]) if bias else x
    total = np.zeros(weights.shape)
    for training, head in enumerate(weights.numpy()):
        for row, label in zip(x, labels, strict=True):
            logits = torch.from_numpy(head @ row).view(1, -1, 1, 1)
            residual = link.probabilities(logits, dim=1)
            link.subtract_targets(residual, torch.tensor([label]))
            gradient = np.outer(residual.numpy().ravel(), row)
            total[training] += gradient * min(1.0, BOUND / max(np.linalg.norm(gradient), 1e-300))
    return total


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("mean", [True, False])
@pytest.mark.parametrize(
    "link",
    [Link("softmax", 2), Link("sigmoid", 2), Link("identity", 1, NUMBER)],
    ids=lambda link: link.name,
)
def test_sums_are_those_of_whole_rows(link, mean, bias):
    rows, labels = table()
    features = mapped(rows, mean)
    if link.labels == NUMBER:
        labels = np.array([number_of_target(float(row[1]), -1.0, 1.0) for row in rows])
    records = records_of(features, labels, link.classes, bias, link.labels)
    assert isinstance(records.features, ThinRows)
    weights = heads(3, link.classes, features.shape[-1] + bias)
    expected = one_by_one(features, labels, weights, link, bias)
    found = summed(records, weights, link)
    assert found == pytest.approx(expected, rel=2e-3, abs=2e-3 * np.abs(expected).max())


@pytest.mark.parametrize("place", [0, 350, COUNT - 1])
def test_a_record_moves_a_sum_by_its_bound_and_moves_no_other_record(place):
    """To float64's rounding: the others stand elsewhere then, and their sum is the same."""
    rows, labels = table()
    link, weights = Link(), heads(2, 2, mapped(rows).shape[-1] + 1, 3) * 30
    whole = summed(records_of(mapped(rows), labels), weights, link)
    others = np.arange(COUNT) != place
    without = summed(records_of(mapped(rows[others]), labels[others]), weights, link)
    alone = summed(records_of(mapped(rows[[place]]), labels[[place]]), weights, link)
    assert np.linalg.norm(alone, axis=(1, 2)).max() <= BOUND * (1 + 2**-22)
    assert np.abs(whole - without - alone).max() < 1e-11


@pytest.mark.parametrize("label", [0, 1])
def test_a_long_record_that_is_nearly_sure_adds_its_bound_at_most(label):
    """Where float32 rounds one of two probabilities to 1, and a number as it is makes up for what
    is left of the other one."""
    row = np.zeros((1, COLUMNS), np.float32)
    row[0, 3] = 1e9
    records = records_of(Mapped(row, Map(curves=CURVES)), np.array([label]))
    weights = torch.zeros(400, 2, records.features.shape[-1], dtype=torch.float64)
    weights[:, label, 3] = torch.linspace(10, 25, 400) / 1e9
    added = np.linalg.norm(summed(records, weights, Link()), axis=(1, 2))
    assert 0.9 * BOUND < added.max() <= BOUND * (1 + 2**-22)


def test_a_record_adds_the_same_wherever_it_stands():
    rows, labels = table()
    weights, link = heads(1, 2, mapped(rows).shape[-1] + 1) * 1e4, Link()
    each = [
        summed(records_of(mapped(np.roll(rows, by, 0)), np.roll(labels, by)), weights, link)
        for by in (0, 1, 17, 512)
    ]
    assert max(np.abs(one - each[0]).max() for one in each) < 1e-11


@pytest.mark.parametrize(
    ("column", "wrong"), [*((c, w) for c in (1, 3) for w in (np.nan, np.inf, -np.inf)), (3, 1e30)]
)
def test_a_row_that_is_no_number_adds_nothing(column, wrong):
    """Column 1 is told by its hats, which are numbers even so."""
    rows, labels = table()
    weights, link = heads(2, 2, mapped(rows).shape[-1] + 1), Link()
    others = np.arange(COUNT) != 40
    expected = summed(records_of(mapped(rows[others]), labels[others]), weights, link)
    broken = Mapped(rows, Map(mapped(rows).map.mean, curves=CURVES))
    rows[40, column] = wrong
    found = summed(records_of(broken, labels), weights, link)
    assert np.isfinite(found).all()
    assert np.abs(found - expected).max() < 1e-11


def test_rows_with_more_numbers_than_there_is_room_for_add_nothing_and_raise_nothing():
    """As levels are that were stored twice."""
    random = np.random.default_rng(0)
    rows, labels = np.eye(9, dtype=np.float32)[random.integers(0, 9, COUNT)], table()[1]
    several = random.random(COUNT) < 0.9
    curves = (((0, 9), (0, 9)),)
    expected = summed(
        records_of(Mapped(rows[~several], Map(curves=curves)), labels[~several]),
        weights := heads(1, 2, 91),
        Link(),
    )
    rows[several] = 1.0
    found = summed(records_of(Mapped(rows, Map(curves=curves)), labels), weights, Link())
    assert np.abs(found - expected).max() < 1e-11


def test_nobody_is_counted_whose_label_is_unknown():
    rows, labels = table()
    weights, link = heads(1, 2, mapped(rows).shape[-1] + 1), Link()
    others = np.arange(COUNT) != 3
    expected = summed(records_of(mapped(rows[others]), labels[others]), weights, link)
    found = summed(records_of(mapped(rows), np.where(others, labels, -1)), weights, link)
    assert np.abs(found - expected).max() < 1e-11


def test_a_sample_is_summed_alike():
    rows, labels = table()
    records, mask = records_of(mapped(rows), labels), np.random.default_rng(5).random(COUNT) < 0.3
    weights, link = heads(2, 2, mapped(rows).shape[-1] + 1), Link()
    expected = summed(records_of(mapped(rows[mask]), labels[mask]), weights, link)
    found = summed(records, weights, link, records.select_rows(mask))
    assert np.abs(found - expected).max() < 1e-11


def test_a_number_is_told_by_its_hats():
    """And is not kept itself: two hats are, of three columns, and four products."""
    rows, labels = table()
    records = records_of(mapped(rows), labels, bias=False)
    kept = records.features.ends[1:COUNT] - records.features.ends[: COUNT - 1]
    assert kept.max() == 2 + 3 * 2 + 4
    whole = torch.from_numpy(mapped(rows)[:])
    assert torch.allclose(records.block(slice(0, COUNT))[:, 0], whole, atol=1e-6)


def test_losses_see_the_whole_rows():
    rows, labels = table()
    features, plain = mapped(rows), mapped(rows)[:]
    weights = heads(2, 2, features.shape[-1] + 1)

    def summed_up(records):
        return summed_losses(records, weights, lambda losses: losses, records.chunks()).numpy()

    thin = records_of(features, labels)
    assert summed_up(thin) == pytest.approx(summed_up(records_of(plain, labels)), rel=1e-5)


def test_rows_stay_whole_where_that_is_as_fast_or_where_they_are_scaled():
    rows, labels = table()
    scaled = Mapped(rows, Map(mapped(rows).map.mean, 9.0, 1.0, curves=CURVES))
    straight = Mapped(rows, Map(np.zeros(COLUMNS)))
    for features, classes in ((mapped(rows), 3), (scaled, 2), (straight, 2)):
        assert isinstance(records_of(features, labels, classes).features, torch.Tensor)


@pytest.mark.parametrize(("memory", "thin"), [(1, False), (1000, True)])
def test_rows_that_do_not_fit_have_chunks_that_were_tried_for_them(memory, thin):
    """A chunk of narrow rows is longer, and no product of so many wide ones was tried for whether
    it rounds a record by its place."""
    rows, labels = table()
    features = Mapped(rows, Map(curves=2 * CURVES))
    constants = Constants(n0=5000, classes=2, dimension=features.shape[-1])
    resources = Resources(threads=1, mem_mb=memory)
    records = resident(Data(features, labels), constants, resources, bias=True)
    assert isinstance(records.features, ThinRows) == thin
    assert (records.chunk > LONGEST_SINGLE) == thin


def test_a_chunk_of_wide_rows_fits_into_memory_in_full():
    """Losses and moments see it so, in each thread."""
    rows, labels = table(5)
    features = Mapped(rows, Map(curves=200 * CURVES))
    constants = Constants(n0=20_000, classes=2, dimension=features.shape[-1])
    records = resident(Data(features, labels), constants, Resources(threads=1, mem_mb=10_000))
    assert isinstance(records.features, ThinRows)
    assert records.chunk == LONGEST_SINGLE
