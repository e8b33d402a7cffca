"""Composition: the published totals, other accountants as oracles, partitions, and what must be refused."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpladder.errors import Refused
from dpladder.privacy import gdp, selection
from dpladder.privacy.compose import compose, contributions, report
from dpladder.privacy.selection import Runs
from dpladder.privacy.spend import (
    Composed,
    Counted,
    Event,
    Exponential,
    Gaussian,
    Job,
    Laplace,
    Nothing,
    Partition,
    RepeatAndSelect,
    Sampled,
    Spend,
    SubsetSelect,
    ZCdp,
    new_accountant,
    to_dp_event,
)

DELTA = 1e-5


def spend(
    event: Event, *parts: str, rule: str = "hash", relation: Any = "add_remove", count: int = 1
) -> Spend:
    return Spend("digits", relation, Partition(rule, parts), Job("main", "run_trial"), event, count)


def spend_mu(mu: float, *parts: str, **where: Any) -> Spend:
    return spend(Gaussian(1 / mu), *parts, **where)


def trials(*epsilons: float, relation: Any = "add_remove") -> list[Spend]:
    """One spend each, sigma calibrated under add_remove: replace_one doubles the sums' sensitivity."""
    doubled = 2 if relation == "replace_one" else 1
    return [spend_mu(doubled * gdp.mu(epsilon, DELTA), relation=relation) for epsilon in epsilons]


def ladder(one: float, two: float, final: float, **where: Any) -> list[Spend]:
    return trials(*[one] * 3, *[two] * 3, final, **where)


# DESIGN, section 9.
@pytest.mark.parametrize(
    ("rungs", "total"),
    [
        ((0.01, 0.05, 0.99), 0.997292),
        ((0.05, 0.1, 0.96), 0.991733),
        ((0.05, 0.2, 0.9), 0.997167),
        ((0.1, 0.2, 0.88), 0.996339),
        ((0.2, 0.3, 0.7), 1.004972),
    ],
)
def test_three_trials_per_rung_total_the_published_figures(rungs: tuple[float, ...], total: float) -> None:
    assert compose(ladder(*rungs), DELTA).epsilon == pytest.approx(total, abs=5.01e-7)


def test_scores_are_charged_beside_the_weights() -> None:
    scores = [spend(Gaussian(112.0))] * 6
    assert compose(ladder(0.1, 0.2, 0.88) + scores, DELTA).epsilon == pytest.approx(0.9999992, abs=5e-8)
    sweep = trials(*[0.1] * 3, *[0.2] * 3)
    assert compose(sweep, DELTA).epsilon == pytest.approx(0.416, abs=5e-4)
    assert compose(sweep + scores, DELTA).epsilon == pytest.approx(0.424, abs=5e-4)


def test_the_same_noise_under_replace_one_costs_2147() -> None:
    figures = report(ladder(0.1, 0.2, 0.88, relation="replace_one"), DELTA)
    assert figures["exact"] == pytest.approx(2.147, abs=5e-4)
    assert figures["pld"] == pytest.approx(2.147, abs=5e-4)
    assert 2.147 <= (figures["rdp"] or 0) < 2.5


def test_a_run_is_one_event_so_pld_agrees_to_four_digits() -> None:
    one_run = [spend(Gaussian(gdp.sigma(gdp.mu(0.01, DELTA), 100)), count=100)]
    figures = report(one_run, DELTA)
    assert figures["exact"] == pytest.approx(0.01, rel=1e-9)
    assert figures["pld"] == pytest.approx(0.01, rel=5e-5)


@pytest.mark.parametrize(("interval", "drift"), [(1e-4, 0.0056)])
def test_a_hundred_events_composed_one_by_one_drift_in_pld(interval: float, drift: float) -> None:
    accountant = new_accountant("add_remove", "pld", value_discretization_interval=interval)
    event = to_dp_event(Gaussian(gdp.sigma(gdp.mu(0.01, DELTA), 100)), "add_remove", "pld")
    for _ in range(100):
        accountant.compose(event)
    assert accountant.get_epsilon(DELTA) / 0.01 - 1 == pytest.approx(drift, abs=1e-4)


