"""Composition: the published totals, other accountants as oracles, partitions, and what must be
refused."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpladder.errors import Refused
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.booking import Entry
from dpladder.privacy.accounting.composition import compose, entry_of, largest_entry
from dpladder.privacy.accounting.events import (
    Booked,
    Composed,
    Counted,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    Nothing,
    Partition,
    RepeatAndSelect,
    Spend,
)

DELTA = 1e-5


def spend(
    event: Event, *parts: str, rule: str = "hash", relation: Any = "add_remove", count: int = 1
) -> Spend:
    return Spend("digits", relation, Partition(rule, parts), event, count)


def spend_mu(mu: float, *parts: str, **where: Any) -> Spend:
    return spend(Gaussian(1 / mu), *parts, **where)


def trials(*epsilons: float, relation: Any = "add_remove") -> list[Spend]:
    """One spend each, sigma calibrated under add_remove: replace_one doubles the sums'
    sensitivity."""
    doubled = 2 if relation == "replace_one" else 1
    return [
        spend_mu(doubled * gdp.mu_from_epsilon(epsilon, DELTA), relation=relation)
        for epsilon in epsilons
    ]


def ladder(one: float, two: float, final: float, **where: Any) -> list[Spend]:
    return trials(*[one] * 3, *[two] * 3, final, **where)


def test_a_filter_sees_the_largest_of_each_component_whichever_part_has_it() -> None:
    selection = RepeatAndSelect(Gaussian(20.0), 10.0, 1.0, None)
    selected = spend(selection, "test")
    booked = spend(Booked((Counted(Gaussian(5.0)),), 1e-7), "train")
    other = spend_mu(2.0, "validation")
    most, dearest = largest_entry([selected, booked, other]), entry_of(selected)
    assert (most.loss, most.weight, most.delta0) == (dearest.loss, dearest.weight, 1e-7)
    assert min(most.loss, most.weight) > 0.0
    assert most.mu == pytest.approx(2.0)


# Reference figures.
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
def test_three_trials_per_rung_total_the_published_figures(
    rungs: tuple[float, ...], total: float
) -> None:
    assert compose(ladder(*rungs), DELTA).epsilon == pytest.approx(total, abs=5.01e-7)


def test_scores_are_charged_beside_the_weights() -> None:
    scores = [spend(Gaussian(112.0))] * 6
    assert compose(ladder(0.1, 0.2, 0.88) + scores, DELTA).epsilon == pytest.approx(
        0.9999992, abs=5e-8
    )
    sweep = trials(*[0.1] * 3, *[0.2] * 3)
    assert compose(sweep, DELTA).epsilon == pytest.approx(0.416, abs=5e-4)
    assert compose(sweep + scores, DELTA).epsilon == pytest.approx(0.424, abs=5e-4)


def test_the_same_noise_under_replace_one_costs_2147() -> None:
    assert compose(ladder(0.1, 0.2, 0.88, relation="replace_one"), DELTA).epsilon == pytest.approx(
        2.147, abs=5e-4
    )


@pytest.mark.parametrize(
    ("beside", "gaussian"),
    [
        (Booked((Counted(Gaussian(20.0)),), 1e-7), True),
        (RepeatAndSelect(Gaussian(20.0), 10.0, 1.0, None), False),
    ],
)
def test_a_mu_says_everything_only_where_it_does_for_every_unit(
    beside: Event, gaussian: bool
) -> None:
    """The worst unit at delta bears a Gaussian, and several units of another part together bear
    more than k times its mu."""
    whole = compose([spend_mu(2.0, "test"), spend(beside, "train")], DELTA)
    assert whole.parts["hash", "test"].epsilon == whole.epsilon
    assert (whole.mu is not None) == gaussian
    assert not whole.exact
    assert compose([spend_mu(2.0, "test"), spend_mu(1.0, "train")], DELTA).exact


def test_nothing_costs_nothing() -> None:
    assert compose([], DELTA).epsilon == 0
    free = compose([spend(Nothing("post-processing"), "train")], DELTA)
    assert (free.epsilon, free.mu) == (0, 0)


def test_equal_events_each_count() -> None:
    counted = compose([spend(Laplace(10.0), count=4)], DELTA).epsilon
    assert compose([spend(Laplace(10.0))] * 4, DELTA).epsilon == pytest.approx(counted, rel=1e-12)
    across = [
        spend(Laplace(10.0), part, rule=rule) for rule in ("one", "two") for part in ("a", "b")
    ]
    twice = compose([spend(Laplace(10.0), count=2)], DELTA).epsilon
    assert compose(across, DELTA).epsilon == pytest.approx(twice, rel=1e-12)


def test_nested_events_cost_what_their_pieces_cost() -> None:
    pieces = [spend_mu(0.1, count=6), spend(Laplace(10.0), count=2)]
    nested = Composed((Counted(Composed((Counted(Gaussian(10.0), 3), Counted(Laplace(10.0)))), 2),))
    assert compose([spend(nested)], DELTA).epsilon == pytest.approx(
        compose(pieces, DELTA).epsilon, rel=1e-12
    )


# Partitions (contract: disjoint-parts).


def on(version: str, *spends: Spend) -> list[Spend]:
    return [replace(s, partition=replace(s.partition, version=version)) for s in spends]


def on_two_versions(one: str, two: str) -> list[Spend]:
    trained_first = on(one, spend_mu(3.0, "test"), spend_mu(0.1, "train"))
    return trained_first + on(two, spend_mu(2.0, "train"), spend_mu(0.1, "test"))


# Spends, what the dearest unit bears, and what the dearest in single parts do.
PARTITIONS: dict[str, tuple[list[Spend], float, dict[Any, float]]] = {
    "parts of one rule are disjoint": (
        [spend_mu(0.3, "train"), spend_mu(0.2, "test")],
        0.3,
        {("hash", "train"): 0.3, ("hash", "test"): 0.2},
    ),
    "parts of different rules add, each rule's worst to the others'": (
        [
            *(spend_mu(mu, part, rule="one") for mu, part in ((0.3, "a"), (0.1, "b"))),
            *(spend_mu(mu, part, rule="two") for mu, part in ((0.2, "a"), (0.4, "b"))),
        ],
        0.5,
        {("one", "b"): math.hypot(0.1, 0.4), ("two", "a"): math.hypot(0.3, 0.2)},
    ),
    "a spend is charged to every part it reads": (
        [spend_mu(0.3, "train", "test"), spend_mu(0.4, "test"), spend_mu(1.2)],
        1.3,
        {("hash", "train"): math.hypot(0.3, 1.2)},
    ),
    "a replacement may lie in another part": (
        [
            spend_mu(mu, part, relation="replace_one")
            for mu, part in zip((0.3, 0.4, 0.1), "abc", strict=True)
        ],
        0.5,
        {("hash", "c"): math.hypot(0.1, 0.4)},
    ),
    "an edited record may lie in another part": (
        [*on("v1", spend_mu(0.3, "train")), *on("v2", spend_mu(0.4, "test"))],
        0.5,
        {},
    ),
    # Dearest of those in train is who trained in the second version and was tested in the first.
    **{
        f"a part's figure is the worst of versions {one} and {two}": (
            on_two_versions(one, two),
            math.hypot(3.0, 2.0),
            dict.fromkeys([("hash", "train"), ("hash", "test")], math.hypot(3.0, 2.0)),
        )
        for one, two in ("ab", "ba")
    },
}


@pytest.mark.parametrize("name", PARTITIONS)
def test_a_unit_bears_what_reads_its_parts(name: str) -> None:
    spends, worst, parts = PARTITIONS[name]
    composed = compose(spends, DELTA)
    assert composed.mu == pytest.approx(worst)
    assert composed.epsilon == pytest.approx(gdp.epsilon(worst, DELTA))
    for part, mu in parts.items():
        assert composed.parts[part].mu == pytest.approx(mu)
        assert composed.parts[part].epsilon == pytest.approx(gdp.epsilon(mu, DELTA))


def test_a_mixed_plan_takes_the_worst_choice_of_parts() -> None:
    gaussian, laplace = spend_mu(0.5, "train"), spend(Laplace(4.0), "test")
    composed = compose([gaussian, laplace], DELTA)
    alone = [compose([gaussian], DELTA).epsilon, compose([laplace], DELTA).epsilon]
    assert composed.epsilon == pytest.approx(max(alone), rel=1e-9)
    across = compose([gaussian, spend(Laplace(4.0), "test", rule="other")], DELTA)
    assert across.epsilon > 1.05 * max(alone)


def test_two_lineages_or_two_relations_are_refused() -> None:
    other = Spend("faces", "add_remove", Partition("hash"), Gaussian(1.0))
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


@given(st.lists(gaussian_spends, max_size=6))
def test_composition_is_the_worst_of_all_units_and_a_parts_of_those_in_it(
    spends: list[Spend],
) -> None:
    """By brute force: a unit has one part in every rule."""
    bears = {
        (one, two): math.fsum(
            s.count * (1 / s.event.sigma) ** 2  # type: ignore[union-attr]
            for s in spends
            if not s.partition.parts
            or {"one": one, "two": two}[s.partition.split_rule] in s.partition.parts
        )
        for one, two in product("abc", repeat=2)
    }
    composed = compose(spends, DELTA)
    assert composed.mu == pytest.approx(math.sqrt(max(bears.values())), rel=1e-12)
    for (rule, part), figure in composed.parts.items():
        within = [bear for unit, bear in bears.items() if unit[rule == "two"] == part]
        if within:  # no parts at all are "*"
            assert figure.mu == pytest.approx(math.sqrt(max(within)), rel=1e-12)


mixed_spends = st.builds(
    lambda event, parts: spend(event, *parts),
    st.sampled_from(
        [
            Gaussian(4.0),
            Laplace(8.0),
            Exponential(0.1),
            Booked((Counted(Gaussian(9.0)),), 1e-7),
            RepeatAndSelect(Gaussian(9.0), 4, 1),
        ]
    ),
    any_parts,
)


@given(st.lists(mixed_spends, max_size=6), mixed_spends)
def test_one_more_mixed_spend_never_lowers_epsilon(spends: list[Spend], more: Spend) -> None:
    assert compose([*spends, more], DELTA).epsilon >= compose(spends, DELTA).epsilon * (1 - 1e-9)


def test_the_worst_part_may_change_with_delta_when_components_differ() -> None:
    """A selection in one part, Gaussians in the other: no entry is within the other, so epsilon
    decides."""
    selection = spend(RepeatAndSelect(Gaussian(8.0), 10, 1.0), "train")
    composed = compose([selection, spend_mu(0.2, "test")], DELTA)
    assert composed.epsilon == max(figure.epsilon for figure in composed.parts.values())
    assert composed.mu is None
    assert composed.parts["hash", "test"].entry.costs_no_more_than(Entry(0.2 * (1 + 1e-12)))


def test_the_most_of_each_component_may_be_a_unit_that_is_no_parts_dearest() -> None:
    """A filter holds for every unit: also one whose mu is the largest where delta0 makes others
    dearer."""
    booked = Booked((Counted(Gaussian(1 / 0.5)),), 4e-6)
    spends = [
        one
        for version in ("v1", "v2")
        for one in on(version, spend(booked, "train"), spend(Gaussian(1 / 0.51), "test"))
    ]
    assert max(figure.entry.mu for figure in compose(spends, DELTA).parts.values()) < 0.72
    assert largest_entry(spends).mu == pytest.approx(math.hypot(0.51, 0.51))
    assert largest_entry(spends).delta0 == pytest.approx(8e-6)
