"""Plan arithmetic: what is left is spent exactly, and every proposal really fits."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpladder.errors import BadInput, Refused
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.booking import price
from dpladder.privacy.accounting.composition import compose
from dpladder.privacy.accounting.events import (
    Booked,
    Counted,
    Event,
    Gaussian,
    Laplace,
    Partition,
    RepeatAndSelect,
    Spend,
)
from dpladder.privacy.accounting.remaining import (
    nearest_feasible,
    remaining_mu,
    sentence,
)
from dpladder.privacy.accounting.rounding import round_up

DELTA = 1e-5
EVERYONE = Partition("hash")


def spend(event: Event, partition: Partition = EVERYONE, relation: Any = "add_remove") -> Spend:
    return Spend("digits", relation, partition, event)


def sweep(factor: float = 1.0) -> list[Spend]:
    return [
        spend(Gaussian(1 / gdp.mu_from_epsilon(factor * epsilon, DELTA)))
        for epsilon in [0.1] * 3 + [0.2] * 3
    ]


@given(st.floats(0.45, 20))
def test_the_rest_of_a_total_is_spent_to_the_last_digit(total: float) -> None:
    left = remaining_mu(total, DELTA, sweep(), EVERYONE)
    joint = compose([*sweep(), spend(Gaussian(1 / left))], DELTA).epsilon
    assert total * (1 - 1e-9) <= joint <= total * (1 + 1e-12)


def test_the_whole_total_is_left_before_any_spend() -> None:
    assert remaining_mu(1.0, DELTA, [], EVERYONE) == pytest.approx(
        gdp.mu_from_epsilon(1.0, DELTA), rel=1e-12
    )


def test_only_spends_on_the_same_part_are_deducted() -> None:
    train, test = Partition("hash", ("train",)), Partition("hash", ("test",))
    scores = [spend(Gaussian(5.0), test)]
    whole, rest = (
        gdp.mu_from_epsilon(1.0, DELTA),
        gdp.remaining(gdp.mu_from_epsilon(1.0, DELTA), [0.2]),
    )
    assert remaining_mu(1.0, DELTA, scores, train) == pytest.approx(whole, rel=1e-12)
    assert remaining_mu(1.0, DELTA, scores, test) == pytest.approx(rest, rel=1e-12)
    assert remaining_mu(1.0, DELTA, scores, EVERYONE) == pytest.approx(rest, rel=1e-12)
    assert remaining_mu(1.0, DELTA, scores, Partition("other", ("train",))) == pytest.approx(
        rest, rel=1e-12
    )


def test_what_is_left_for_everyone_is_what_the_worst_part_has() -> None:
    spends = [
        spend(Gaussian(5.0), Partition("hash", ("test",))),
        spend(Gaussian(2.0), Partition("hash", ("train",))),
    ]
    left = remaining_mu(3.0, DELTA, spends, EVERYONE)
    assert left == pytest.approx(gdp.remaining(gdp.mu_from_epsilon(3.0, DELTA), [0.5]), rel=1e-12)


def test_a_part_of_the_same_name_under_another_rule_is_not_the_same_part() -> None:
    spends = [
        spend(Gaussian(5.0), Partition("hash", ("test",))),
        spend(Gaussian(10.0), Partition("other", ("train",))),
    ]
    left = remaining_mu(1.0, DELTA, spends, Partition("hash", ("train",)))
    assert left == pytest.approx(gdp.remaining(gdp.mu_from_epsilon(1.0, DELTA), [0.1]), rel=1e-12)


def test_under_replace_one_another_parts_spends_are_deducted_too() -> None:
    train, test = Partition("hash", ("train",)), Partition("hash", ("test",))
    scores = [spend(Gaussian(5.0), test, "replace_one")]
    left = remaining_mu(1.0, DELTA, scores, train)
    assert left == pytest.approx(gdp.remaining(gdp.mu_from_epsilon(1.0, DELTA), [0.2]), rel=1e-12)
    final = spend(Gaussian(1 / left), train, "replace_one")
    assert compose([*scores, final], DELTA).epsilon == pytest.approx(1.0, rel=1e-9)


def test_an_exhausted_total_is_refused_with_its_price() -> None:
    with pytest.raises(Refused, match=r"epsilon 0\.4.*0\.4165"):
        remaining_mu(0.4, DELTA, sweep(), EVERYONE)


def test_pure_spends_are_deducted_as_the_gaussians_that_bound_them() -> None:
    left = remaining_mu(1.0, DELTA, [spend(Laplace(10.0))], EVERYONE)
    assert left == pytest.approx(
        gdp.remaining(gdp.mu_from_epsilon(1.0, DELTA), [price(Laplace(10.0), "add_remove").mu]),
        rel=1e-12,
    )


@pytest.mark.ci
@given(st.floats(0.05, 2), st.floats(0.05, 0.95))
def test_proposals_fit_and_are_nearest(total: float, share: float) -> None:
    nearest = nearest_feasible(total, DELTA, sweep, EVERYONE, share)

    def search_share(epsilon: float, factor: float) -> float:
        composed = compose(sweep(factor), DELTA).mu or 0
        return (composed / gdp.mu_from_epsilon(epsilon, DELTA)) ** 2

    assert search_share(nearest.total_epsilon, 1) <= (1 - share) * (1 + 1e-9)
    assert search_share(nearest.total_epsilon * 0.98, 1) > 1 - share
    if nearest.factor:
        assert search_share(total, nearest.factor) <= (1 - share) * (1 + 1e-9)
    if nearest.factor < 1:
        assert search_share(total, nearest.factor + 0.001) > (1 - share) * (1 - 1e-9)


def test_the_proposal_is_one_sentence_with_numbers() -> None:
    nearest = nearest_feasible(0.4, DELTA, sweep, EVERYONE, 0.5)
    assert sentence(nearest) == (
        "All before the final training costs epsilon 0.4165; multiply every rung's epsilon by "
        "0.657, or raise the total to 0.608."
    )


def test_a_sweep_too_dear_at_any_scale_only_asks_for_more() -> None:
    nearest = nearest_feasible(0.1, DELTA, lambda factor: sweep(), EVERYONE, 0.5)
    assert (
        sentence(nearest)
        == "All before the final training costs epsilon 0.4165; raise the total to 0.608."
    )


def test_what_a_sweep_is_said_to_cost_counts_what_it_is_booked_at() -> None:
    booked = [spend(Booked((Counted(one.event),), 1e-7)) for one in sweep()]
    nearest = nearest_feasible(0.4, DELTA, lambda factor: booked, EVERYONE, 0.5)
    assert nearest.sweep_epsilon == compose(booked, DELTA).epsilon
    assert nearest.sweep_epsilon > 1.001 * compose(sweep(), DELTA).epsilon


@pytest.mark.parametrize("share", [0, 1, math.nan])
def test_the_final_run_has_a_share_between_none_and_all(share: float) -> None:
    with pytest.raises(BadInput, match="final_share"):
        nearest_feasible(1.0, DELTA, sweep, EVERYONE, share)


@given(st.floats(1e-4, 1e3))
def test_a_shown_epsilon_is_never_below_the_real_one(epsilon: float) -> None:
    shown = float(round_up(epsilon))
    assert epsilon - 1e-12 <= shown <= epsilon + 1.01e-4


def test_what_a_training_is_booked_at_is_taken_from_delta_first() -> None:
    left = remaining_mu(1.0, DELTA, [], EVERYONE, delta0=2e-6)
    assert left == pytest.approx(gdp.mu_from_epsilon(1.0, 8e-6), rel=1e-9)
    before = [spend(Booked((Counted(Gaussian(20.0)),), 1e-6))]
    left = remaining_mu(1.0, DELTA, before, EVERYONE, delta0=2e-6)
    assert left == pytest.approx(gdp.remaining(gdp.mu_from_epsilon(1.0, 7e-6), [1 / 20]), rel=1e-9)


def test_beside_a_selection_its_loss_and_weight_are_taken_off() -> None:
    selection = spend(RepeatAndSelect(Gaussian(10.0), 5.0, 1.0, 50))
    entry = price(selection.event, "add_remove")
    left = remaining_mu(2.0, DELTA, [selection], EVERYONE)
    whole = gdp.mu_from_epsilon(2.0 - entry.loss, DELTA / math.exp(entry.weight))
    assert left == pytest.approx(gdp.remaining(whole, [entry.mu]), rel=1e-9)