@pytest.mark.parametrize(
    ("shape", "epsilon"), [(0.0, 1.91699), (0.5, 2.12509), (1.0, 2.31077), (math.inf, 2.53370)]
)
def test_a_private_selection_costs_less_than_by_rdp(shape: float, epsilon: float) -> None:
    selected = [spend(RepeatAndSelect(Gaussian(3.7306316), 10, shape))]
    assert report(selected, DELTA)["rdp"] == pytest.approx(epsilon, abs=5e-6)
    composed = compose(selected, DELTA)
    assert (composed.accountant, composed.mu) == ("profile", None)
    assert composed.epsilon == pytest.approx(
        selection.epsilon(1 / 3.7306316, Runs(10, shape), DELTA), rel=1e-5
    )
    assert composed.epsilon < epsilon


@pytest.mark.parametrize("mean_and_epsilon", [(3, 1.88408), (6, 2.14513), (30, 2.61989)])
def test_a_geometric_selection_grows_with_its_mean(mean_and_epsilon: tuple[float, float]) -> None:
    mean, epsilon = mean_and_epsilon
    selected = [spend(RepeatAndSelect(Gaussian(3.7306316), mean, 1.0))]
    assert report(selected, DELTA)["rdp"] == pytest.approx(epsilon, abs=5e-6)


def test_nothing_costs_nothing() -> None:
    assert compose([], DELTA).epsilon == 0
    free = compose([spend(Nothing("post-processing"), "train")], DELTA)
    assert (free.epsilon, free.mu, free.accountant) == (0, 0, "exact")


def test_accountants_are_ordered_as_their_tightness() -> None:
    figures = report(ladder(0.1, 0.2, 0.88), DELTA)
    assert figures["exact"] == pytest.approx(figures["pld"], rel=1e-5)
    assert figures["exact"] < figures["rdp"] < figures["naive"]  # type: ignore[operator]


def test_naive_is_basic_composition_with_delta_shared_out() -> None:
    by_hand = 3 * sum(gdp.epsilon(gdp.mu(e, DELTA), DELTA / 7) for e in (0.1, 0.2)) + gdp.epsilon(
        gdp.mu(0.88, DELTA), DELTA / 7
    )
    assert report(ladder(0.1, 0.2, 0.88), DELTA)["naive"] == pytest.approx(by_hand, rel=1e-12)


def test_a_report_leaves_out_what_cannot_account() -> None:
    figures = report([spend(RepeatAndSelect(Gaussian(3.0), 10, 1))], DELTA)
    assert figures["exact"] is None
    assert figures["pld"] is None
    assert figures["rdp"] is not None


# Mixed plans.


def test_poisson_batches_beside_gaussians_compose_by_pld() -> None:
    mixed = [spend(Sampled(0.05, Gaussian(2.0)), count=50), spend_mu(0.3)]
    composed = compose(mixed, DELTA)
    by_hand = new_accountant("add_remove", "pld")
    by_hand.compose(to_dp_event(Gaussian(1 / 0.3), "add_remove", "pld"))
    by_hand.compose(to_dp_event(Sampled(0.05, Gaussian(2.0)), "add_remove", "pld"), 50)
    assert composed.accountant == "pld"
    assert composed.mu is None
    assert composed.epsilon == pytest.approx(by_hand.get_epsilon(DELTA), rel=1e-6)


@pytest.mark.parametrize("exact", [0.001, 0.01])
def test_a_small_epsilon_is_not_lost_to_short_rdp_orders(exact: float) -> None:
    tiny = gdp.mu(exact, DELTA)
    epsilon = compose([spend(ZCdp(tiny * tiny / 2))], DELTA).epsilon
    assert exact < epsilon < 1.25 * exact


@pytest.mark.parametrize("pure", [Laplace(5.0), Exponential(0.2)])
def test_pure_events_chosen_as_results_come_in_are_bounded_as_gaussian(pure: Event) -> None:
    composed = compose([spend_mu(0.3), spend(pure, count=4)], DELTA, adaptive=True)
    assert composed.accountant == "bound"
    assert composed.mu == pytest.approx(math.hypot(0.3, 2 * gdp.mu_of_pure(0.2)), rel=1e-12)
    assert composed.epsilon == gdp.epsilon(composed.mu or 0, DELTA)


