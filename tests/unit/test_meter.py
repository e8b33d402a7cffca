"""The meter: what was declared is drawn exactly, or nothing is published."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpladder.errors import BadInput, Refused
from dpladder.privacy import noise
from dpladder.privacy.meter import Draw, Meter
from dpladder.privacy.noise import SecretNoise
from dpladder.privacy.spend import Job

JOB = Job("main", "run_trial", (("trial", "0"),))
SOURCE = SecretNoise(bytes(32), JOB, "query", "nonce")
IDS = np.arange(160, dtype=np.uint8).reshape(10, 16)
DRAWS = (
    Draw("step", "gaussian", 3.0, (4, 5), count=2),
    Draw("vote", "laplace", 2.0, (6,)),
    Draw("pick", "uniform", shape=(2,)),
    Draw("batch", "mask", 0.25),
    Draw("dropout", "seed"),
)


def draw_all(meter: Meter) -> list[Any]:
    return [
        meter.gaussian("step", 3.0, (4, 5)),
        meter.gaussian("step", 3.0, (4, 5)),
        meter.laplace("vote", 2.0, (6,)),
        meter.uniform("pick", (2,)),
        meter.mask("batch", 0.25, IDS),
        meter.seed("dropout"),
    ]


def test_declared_draws_pass_and_are_what_the_streams_say() -> None:
    meter = Meter(DRAWS, SOURCE)
    first, second, vote, pick, batch, seed = draw_all(meter)
    meter.close()
    np.testing.assert_array_equal(first, 3.0 * noise.gaussian(SOURCE.stream("step", 0), (4, 5)))
    np.testing.assert_array_equal(second, 3.0 * noise.gaussian(SOURCE.stream("step", 1), (4, 5)))
    np.testing.assert_array_equal(vote, 2.0 * noise.laplace(SOURCE.stream("vote", 0), (6,)))
    np.testing.assert_array_equal(pick, noise.uniform(SOURCE.stream("pick", 0), (2,)))
    np.testing.assert_array_equal(batch, noise.mask(SOURCE.stream("batch", 0), 0.25, IDS))
    assert 0 <= seed < 2**64
    assert seed.to_bytes(8, "little") == SOURCE.stream("dropout", 0)[:8]


@pytest.mark.parametrize(
    "stray",
    [
        lambda meter: meter.gaussian("other", 3.0, (4, 5)),
        lambda meter: meter.laplace("step", 3.0, (4, 5)),
        lambda meter: meter.gaussian("step", 1.5, (4, 5)),
        lambda meter: meter.gaussian("step", math.nextafter(3.0, 0.0), (4, 5)),
        lambda meter: meter.gaussian("step", 3.0, (5,)),
        lambda meter: meter.gaussian("step", 3.0, (5, 4)),
        lambda meter: meter.laplace("vote", 1.0, (6,)),
        lambda meter: meter.uniform("pick", (3,)),
        lambda meter: meter.mask("batch", 0.5, IDS),
        lambda meter: meter.seed("batch"),
        lambda meter: [meter.seed("dropout"), meter.seed("dropout")],
    ],
)
def test_any_other_draw_is_refused_and_the_meter_never_closes_well_again(
    stray: Callable[[Meter], Any],
) -> None:
    meter = Meter(DRAWS, SOURCE)
    with pytest.raises(Refused):
        stray(meter)
    with pytest.raises(Refused):
        draw_all(meter)
    with pytest.raises(Refused):
        meter.close()


@pytest.mark.parametrize("missing", range(6))
def test_one_draw_fewer_is_refused_at_close(missing: int) -> None:
    draws = [
        lambda meter: meter.gaussian("step", 3.0, (4, 5)),
        lambda meter: meter.gaussian("step", 3.0, (4, 5)),
        lambda meter: meter.laplace("vote", 2.0, (6,)),
        lambda meter: meter.uniform("pick", (2,)),
        lambda meter: meter.mask("batch", 0.25, IDS),
        lambda meter: meter.seed("dropout"),
    ]
    meter = Meter(DRAWS, SOURCE)
    for index, draw in enumerate(draws):
        if index != missing:
            draw(meter)
    with pytest.raises(Refused, match="fewer"):
        meter.close()


def test_a_caught_refusal_still_stops_the_release() -> None:
    meter = Meter(DRAWS, SOURCE)
    draw_all(meter)
    with pytest.raises(Refused, match="more often"):
        meter.gaussian("step", 3.0, (4, 5))
    with pytest.raises(Refused):
        meter.close()


def test_a_closed_meter_draws_nothing() -> None:
    meter = Meter([], SOURCE)
    meter.close()
    with pytest.raises(Refused):
        meter.gaussian("step", 3.0, (4, 5))


def test_refusals_name_what_was_declared_never_what_private_data_asked_for() -> None:
    for scale, shape in ((71.25, (4, 5)), (3.0, (7193,))):
        with pytest.raises(Refused) as refusal:
            Meter(DRAWS, SOURCE).gaussian("step", scale, shape)
        assert "3.0" in str(refusal.value)
        assert "71" not in str(refusal.value)
    with pytest.raises(Refused) as refusal:
        Meter([Draw("step", "gaussian", 1.0, (), 9)], SOURCE).close()
    assert "9" in str(refusal.value)
    assert "0" not in str(refusal.value)


def test_steps_and_identical_trials_get_their_own_noise() -> None:
    other = dataclasses.replace(SOURCE, job=Job("main", "run_trial", (("trial", "1"),)))
    draws = [Draw("step", "gaussian", 1.0, (100,), count=20)]
    meters = [Meter(draws, source) for source in (SOURCE, other)]
    vectors = [meter.gaussian("step", 1.0, (100,)) for meter in meters for _ in range(20)]
    assert len({vector.tobytes() for vector in vectors}) == 40
    assert len(np.unique(vectors)) == 4000


def test_an_audit_sees_every_draw_and_finds_a_source_that_repeats() -> None:
    class Stuck:
        def stream(self, name: str, index: int) -> bytes:
            return SOURCE.stream(name, 0)

    honest, stuck = Meter(DRAWS, SOURCE, audit=True), Meter(DRAWS, Stuck(), audit=True)
    draw_all(honest)
    draw_all(stuck)
    names = [("step", 0), ("step", 1), ("vote", 0), ("pick", 0), ("batch", 0), ("dropout", 0)]
    assert [(used.name, used.index) for used in honest.used] == names
    assert len({used.sha256 for used in honest.used}) == 6
    assert len({used.sha256 for used in stuck.used}) == 5


def test_without_an_audit_no_digest_is_kept() -> None:
    meter = Meter(DRAWS, SOURCE)
    draw_all(meter)
    assert {used.sha256 for used in meter.used} == {None}


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf])
def test_a_draw_needs_a_positive_scale(scale: float) -> None:
    with pytest.raises(BadInput, match="scale"):
        Draw("a", "gaussian", scale)


def test_other_impossible_declarations_are_refused() -> None:
    for bad in (
        {"count": 0},
        {"shape": (-1,)},
        {"distribution": "mask", "scale": 1.5},
        {"distribution": "cauchy"},
    ):
        with pytest.raises(BadInput):
            Draw(**{"name": "a", "distribution": "gaussian", **bad})  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="share a name"):
        Meter([Draw("a", "seed"), Draw("a", "uniform")], SOURCE)
