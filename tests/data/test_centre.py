"""The private mean: bounded influence of every record, one draw from the meter; and one public map
for train and test."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hn

from dpladder.config.features_sections import Features
from dpladder.data import centre
from dpladder.data.centre import Map, Mapped
from dpladder.errors import BadInput, Refused
from dpladder.learn import counts
from dpladder.learn.data import Data
from dpladder.learn.interface import Constants
from dpladder.learn.queries import UnitMean
from dpladder.privacy.accounting.draws import gaussian
from dpladder.privacy.release.meter import Meter


class Pinned:
    """Noise that a test decides, and a note of what was asked for."""

    def __init__(self, value: float = 0.0) -> None:
        self.value, self.asked = value, []  # type: ignore[var-annotated]

    def declares(self, draw: Any) -> bool:
        return True

    def publish(self, name: str, total: Any) -> Any:
        self.asked.append((name, total.shape))
        return total + self.value


RANDOM = np.random.default_rng(0)
ROWS = np.random.default_rng(0).standard_normal((20000, 4)).astype(np.float16)
LABELS = np.zeros(20000, np.int64)
rows = hn.arrays(
    np.float32, st.tuples(st.integers(1, 8), st.just(3)), elements=st.floats(-1e4, 1e4, width=32)
)


def noised_sum(
    features: Any, labels: Any, radius: float, meter: Any, units: Any = None, exact: bool = False
) -> Any:
    width = features.shape[1]
    query = UnitMean(name="mean", multiplier=2.0, radius=radius, width=width, exact=exact)
    constants = Constants(500, 1, width, cap=1 if units is None else 9)
    return counts.ask(query.at(), Data(features, labels, units), constants, meter)


def total(features: Any, labels: Any, radius: float, exact: bool = False) -> Any:
    return noised_sum(features, labels, radius, Pinned(), exact=exact)


@given(
    features=rows,
    radius=st.sampled_from([0.5, 1.0, 30.0]),
    gone=st.integers(0, 7),
    exact=st.booleans(),
)
@settings(max_examples=100, deadline=None)
def test_one_record_moves_the_sum_by_at_most_the_radius(
    features: Any, radius: float, gone: int, exact: bool
) -> None:
    labels = np.zeros(len(features), np.int64)
    fewer = np.delete(features, gone % len(features), axis=0)
    moved = total(features, labels, radius, exact) - total(fewer, labels[:-1], radius, exact)
    assert np.linalg.norm(moved) <= radius * (1 + 1e-9)


def test_a_row_longer_than_the_radius_moves_it_by_exactly_that() -> None:
    assert np.allclose(total(np.array([[30.0, 40.0]]), np.array([0]), 2.0), [1.2, 1.6])


def test_records_of_every_length_count_alike_where_they_are_scaled_to_the_public_one() -> None:
    """Whatever scale features have: a ball that is far too large would leave noise alone."""
    rows = np.array([[0.003, 0.004], [30.0, 40.0]])
    assert np.allclose(total(rows, np.array([0, 0]), 32.0, exact=True), 2 * np.array([19.2, 25.6]))
    assert centre.ball(None, 32.0) == (32.0, True)
    assert centre.ball(5.0, 32.0) == (5.0, False)
    assert Map(np.zeros(2), 32.0, exact=True)(rows) == pytest.approx(np.array([[19.2, 25.6]] * 2))


def test_the_sum_is_noised_once() -> None:
    noise = Pinned(7.0)
    found = noised_sum(ROWS, LABELS, 100.0, noise)
    assert np.allclose(found, ROWS.astype(np.float64).sum(axis=0) + 7.0, rtol=1e-12)
    assert noise.asked == [("mean", (4,))]


def test_a_unit_weighs_as_one_record_however_many_it_has() -> None:
    """A sum over records would be up to `cap` means: less it, every feature points away."""
    rows = RANDOM.normal(size=(6, 3))
    labels = np.array([0, 1, 2, 0, -1, 1])
    units = np.array([[7] * 16, [8] * 16, [7] * 16, [7] * 16, [8] * 16, [9] * 16], np.uint8)
    found = noised_sum(rows, labels, 100.0, Pinned(), units)
    assert found == pytest.approx(rows[[0, 2, 3]].mean(axis=0) + rows[1] + rows[5])
    one = noised_sum(np.full((4, 3), 1e6), np.zeros(4), 2.0, Pinned(), np.zeros((4, 16), np.uint8))
    assert np.linalg.norm(one) == pytest.approx(2.0)


def test_the_meter_accepts_the_declared_draw_and_no_other() -> None:
    class Source:
        def stream(self, name: str, index: int) -> bytes:
            return b"s" * 32

    def of(width: int) -> Any:
        meter = Meter([gaussian("mean", 2.0, 1.0, (width,))], Source())
        found = noised_sum(ROWS, LABELS, 1.0, meter)
        meter.close()
        return found

    assert of(4).shape == (4,)
    with pytest.raises(Refused):
        of(5)


def test_a_record_that_failed_a_check_counts_as_nothing() -> None:
    labels = LABELS.copy()
    labels[5:15000] = -1
    kept = ROWS[labels >= 0]
    assert np.allclose(total(ROWS, labels, 1.0), total(kept, labels[labels >= 0], 1.0), atol=1e-9)


def test_rows_are_centred_by_the_same_mean_wherever_they_are_read() -> None:
    shift = np.array([0.1, -0.2, 0.0, 0.3])
    mapped = Mapped(ROWS, Map(shift))
    assert np.allclose(mapped[5:9], ROWS[5:9].astype(np.float64) - shift, atol=1e-6)
    assert np.array_equal(mapped[np.array([8, 5])], mapped[5:9][[3, 0]])
    assert (mapped.shape, mapped.ndim, len(mapped)) == ((20000, 4), 2, 20000)
    assert mapped[:0].shape == (0, 4)


@given(features=rows, shift=hn.arrays(np.float64, 3, elements=st.floats(-1, 1)))
@settings(max_examples=60, deadline=None)
def test_every_record_has_the_public_length(features: Any, shift: Any) -> None:
    for seen in (Map(None, None, 32.0), Map(shift, None, 32.0, 0.2), Map(shift, 1.0, 32.0)):
        lengths = np.linalg.norm(seen(features).astype(np.float64), axis=1)
        assert all(length == pytest.approx(32.0, rel=1e-5) or length < 32.0 for length in lengths)


def test_a_record_is_mapped_by_itself() -> None:
    """To the last bit, whoever stands beside it: a public map of each record costs nothing."""
    seen = Map(ROWS[:100].mean(axis=0, dtype=np.float64), None, 32.0, 0.2)
    together = seen(ROWS[:999])
    assert all(np.array_equal(seen(ROWS[k : k + 1])[0], together[k]) for k in range(0, 999, 37))


def test_a_constant_feature_takes_its_share_of_a_centred_record_and_of_no_other() -> None:
    found = Map(np.zeros(4), None, 32.0, 0.2)(ROWS[:50])
    assert found.shape == (50, 5)
    assert found[:, -1] == pytest.approx(6.4)
    assert Map(np.zeros(4), None, 32.0, 0.2).width(4) == 5
    assert Map(None, None, 32.0, 0.2)(ROWS[:50]).shape == (50, 4)


def test_centring_by_a_noised_mean_starts_in_the_ball() -> None:
    found = Map(np.zeros(2), radius=1.0)(np.array([[30.0, 40.0]]))
    assert found[0] == pytest.approx([0.6, 0.8])


def test_a_networks_own_mean_is_what_its_last_norm_tells() -> None:
    """E[ReLU6(z)] for z ~ N(beta, gamma^2) in closed form: with P and p the normal's distribution
    and density, E[max(z - t, 0)] = (beta - t) P((beta - t) / gamma) + gamma p((beta - t) / gamma),
    at t = 0 less that at t = 6."""
    from scipy.stats import norm

    from dpladder.network.public import bundled_state

    state = bundled_state()
    beta = state["bn2.bias"].double().numpy()
    gamma = np.abs(state["bn2.weight"].double().numpy())

    def above(t: float) -> Any:
        place = (beta - t) / gamma
        return (beta - t) * norm.cdf(place) + gamma * norm.pdf(place)

    found = centre.network_mean(Features(layers="last"))
    assert found.shape == (1280,)
    assert found == pytest.approx(above(0.0) - above(6.0), abs=2e-4)


def test_a_network_whose_features_end_in_no_norm_is_refused() -> None:
    with pytest.raises(
        BadInput,
        match=r"features.centre is network, and blocks.4 of efficientnet_lite0 ends",
    ):
        centre.network_mean(Features(layers=("blocks.4",)))


def test_a_noised_mean_is_shrunk_by_what_its_noise_is_expected_to_be() -> None:
    random, truth, noise = np.random.default_rng(3), np.full(400, 0.1), 0.2
    found = np.array([truth + noise * random.normal(size=400) for _ in range(50)])
    near = [centre.shrink_mean(one, noise) for one in found]
    missed, by_noise = (
        np.mean([((one - truth) ** 2).sum() for one in each]) for each in (near, found)
    )
    assert missed == pytest.approx(4.0 * 16.0 / 20.0, rel=0.1)  # |m|^2 d s^2 / (|m|^2 + d s^2)
    assert by_noise == pytest.approx(16.0, rel=0.1)
    assert not centre.shrink_mean(np.full(4, 0.1), 10.0).any()
    assert not centre.shrink_mean(np.zeros(4), 1.0).any()
    assert np.array_equal(centre.shrink_mean(truth, 0.0), truth)