@pytest.mark.parametrize("event", [Laplace(5.0), Exponential(0.2), Sampled(0.1, Gaussian(1.0)), ZCdp(0.01)])
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_freedom_to_adapt_never_costs_less(event: Event, relation: Any) -> None:
    mixed = [spend_mu(0.3, relation=relation), spend(event, relation=relation, count=3)]
    fixed = compose(mixed, DELTA)
    if isinstance(event, Sampled) and relation == "replace_one":
        assert fixed.accountant == "pld"
        with pytest.raises(Refused, match="chosen as results come in"):
            compose(mixed, DELTA, adaptive=True)
    else:
        free = compose(mixed, DELTA, adaptive=True)
        assert free.epsilon >= fixed.epsilon
        assert free.accountant in ("bound", "rdp")


def test_an_adaptive_rdp_figure_pays_for_choosing_its_order_late() -> None:
    mixed = [spend(ZCdp(0.01))]
    assert compose(mixed, DELTA, adaptive=True).epsilon > 1.1 * compose(mixed, DELTA).epsilon


def test_pure_events_go_wherever_the_rest_goes() -> None:
    pure = [spend(Exponential(0.1)), spend(Laplace(10.0))]
    assert compose([spend(Sampled(0.1, Laplace(4.0))), *pure], DELTA).accountant == "pld"
    assert compose([spend(RepeatAndSelect(Gaussian(3.0), 10, 1)), *pure], DELTA).accountant == "profile"
    assert compose([spend(RepeatAndSelect(Laplace(3.0), 10, 1)), *pure], DELTA).accountant == "rdp"


def test_a_selection_that_leans_or_is_cut_off_is_never_taken_for_one_that_is_not() -> None:
    plain = RepeatAndSelect(Gaussian(3.7), 10, 1.0)
    for other in (replace(plain, limit=400), replace(plain, high=1.5), replace(plain, low=0.5)):
        more = compose([spend(other)], DELTA).epsilon - compose([spend(plain)], DELTA).epsilon
        assert more == 0 if other.limit else more > 0
        with pytest.raises(Refused, match="cannot account"):
            to_dp_event(other, "add_remove", "rdp")


def test_where_runs_are_cut_off_costs_nothing() -> None:
    costs = {
        compose([spend(RepeatAndSelect(Gaussian(3.7), 10, 1.0, limit))], DELTA).epsilon
        for limit in (None, 1, 50)
    }
    assert len(costs) == 1


def test_tuning_on_a_subset_needs_add_remove() -> None:
    tuned = SubsetSelect(0.2, RepeatAndSelect(Gaussian(3.7), 10, 1.0), Gaussian(3.7), True)
    assert compose([spend(tuned)], DELTA).accountant == "profile"
    with pytest.raises(Refused, match="No accountant takes SubsetSelect"):
        compose([spend(tuned, relation="replace_one")], DELTA)


@pytest.mark.parametrize("apart", [True, False])
def test_selections_add_up_beside_gaussians(apart: bool) -> None:
    selected = spend(RepeatAndSelect(Gaussian(8.0), 10, 0.0))
    tuned = spend(SubsetSelect(0.2, RepeatAndSelect(Gaussian(8.0), 10, 1.0), Gaussian(8.0), apart))
    for plan in ([selected, spend_mu(0.1)], [selected, selected], [tuned, spend_mu(0.1)], [tuned, selected]):
        alone = [compose([one], DELTA).epsilon for one in plan]
        basic = sum(compose([one], DELTA / 2).epsilon for one in plan)
        together = compose(plan, DELTA).epsilon
        assert max(alone) < together < basic
        assert together <= compose(plan, DELTA, adaptive=True).epsilon


def test_selections_chosen_as_results_come_in_pay_for_choosing_their_order_late() -> None:
    tuned = [spend(SubsetSelect(0.2, RepeatAndSelect(Gaussian(8.0), 10, 1.0), Gaussian(8.0), True))]
    assert compose(tuned, DELTA, adaptive=True).epsilon > 1.1 * compose(tuned, DELTA).epsilon


def test_rounds_of_pure_dp_cost_what_randomised_response_does() -> None:
    rounds = compose([spend(Exponential(0.1), count=19), spend_mu(0.05)], DELTA)
    assert rounds.accountant == "profile"
    assert rounds.epsilon == pytest.approx(selection.tested_epsilon(0.05, 0.1, 19, DELTA))
    assert (
        rounds.epsilon
        < compose([spend(Exponential(0.1), count=19), spend_mu(0.05)], DELTA, adaptive=True).epsilon
    )


