"""The meter: what was declared is drawn exactly, or nothing is published."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpladder.errors import BadInput, Refused
from dpladder.privacy.accounting import selection
from dpladder.privacy.accounting.draws import Draw, gaussian
from dpladder.privacy.release import noise
from dpladder.privacy.release.grid import add_noise_on_grid
from dpladder.privacy.release.meter import Meter
from dpladder.privacy.release.noise import SecretNoise

SOURCE = SecretNoise(bytes(32), "query", "nonce")
IDS = np.arange(160, dtype=np.uint8).reshape(10, 16)
DRAWS = (
    gaussian("step", 3.0, 1.0, (4, 5), count=2),
    Draw("vote", "laplace", 2.0, (6,), sensitivity=1.0),
    Draw("pick", "uniform", shape=(2,)),
    Draw("batch", "mask", 0.25),
    Draw("runs", "within", sensitivity=0.5),
)
ALL: tuple[Callable[[Meter], Any], ...] = (
    lambda meter: meter.publish("step", np.zeros((4, 5))),
    lambda meter: meter.publish("step", np.ones((4, 5))),
    lambda meter: meter.publish("vote", np.zeros(6)),
    lambda meter: meter.uniform("pick"),
    lambda meter: meter.mask("batch", IDS),
    lambda meter: meter.inner_meters("runs"),
)


def draw_all(meter: Meter) -> list[Any]:
    return [draw(meter) for draw in ALL]


def test_declared_draws_pass_and_are_what_the_streams_say() -> None:
    meter = Meter(DRAWS, SOURCE)
    first, second, vote, pick, batch, _ = draw_all(meter)
    meter.close()
    steps = [noise.gaussian(SOURCE.stream("step", index), (4, 5)) for index in range(2)]
    np.testing.assert_array_equal(first, add_noise_on_grid(np.zeros((4, 5)), steps[0], 3.0))
    np.testing.assert_array_equal(second, add_noise_on_grid(np.ones((4, 5)), steps[1], 3.0))
    votes = noise.laplace(SOURCE.stream("vote", 0), (6,))
    np.testing.assert_array_equal(vote, add_noise_on_grid(np.zeros(6), votes, 2.0))
    np.testing.assert_array_equal(pick, noise.uniform(SOURCE.stream("pick", 0), (2,)))
    np.testing.assert_array_equal(batch, noise.mask(SOURCE.stream("batch", 0), 0.25, IDS))


@pytest.mark.parametrize(
    "stray",
    [
        lambda meter: meter.publish("other", np.zeros((4, 5))),
        lambda meter: meter.publish("step", np.zeros(5)),
        lambda meter: meter.publish("step", np.zeros((5, 4))),
        lambda meter: meter.noise("step", (5, 4)),
        lambda meter: meter.publish("pick", np.zeros(2)),
        lambda meter: meter.uniform("vote"),
        lambda meter: meter.mask("pick", IDS),
        lambda meter: meter.inner_meters("batch"),
        lambda meter: [meter.inner_meters("runs"), meter.inner_meters("runs")],
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
    meter = Meter(DRAWS, SOURCE)
    for index, draw in enumerate(ALL):
        if index != missing:
            draw(meter)
    with pytest.raises(Refused, match="fewer"):
        meter.close()


@pytest.mark.parametrize("mu", [0.25, 0.4999, 0.5001, 2.0])
def test_a_training_inside_a_search_draws_for_the_mu_that_the_search_declared(mu: float) -> None:
    within = Meter(DRAWS, SOURCE).inner_meters("runs")
    assert within.meter("a", [gaussian("noise", 2.0, 1.0)])
    beside = gaussian("more", 0.01, 1.0, under="sample", entering=1.0)
    hidden = [gaussian("noise", 2.0, 1.0), Draw("sample", "mask", 0.1), beside]
    with pytest.raises(Refused, match="another mu than the search declared"):
        within.meter("c", hidden)
    with pytest.raises(Refused, match="another mu"):
        within.meter("b", [gaussian("noise", 1.0 / mu, 1.0)])


def test_trainings_inside_a_search_have_streams_of_their_own() -> None:
    two = Draw("runs", "within", shape=(2,), sensitivity=0.5 * math.sqrt(2))
    within = Meter([two], SOURCE).inner_meters("runs")
    draws = [gaussian("noise", 2.0, 1.0, (50,))]
    one, other = (within.meter(name, draws).noise("noise", (50,)).values for name in "ab")
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("mu", [0.5, 0.0])
def test_no_two_trainings_inside_a_search_share_their_noise(mu: float) -> None:
    """By one name they would draw the same noise, which the difference of their answers cancels."""
    runs = Draw("runs", "within", shape=(3,), sensitivity=mu * math.sqrt(3))
    within = Meter([runs], SOURCE).inner_meters("runs")
    draws = [gaussian("noise", 2.0, 1.0, (50,))]
    within.meter("a", draws)
    within.meter("b", draws)
    with pytest.raises(Refused, match="two trainings inside a search share a name"):
        within.meter("a", draws)


@pytest.mark.parametrize(
    ("declared", "most"),
    [
        ([Draw("all", "within", shape=(3,), sensitivity=0.5 * math.sqrt(3))], 3),
        (
            [
                Draw("runs", "uniform", law=(2.0, 1.0, 7)),
                Draw("all", "within", sensitivity=0.5, under="runs"),
            ],
            7,
        ),
    ],
    ids=["a public number", "a secret number"],
)
def test_a_search_makes_no_more_trainings_than_are_charged(declared: list[Draw], most: int) -> None:
    within = Meter(declared, SOURCE).inner_meters("all")
    draws = [gaussian("noise", 2.0, 1.0)]
    for training in range(most):
        within.meter(str(training), draws)
    with pytest.raises(Refused, match=f"more trainings than the declared {most}"):
        within.meter("another", draws)


def test_trainings_that_cost_nothing_by_themselves_are_not_counted() -> None:
    within = Meter([Draw("parts", "within")], SOURCE).inner_meters("parts")
    assert [within.meter(str(training), [gaussian("noise", 2.0, 1.0)]) for training in range(9)]


def test_a_caught_refusal_still_stops_the_release() -> None:
    meter = Meter(DRAWS, SOURCE)
    draw_all(meter)
    with pytest.raises(Refused, match="more often"):
        meter.publish("step", np.zeros((4, 5)))
    with pytest.raises(Refused):
        meter.close()


def test_a_closed_meter_draws_nothing() -> None:
    meter = Meter([], SOURCE)
    meter.close()
    with pytest.raises(Refused):
        meter.publish("step", np.zeros((4, 5)))


def test_refusals_name_what_was_declared_never_what_private_data_asked_for() -> None:
    with pytest.raises(Refused) as refusal:
        Meter(DRAWS, SOURCE).publish("step", np.zeros(7193))
    assert "3.0" in str(refusal.value)
    assert "71" not in str(refusal.value)
    with pytest.raises(Refused) as refusal:
        Meter([gaussian("step", 1.0, 1.0, (), 9)], SOURCE).close()
    assert "9" in str(refusal.value)
    assert "0" not in str(refusal.value)


def test_steps_and_identical_trials_get_their_own_noise() -> None:
    other = dataclasses.replace(SOURCE, query="of another trial")
    draws = [gaussian("step", 1.0, 1.0, (100,), count=20)]
    meters = [Meter(draws, source) for source in (SOURCE, other)]
    vectors = [meter.noise("step", (100,)).values for meter in meters for _ in range(20)]
    assert len({vector.tobytes() for vector in vectors}) == 40
    assert len(np.unique(vectors)) == 4000


def test_an_audit_sees_every_draw_and_finds_a_source_that_repeats() -> None:
    class Stuck:
        def stream(self, name: str, index: int) -> bytes:
            return SOURCE.stream(name, 0)

    honest, stuck = Meter(DRAWS, SOURCE, audit=True), Meter(DRAWS, Stuck(), audit=True)
    draw_all(honest)
    draw_all(stuck)
    names = [("step", 0), ("step", 1), ("vote", 0), ("pick", 0), ("batch", 0)]
    assert [(used.name, used.index) for used in honest.used] == names
    assert len({used.sha256 for used in honest.used}) == 5
    assert len({used.sha256 for used in stuck.used}) == 4


def test_without_an_audit_no_digest_is_kept() -> None:
    meter = Meter(DRAWS, SOURCE)
    draw_all(meter)
    assert {used.sha256 for used in meter.used} == {None}


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf])
def test_a_draw_needs_a_positive_scale(scale: float) -> None:
    with pytest.raises(BadInput, match="scale"):
        Draw("a", "gaussian", scale, sensitivity=1.0)


def test_other_impossible_declarations_are_refused() -> None:
    for bad in (
        {"count": 0},
        {"shape": (-1,)},
        {"distribution": "mask", "scale": 1.5},
        {"distribution": "cauchy"},
        {"sensitivity": 0.0},
        {"sensitivity": -1.0},
        {"sensitivity": math.inf},
        {"count": 6, "stack": 4},
    ):
        given = {"name": "a", "distribution": "gaussian", "sensitivity": 1.0, **bad}
        with pytest.raises(BadInput):
            Draw(**given)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="share a name"):
        Meter([Draw("a", "mask"), Draw("a", "uniform")], SOURCE)


LAW = (5.0, 1.0, 30)


def test_a_secret_number_of_runs_is_made_by_its_declared_law_alone() -> None:
    draws = [Draw("number", "uniform", law=LAW), Draw("plain", "uniform")]
    uniform = float(noise.uniform(SOURCE.stream("number", 0), ()))
    expected = selection.number(uniform, selection.Runs(*LAW[:2]), LAW[2])
    assert Meter(draws, SOURCE).runs("number") == expected
    for stray in (
        lambda meter: meter.uniform("number"),
        lambda meter: meter.runs("plain"),
        lambda meter: meter.runs("other"),
    ):
        with pytest.raises(Refused):
            stray(Meter(draws, SOURCE))
