"""The private mean: bounded influence of every record, one draw from the meter, one map for train and test."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hn

from dpladder.data import mean
from dpladder.errors import Refused
from dpladder.privacy.meter import Draw, Meter


class Pinned:
    """Noise that a test decides, and a note of what was asked for."""

    def __init__(self, value: float = 0.0) -> None:
        self.value, self.asked = value, []  # type: ignore[var-annotated]

    def gaussian(self, name: str, scale: float, shape: tuple[int, ...]) -> Any:
        self.asked.append((name, scale, shape))
        return np.full(shape, self.value)


ROWS = np.random.default_rng(0).standard_normal((20000, 4)).astype(np.float16)
LABELS = np.zeros(20000, np.int64)
rows = hn.arrays(
    np.float32, st.tuples(st.integers(1, 8), st.just(3)), elements=st.floats(-1e4, 1e4, width=32)
)


def total(features: Any, labels: Any, radius: float) -> Any:
    return mean.noised_mean(features, labels, radius, 1, Pinned(), 1.0)


@given(features=rows, radius=st.sampled_from([0.5, 1.0, 30.0]), gone=st.integers(0, 7))
@settings(max_examples=60, deadline=None)
def test_one_record_moves_the_sum_by_at_most_the_radius(features: Any, radius: float, gone: int) -> None:
    labels = np.zeros(len(features), np.int64)
    fewer = np.delete(features, gone % len(features), axis=0)
    moved = total(features, labels, radius) - total(fewer, labels[:-1], radius)
    assert np.linalg.norm(moved) <= radius * (1 + 1e-9)


def test_a_row_longer_than_the_radius_moves_it_by_exactly_that() -> None:
    assert np.allclose(total(np.array([[30.0, 40.0]]), np.array([0]), 2.0), [1.2, 1.6])


def test_the_sum_is_divided_by_the_public_size_and_noised_once() -> None:
    noise = Pinned(7.0)
    found = mean.noised_mean(ROWS, LABELS, 100.0, 500, noise, 3.5)
    assert np.allclose(found, (ROWS.astype(np.float64).sum(axis=0) + 7.0) / 500, rtol=1e-12)
    assert noise.asked == [("mean", 3.5, (4,))]


def test_the_meter_accepts_the_declared_draw_and_no_other() -> None:
    class Source:
        def stream(self, name: str, index: int) -> bytes:
            return b"s" * 32

    def of(scale: float) -> Any:
        meter = Meter([Draw("mean", "gaussian", 2.0, (4,))], Source())
        found = mean.noised_mean(ROWS, LABELS, 1.0, 20000, meter, scale)
        meter.close()
        return found

    assert of(2.0).shape == (4,)
    with pytest.raises(Refused):
        of(1.0)


def test_a_record_that_failed_a_check_counts_as_nothing() -> None:
    labels = LABELS.copy()
    labels[5:15000] = -1
    kept = ROWS[labels >= 0]
    assert np.allclose(total(ROWS, labels, 1.0), total(kept, labels[labels >= 0], 1.0), atol=1e-9)


@given(
    features=rows,
    shift=hn.arrays(np.float64, 3, elements=st.floats(-1, 1)),
    radius=st.sampled_from([0.5, 2.0]),
)
@settings(max_examples=60, deadline=None)
def test_centred_rows_stay_in_the_ball(features: Any, shift: Any, radius: float) -> None:
    found = mean.apply_mean(features, shift, radius)
    assert found.dtype == np.float32
    assert (np.linalg.norm(found.astype(np.float64), axis=1) <= radius * (1 + 1e-6)).all()


def test_centring_takes_the_same_mean_from_every_block() -> None:
    shift = np.array([0.1, -0.2, 0.0, 0.3])
    assert np.allclose(mean.apply_mean(ROWS, shift, 100.0), ROWS.astype(np.float64) - shift, atol=1e-5)
    assert mean.apply_mean(ROWS[:0], shift, 1.0).shape == (0, 4)