def test_pure_events_that_pld_does_not_take_are_charged_there_too() -> None:
    sampled, pure = spend(Sampled(0.1, Laplace(4.0))), spend(Exponential(0.3), count=2)
    gaussian = spend_mu(gdp.mu_of_pure(0.3) * math.sqrt(2))
    assert compose([sampled, pure], DELTA).epsilon == pytest.approx(
        compose([sampled, gaussian], DELTA).epsilon, rel=1e-9
    )


def test_equal_events_each_count() -> None:
    counted = compose([spend(Laplace(10.0), count=4)], DELTA).epsilon
    assert compose([spend(Laplace(10.0))] * 4, DELTA).epsilon == pytest.approx(counted, rel=1e-12)
    across = [spend(Laplace(10.0), part, rule=rule) for rule in ("one", "two") for part in ("a", "b")]
    twice = compose([spend(Laplace(10.0), count=2)], DELTA).epsilon
    assert compose(across, DELTA).epsilon == pytest.approx(twice, rel=1e-12)


def test_a_laplace_alone_costs_its_pure_epsilon_at_most() -> None:
    assert compose([spend(Laplace(2.0))], 1e-10).epsilon == pytest.approx(0.5, rel=1e-3)


def test_families_that_no_accountant_joins_are_refused() -> None:
    with pytest.raises(Refused, match=r"Sampled\[Laplace\], ZCdp.*add_remove"):
        compose([spend(Sampled(0.1, Laplace(1.0))), spend(ZCdp(0.1))], DELTA)


def test_nested_events_cost_what_their_pieces_cost() -> None:
    pieces = [spend_mu(0.1, count=6), spend(Laplace(10.0), count=2)]
    nested = Composed((Counted(Composed((Counted(Gaussian(10.0), 3), Counted(Laplace(10.0)))), 2),))
    assert compose([spend(nested)], DELTA).epsilon == pytest.approx(compose(pieces, DELTA).epsilon, rel=1e-12)


# Partitions (contract line 9).


def test_parts_of_one_rule_compose_in_parallel() -> None:
    composed = compose([spend_mu(0.3, "train"), spend_mu(0.2, "test")], DELTA)
    assert composed.mu == pytest.approx(0.3)
    assert composed.parts["hash", "train"].mu == pytest.approx(0.3)
    assert composed.parts["hash", "test"].mu == pytest.approx(0.2)
    assert composed.parts["hash", "test"].epsilon == pytest.approx(gdp.epsilon(0.2, DELTA))


def test_parts_of_different_rules_add() -> None:
    composed = compose([spend_mu(0.3, "a", rule="one"), spend_mu(0.4, "b", rule="two")], DELTA)
    assert composed.mu == pytest.approx(0.5)


def test_a_spend_is_charged_to_every_part_it_reads() -> None:
    composed = compose([spend_mu(0.3, "train", "test"), spend_mu(0.4, "test"), spend_mu(1.2)], DELTA)
    assert composed.mu == pytest.approx(1.3)
    assert composed.parts["hash", "train"].mu == pytest.approx(math.hypot(0.3, 1.2))


def test_each_rule_brings_its_own_worst_part() -> None:
    composed = compose(
        [
            spend_mu(0.3, "a", rule="one"),
            spend_mu(0.1, "b", rule="one"),
            spend_mu(0.2, "a", rule="two"),
            spend_mu(0.4, "b", rule="two"),
        ],
        DELTA,
    )
    assert composed.mu == pytest.approx(0.5)
    assert composed.parts["one", "b"].mu == pytest.approx(math.hypot(0.1, 0.4))
    assert composed.parts["two", "a"].mu == pytest.approx(math.hypot(0.3, 0.2))


def test_a_replacement_may_lie_in_another_part() -> None:
    spends = [spend_mu(mu, part, relation="replace_one") for mu, part in [(0.3, "a"), (0.4, "b"), (0.1, "c")]]
    composed = compose(spends, DELTA)
    assert composed.mu == pytest.approx(0.5)
    assert composed.parts["hash", "c"].mu == pytest.approx(math.hypot(0.1, 0.4))


def test_a_mixed_plan_takes_the_worst_choice_of_parts() -> None:
    gaussian, laplace = spend_mu(0.5, "train"), spend(Laplace(4.0), "test")
    composed = compose([gaussian, laplace], DELTA)
    alone = [compose([gaussian], DELTA).epsilon, compose([laplace], DELTA).epsilon]
    assert composed.epsilon == pytest.approx(max(alone), rel=1e-9)
    assert composed.parts["hash", "test"].accountant != "exact"
    across = compose([gaussian, spend(Laplace(4.0), "test", rule="other")], DELTA)
    assert across.epsilon > 1.05 * max(alone)


