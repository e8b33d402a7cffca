"""Events and spends: what they accept, how they are written down, and what dp_accounting makes of them."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from dp_accounting import DpEvent
from hypothesis import given
from hypothesis import strategies as st

from dpladder.errors import BadInput, Refused
from dpladder.privacy import gdp
from dpladder.privacy.spend import (
    Composed,
    Counted,
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
    from_json,
    mu,
    new_accountant,
    to_dp_event,
    to_json,
)

JOB = Job("main", "run_trial", (("rung", "1"), ("trial", "2")))
PARTITION = Partition("hash", ("train",))
GAUSSIAN = Gaussian(2.0)

positive = st.floats(1e-6, 1e6)
names = st.text(min_size=1, max_size=8)


def selections(inner):
    shapes = st.sampled_from([0.0, 0.5, 1.0, math.inf])
    limits = st.none() | st.integers(1, 1000)
    return st.builds(
        RepeatAndSelect, inner, st.floats(1, 100), shapes, limits, st.floats(0.1, 1), st.floats(1, 9)
    )


events = st.recursive(
    st.one_of(
        positive.map(Gaussian),
        positive.map(Laplace),
        positive.map(Exponential),
        positive.map(ZCdp),
        names.map(Nothing),
    ),
    lambda inner: st.one_of(
        st.builds(Sampled, st.floats(1e-6, 1), inner),
        selections(inner),
        st.builds(SubsetSelect, st.floats(1e-6, 1), selections(inner), positive.map(Gaussian), st.booleans()),
        st.lists(st.builds(Counted, inner, st.integers(1, 1000)), max_size=3).map(
            lambda c: Composed(tuple(c))
        ),
    ),
    max_leaves=6,
)
spends = st.builds(
    Spend,
    lineage=names,
    relation=st.sampled_from(["add_remove", "replace_one"]),
    partition=st.builds(
        Partition, names, st.lists(names, unique=True, max_size=2).map(tuple).filter(lambda p: "*" not in p)
    ),
    job=st.builds(Job, names, names, st.lists(st.tuples(names, names), max_size=2).map(tuple)),
    event=events,
    count=st.integers(1, 10**9),
    label=st.text(max_size=8),
    query=st.none() | names,
)


@given(spends)
def test_a_spend_survives_json_to_the_last_digit(spend: Spend) -> None:
    assert from_json(json.loads(json.dumps(to_json(spend), allow_nan=False))) == spend


def test_an_event_reads_as_plain_json() -> None:
    assert to_json(Sampled(0.1, GAUSSIAN)) == {
        "type": "Sampled",
        "probability": 0.1,
        "event": {"type": "Gaussian", "sigma": 2.0},
    }


@pytest.mark.parametrize(
    ("written", "named"),
    [
        ({"type": "Quantum", "sigma": 1.0}, "Quantum"),
        ({"type": "Gaussian", "sigma": 1.0, "clip": 2.0}, "clip"),
        ({"type": "Sampled", "probability": 0.1, "event": {"type": "Quantum"}}, "Quantum"),
        ({"sigma": 1.0}, "None"),
        ({"type": ["Gaussian"], "sigma": 1.0}, "Gaussian"),
    ],
)
def test_what_a_newer_version_wrote_is_refused_by_name(written: dict[str, Any], named: str) -> None:
    with pytest.raises(Refused, match=named):
        from_json(written)


@pytest.mark.parametrize(
    "written",
    [
        {"type": "Gaussian"},
        {"type": "Gaussian", "sigma": "inf"},
        {"type": "Gaussian", "sigma": math.nan},
        {"type": "Sampled", "probability": 0.1, "event": 3},
        {"type": "Composed", "events": [{"type": "Gaussian", "sigma": 1.0}]},
    ],
)
def test_a_damaged_event_is_bad_input(written: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        from_json(written)


def make_spend(**changes: Any) -> Spend:
    given: dict[str, Any] = {
        "lineage": "digits",
        "relation": "add_remove",
        "partition": PARTITION,
        "job": JOB,
        "event": GAUSSIAN,
    }
    return Spend(**(given | changes))


@pytest.mark.parametrize(
    "make",
    [
        *(
            lambda bad=bad, cls=cls: cls(bad)
            for cls in (Gaussian, Laplace, Exponential, ZCdp)
            for bad in (0, -1.0, math.nan, math.inf, "1", True, None)
        ),
        *(lambda q=q: Sampled(q, GAUSSIAN) for q in (0, -0.1, 1.1, math.nan)),
        lambda: Sampled(0.1, 2.0),  # type: ignore[arg-type]
        lambda: RepeatAndSelect(GAUSSIAN, 0.9, 1),
        lambda: RepeatAndSelect(GAUSSIAN, math.inf, 1),
        lambda: RepeatAndSelect(GAUSSIAN, 10, -1),
        lambda: RepeatAndSelect(GAUSSIAN, 10, math.nan),
        lambda: Composed([Counted(GAUSSIAN)]),  # type: ignore[arg-type]
        lambda: Composed((GAUSSIAN,)),  # type: ignore[arg-type]
        *(lambda n=n: Counted(GAUSSIAN, n) for n in (0, -1, 1.0, True)),
        lambda: Nothing(""),
        lambda: Partition(""),
        lambda: Partition("hash", ("train", "train")),
        lambda: Partition("hash", ("*",)),
        lambda: Partition("hash", "train"),  # type: ignore[arg-type]
        lambda: Job("main", "rule", (("rung",),)),  # type: ignore[arg-type]
        lambda: Job("main", "rule", (("rung", 1),)),  # type: ignore[arg-type]
        lambda: make_spend(lineage=""),
        lambda: make_spend(relation="swap"),
        lambda: make_spend(partition="train"),
        lambda: make_spend(event=1.0),
        lambda: make_spend(count=0),
        lambda: make_spend(query=7),
    ],
)
def test_impossible_spends_cannot_be_made(make: Any) -> None:
    with pytest.raises(BadInput):
        make()


def test_messages_say_what_was_given_and_what_is_allowed() -> None:
    with pytest.raises(BadInput, match=r"Sampled\.probability is 2.*positive, at most 1"):
        Sampled(2, GAUSSIAN)
    with pytest.raises(BadInput, match=r"'swap'.*add_remove, replace_one"):
        make_spend(relation="swap")


def test_mu_is_known_for_gaussians_however_nested() -> None:
    assert mu(Gaussian(5.0), 25) == pytest.approx(1.0, rel=1e-14)
    nested = Composed(
        (
            Counted(Gaussian(10.0), 9),
            Counted(Composed((Counted(Gaussian(5.0), 4),)), 4),
            Counted(Nothing("free")),
        )
    )
    assert mu(nested) == pytest.approx(math.sqrt(9 / 100 + 16 / 25), rel=1e-14)
    assert mu(nested, 4) == pytest.approx(2 * math.sqrt(9 / 100 + 16 / 25), rel=1e-14)


@pytest.mark.parametrize(
    "event", [Laplace(1), Exponential(1), ZCdp(1), Sampled(0.1, GAUSSIAN), RepeatAndSelect(GAUSSIAN, 10, 1)]
)
def test_mu_is_unknown_for_anything_else(event: Any) -> None:
    assert mu(event) is None
    assert mu(Composed((Counted(GAUSSIAN), Counted(event)))) is None


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize(("accountant", "loose"), [("pld", 1.0001), ("rdp", 1.2)])
@pytest.mark.parametrize("event", [Gaussian(1.5), Composed((Counted(Gaussian(3.0), 4),))])
def test_a_gaussian_costs_the_same_under_either_relation(
    relation: Any, accountant: Any, loose: float, event: Any
) -> None:
    """Sigma is over the relation's own sensitivity: neither accountant may double it, nor forget PLD's doubling."""
    got = (
        new_accountant(relation, accountant)
        .compose(to_dp_event(event, relation, accountant))
        .get_epsilon(1e-5)
    )
    exact = gdp.epsilon(1 / 1.5, 1e-5)
    assert exact * (1 - 1e-6) <= got <= exact * loose


def test_a_laplace_costs_its_pure_epsilon_under_either_relation() -> None:
    for relation, accountant in [("add_remove", "pld"), ("add_remove", "rdp"), ("replace_one", "rdp")]:
        event = to_dp_event(Laplace(2.0), relation, accountant)  # type: ignore[arg-type]
        got = new_accountant(relation, accountant).compose(event).get_epsilon(1e-12)  # type: ignore[arg-type]
        assert got == pytest.approx(0.5, rel=0.05)  # RDP of finite orders stays a little above


def test_sampling_everything_costs_what_the_event_costs() -> None:
    for relation in ("add_remove", "replace_one"):
        event = to_dp_event(Sampled(1.0, Gaussian(1.5)), relation, "pld")  # type: ignore[arg-type]
        got = new_accountant(relation, "pld").compose(event).get_epsilon(1e-5)  # type: ignore[arg-type]
        assert got == pytest.approx(gdp.epsilon(1 / 1.5, 1e-5), rel=1e-4)


def test_sampled_replacement_is_the_worst_pair_of_mixtures() -> None:
    """(1-q) N(0) + q N(c) against (1-q) N(0) + q N(-c), where sigma counts 2c: hockey-stick by quadrature."""
    import numpy as np

    q, sigma, epsilon = 0.2, 0.8, 0.5
    x = np.linspace(-40, 40, 2_000_001)
    sd = 2 * sigma  # for c = 1

    def density(centre: float) -> Any:
        gauss = lambda at: np.exp(-((x - at) ** 2) / (2 * sd**2)) / (sd * math.sqrt(2 * math.pi))  # noqa: E731
        return (1 - q) * gauss(0.0) + q * gauss(centre)

    exact = np.maximum(density(1.0) - math.exp(epsilon) * density(-1.0), 0).sum() * (x[1] - x[0])
    event = to_dp_event(Sampled(q, Gaussian(sigma)), "replace_one", "pld")
    assert new_accountant("replace_one", "pld").compose(event).get_delta(epsilon) == pytest.approx(
        exact, rel=1e-3
    )


def test_gaussians_that_see_one_sample_are_one_gaussian() -> None:
    both = Sampled(0.1, Composed((Counted(Gaussian(3.0)), Counted(Gaussian(4.0)))))
    for accountant in ("pld", "rdp"):
        event = to_dp_event(both, "add_remove", accountant)  # type: ignore[arg-type]
        assert event.event.noise_multiplier == pytest.approx(2.4, rel=1e-12)  # type: ignore[attr-defined]


SUPPORTED = {  # event: accountants that take it under add_remove, under replace_one
    "Gaussian": (GAUSSIAN, {"pld", "rdp"}, {"pld", "rdp"}),
    "Laplace": (Laplace(1.0), {"pld", "rdp"}, {"rdp"}),
    "Exponential": (Exponential(0.1), {"rdp"}, {"rdp"}),
    "zCDP": (ZCdp(0.1), {"rdp"}, {"rdp"}),
    "sampled Gaussian": (Sampled(0.1, GAUSSIAN), {"pld", "rdp"}, {"pld"}),
    "sampled Laplace": (Sampled(0.1, Laplace(1.0)), {"pld"}, set()),
    "sampled zCDP": (Sampled(0.1, ZCdp(0.1)), set(), set()),
    "selected Gaussian": (RepeatAndSelect(GAUSSIAN, 10, 1), {"rdp"}, {"rdp"}),
    "selected sampled Gaussian": (RepeatAndSelect(Sampled(0.1, GAUSSIAN), 10, 1), {"rdp"}, set()),
    "sampled selection": (Sampled(0.1, RepeatAndSelect(GAUSSIAN, 10, 1)), set(), set()),
    "mixed": (Composed((Counted(Laplace(1.0)), Counted(ZCdp(0.1)))), {"rdp"}, {"rdp"}),
}


@pytest.mark.parametrize("kind", SUPPORTED)
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("accountant", ["pld", "rdp"])
def test_what_an_accountant_cannot_honour_is_refused(kind: str, relation: Any, accountant: Any) -> None:
    event, add_remove, replace_one = SUPPORTED[kind]
    if accountant in {"add_remove": add_remove, "replace_one": replace_one}[relation]:
        made = to_dp_event(event, relation, accountant)
        assert DpEvent.from_named_tuple(made.to_named_tuple()) == made
    else:
        with pytest.raises(Refused, match=f"{accountant.upper()}.*{relation}"):
            to_dp_event(event, relation, accountant)


@pytest.mark.parametrize(
    ("shape", "epsilon"), [(0.0, 1.91699), (0.5, 2.12509), (1.0, 2.31077), (math.inf, 2.53370)]
)
def test_repeated_selection_costs_the_published_figure(shape: float, epsilon: float) -> None:
    event = to_dp_event(RepeatAndSelect(Gaussian(3.7306316), 10, shape), "add_remove", "rdp")
    got = new_accountant("add_remove", "rdp").compose(event).get_epsilon(1e-5)
    assert got == pytest.approx(epsilon, abs=5e-6)


def test_a_pure_selection_is_half_epsilon_squared_zcdp() -> None:
    event = to_dp_event(Exponential(0.4), "add_remove", "rdp")
    assert event.rho == pytest.approx(0.08)  # type: ignore[attr-defined]
