"""Events and spends: what they accept, how they are written down, and what dp_accounting makes of
them."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpladder.errors import BadInput, Refused
from dpladder.privacy.accounting.events import (
    Booked,
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
        RepeatAndSelect,
        inner,
        st.floats(1, 100),
        shapes,
        limits,
        st.floats(0.1, 1),
        st.floats(1, 9),
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
        st.builds(
            SubsetSelect,
            st.floats(1e-6, 1),
            selections(inner),
            positive.map(Gaussian),
            st.booleans(),
            st.floats(1e-12, 1),
        ),
        st.builds(
            Booked,
            st.lists(st.builds(Counted, inner, st.integers(1, 1000)), max_size=3).map(tuple),
            st.floats(1e-12, 1),
        ),
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
        Partition,
        names,
        st.lists(names, unique=True, max_size=2).map(tuple).filter(lambda p: "*" not in p),
    ),
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


SELECTION = RepeatAndSelect(GAUSSIAN, 10, 1)


def make_spend(**changes: Any) -> Spend:
    given: dict[str, Any] = {
        "lineage": "digits",
        "relation": "add_remove",
        "partition": PARTITION,
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
        lambda: RepeatAndSelect(2.0, 10, 1),  # type: ignore[arg-type]
        lambda: RepeatAndSelect(GAUSSIAN, 10, 1, 0),
        lambda: RepeatAndSelect(GAUSSIAN, 10, 1, low=1.1),
        lambda: RepeatAndSelect(GAUSSIAN, 10, 1, high=0.9),
        lambda: SubsetSelect(1.1, SELECTION, GAUSSIAN, True, 1e-7),
        lambda: SubsetSelect(0.2, GAUSSIAN, GAUSSIAN, True, 1e-7),  # type: ignore[arg-type]
        lambda: SubsetSelect(0.2, SELECTION, SELECTION, True, 1e-7),  # type: ignore[arg-type]
        lambda: SubsetSelect(0.2, SELECTION, GAUSSIAN, 1, 1e-7),  # type: ignore[arg-type]
        lambda: SubsetSelect(0.2, SELECTION, GAUSSIAN, True, 0.0),
        lambda: Booked((GAUSSIAN,), 1e-7),  # type: ignore[arg-type]
        *(lambda bad=bad: Booked((Counted(GAUSSIAN),), bad) for bad in (0.0, -1e-9, 1.1)),
        lambda: Counted(2.0),  # type: ignore[arg-type]
        lambda: Job("", "rule"),
        lambda: Job("main", ""),
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
    "event",
    [Laplace(1), Exponential(1), ZCdp(1), Sampled(0.1, GAUSSIAN), RepeatAndSelect(GAUSSIAN, 10, 1)],
)
def test_mu_is_unknown_for_anything_else(event: Any) -> None:
    assert mu(event) is None
    assert mu(Composed((Counted(GAUSSIAN), Counted(event)))) is None