def test_two_lineages_or_two_relations_are_refused() -> None:
    other = Spend("faces", "add_remove", Partition("hash"), Job("main", "run_trial"), Gaussian(1.0))
    with pytest.raises(Refused, match="digits, faces"):
        compose([spend_mu(0.1), other], DELTA)
    with pytest.raises(Refused, match=r"digits.*add_remove and replace_one"):
        compose([spend_mu(0.1), spend_mu(0.1, relation="replace_one")], DELTA)


# Properties.

any_parts = st.lists(st.sampled_from(["a", "b", "c"]), unique=True, max_size=2).map(tuple)
gaussian_spends = st.builds(
    lambda mu, rule, parts, count: spend_mu(mu, *parts, rule=rule, count=count),
    st.floats(0.01, 2),
    st.sampled_from(["one", "two"]),
    any_parts,
    st.integers(1, 100),
)


@given(st.lists(gaussian_spends, max_size=8), st.randoms())
def test_order_of_spends_does_not_matter(spends: list[Spend], random: Any) -> None:
    shuffled = spends.copy()
    random.shuffle(shuffled)
    assert compose(shuffled, DELTA) == compose(spends, DELTA)


@given(st.lists(gaussian_spends, max_size=8), gaussian_spends)
def test_one_more_spend_never_lowers_a_figure(spends: list[Spend], more: Spend) -> None:
    before, after = compose(spends, DELTA), compose([*spends, more], DELTA)
    assert after.epsilon >= before.epsilon * (1 - 1e-12)
    assert all(
        after.parts[p].epsilon >= f.epsilon * (1 - 1e-12) for p, f in before.parts.items() if p in after.parts
    )


@given(st.lists(gaussian_spends, max_size=8))
def test_parallel_costs_no_more_than_sequential(spends: list[Spend]) -> None:
    sequential = [spend(s.event, count=s.count) for s in spends]
    assert compose(spends, DELTA).epsilon <= compose(sequential, DELTA).epsilon * (1 + 1e-9)


@given(st.lists(gaussian_spends, max_size=6))
def test_composition_is_the_worst_of_all_units(spends: list[Spend]) -> None:
    """By brute force: a unit has one part in every rule."""
    worst = max(
        math.fsum(
            s.count * (1 / s.event.sigma) ** 2  # type: ignore[union-attr]
            for s in spends
            if not s.partition.parts or {"one": one, "two": two}[s.partition.split_rule] in s.partition.parts
        )
        for one, two in product("abc", repeat=2)
    )
    composed = compose(spends, DELTA)
    assert composed.mu == pytest.approx(math.sqrt(worst), rel=1e-12)


mixed_spends = st.builds(
    lambda event, parts: spend(event, *parts),
    st.sampled_from(
        [Gaussian(4.0), Laplace(8.0), Exponential(0.1), ZCdp(0.005), RepeatAndSelect(Gaussian(9.0), 4, 1)]
    ),
    any_parts,
)


@settings(max_examples=15, deadline=None)
@given(st.lists(mixed_spends, min_size=1, max_size=4), mixed_spends, st.booleans())
def test_one_more_mixed_spend_never_lowers_epsilon(spends: list[Spend], more: Spend, adaptive: bool) -> None:
    before = compose(spends, DELTA, adaptive)
    after = compose([*spends, more], DELTA, adaptive)
    assert after.epsilon >= before.epsilon * (1 - 1e-6)
    assert compose([*reversed(spends)], DELTA, adaptive).epsilon == before.epsilon


# Shares.


def test_shares_of_the_worst_part_sum_to_one() -> None:
    spends = [spend_mu(0.3, "train"), spend_mu(0.4, "train"), spend_mu(0.1, "test"), spend_mu(1.2)]
    assert contributions(spends) == pytest.approx((0.09 / 1.69, 0.16 / 1.69, 0, 1.44 / 1.69))


def test_equal_spends_each_have_their_share() -> None:
    assert contributions([spend_mu(0.5)] * 4) == pytest.approx((0.25,) * 4)


def test_shares_need_a_mu_of_every_spend() -> None:
    assert contributions([spend_mu(0.3), spend(ZCdp(0.1))]) is None
    assert contributions([spend(Nothing("free"))]) == (0.0,)
    assert contributions([]) == ()
