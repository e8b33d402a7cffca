"""Every refusal of `dpladder.Ledger` names a way that works: each is followed here."""

from __future__ import annotations

import contextlib
import copy
import re
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from dp_accounting import dp_event
from external_ledger.test_ledger import COUNT, fork

import dpladder
from dpladder.errors import Refused
from dpladder.privacy.accounting import gdp
from dpladder.privacy.ledger import book
from dpladder.privacy.ledger.home import open_home
from dpladder.privacy.ledger.state import Terms

SECRET = dp_event.RepeatAndSelectDpEvent(COUNT, mean=4.0, shape=1.0)
LAPLACE = dp_event.LaplaceDpEvent(50.0)
BARE = dp_event.GaussianDpEvent(0.0)
NONE = dp_event.NonPrivateDpEvent()


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPLADDER_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def patients(epsilon: float = 1.0, lineage: str = "patients", **more: Any) -> dpladder.Ledger:
    return dpladder.Ledger(lineage, epsilon=epsilon, delta=1e-5, **more)


def done(name: str = "count") -> Any:
    charge = patients().spend(name, COUNT)
    charge.finish(1)
    return charge


def spends(name: str = "count", **how: Any) -> Callable[[str], None]:
    """The way out is a spend, from its reservation to its end."""

    def way(told: str) -> None:
        opened = patients(**{key: how.pop(key) for key in ("lineage", "results") if key in how})
        with opened.spend(name, how.pop("mechanism", COUNT), **how) as charge:
            charge.finish(1)
        assert opened.verify() == []

    return way


AGAIN, OTHER = spends(again=True), spends("another")


def research() -> None:
    book.open_ledger(
        open_home(),
        Terms("patients", "add_remove", "record", 1, 1e-5, "all", 1.0, mode="research"),
    )
    patients()


def beyond() -> None:
    done()
    patients().reserve("more", dp_event.GaussianDpEvent(3.6))


def remaining(told: str) -> None:
    found = re.search(r"which leaves epsilon = ([\d.]+\d)", told)
    assert found is not None, told
    sigma = gdp.sigma(gdp.mu_from_epsilon(float(found[1]), 1e-5), 1)
    patients().spend("more", dp_event.GaussianDpEvent(sigma)).finish(1)


def given_back(told: str) -> None:
    assert "refund()" in told
    patients().reserve("large", dp_event.GaussianDpEvent(5.0)).refund()
    patients().spend("more", dp_event.GaussianDpEvent(5.0)).finish(1)


def reserved_too_much() -> None:
    patients().reserve("large", dp_event.GaussianDpEvent(5.0))
    patients().reserve("more", dp_event.GaussianDpEvent(5.0))


def selections(told: str) -> None:
    found = re.search(r"this needs ([\d.]+) and ([\d.]+\d)\..* loss=, weight=", told)
    assert found is not None, told
    other = patients(4.0, lineage="other", loss=float(found[1]), weight=float(found[2]))
    other.spend("best", SECRET).finish(1)


def overtaken() -> None:
    mine, other = patients().reserve("count", COUNT), patients().reserve("count", COUNT)
    other.commit()
    mine.commit()


def unsaid() -> None:
    with patients().spend("count", COUNT):
        pass


def say(told: str) -> None:
    with contextlib.suppress(Refused), patients().spend("another", COUNT) as charge:
        pass
    charge.finish(1)
    assert charge.status == "DONE"


def uncommitted() -> None:
    patients().reserve("count", COUNT).noise(1.0, 1.0)


def committed(told: str) -> None:
    assert "commit() it first" in told
    patients().reserve("count", COUNT).commit().finish(1)


def twice() -> None:
    charge = patients().spend("count", COUNT)
    charge.noise(1.0, 1.0)
    charge.noise(1.0, 1.0)


def reserved_twice(told: str) -> None:
    charge = patients().spend("another", [COUNT, COUNT])
    charge.noise(1.0, 1.0)
    charge.noise(1.0, 1.0)


def elsewhere(work: Callable[[], object]) -> None:
    """In another thread, whose refusal is raised here."""
    caught: list[Refused] = []

    def run() -> None:
        try:
            work()
        except Refused as refused:
            caught.append(refused)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if caught:
        raise caught[0]


def in_a_fork(work: Callable[[], object]) -> None:
    if (said := fork(work)) != "nothing":
        assert said.startswith("Refused: "), said
        raise Refused(said.removeprefix("Refused: "))


def forked_ledger() -> None:
    ledger = patients()
    in_a_fork(lambda: ledger.reserve("count", COUNT))


def forked_charge() -> None:
    charge = patients().spend("count", COUNT)
    in_a_fork(lambda: charge.noise(1.0, 1.0))


def shared_charge() -> None:
    charge = patients().spend("count", COUNT)
    elsewhere(lambda: charge.noise(1.0, 1.0))


def other_home() -> None:
    done()
    patients(home=Path("other").absolute())


def occupied() -> None:
    done()
    patients().statement()
    patients(lineage="other").spend("count", COUNT).finish(1)
    patients(lineage="other").statement()


def own_folder(told: str) -> None:
    assert "results=" in told
    patients(lineage="other", results="theirs").statement()


Way = Callable[[str], object]
REFUSED: Mapping[str, tuple[Callable[[], object], tuple[Way, ...]]] = {
    "research": (research, (spends(lineage="other"),)),
    "other terms": (
        lambda: (done(), patients(2.0)),
        (lambda told: patients(1.0),),
    ),
    "a copy of the ledger": (
        lambda: copy.copy(patients()),
        (lambda told: in_a_fork(lambda: OTHER("")),),
    ),
    "a copy of a charge": (
        lambda: copy.copy(patients().spend("count", COUNT)),
        (lambda told: in_a_fork(lambda: OTHER("")),),
    ),
    "a fork's ledger": (
        forked_ledger,
        (lambda told: in_a_fork(lambda: spends()("")),),
    ),
    "a fork's charge": (
        forked_charge,
        (lambda told: in_a_fork(lambda: OTHER("")),),
    ),
    "a name that was paid for": (
        lambda: (done(), patients().reserve("count", COUNT)),
        (OTHER, AGAIN),
    ),
    "committed twice": (lambda: done().commit(), (AGAIN,)),
    "given back": (
        lambda: (charge := patients().reserve("count", COUNT), charge.refund(), charge.commit()),
        (AGAIN,),
    ),
    "after the end": (
        lambda: done().noise(1.0, 1.0),
        (AGAIN,),
    ),
    "another thread": (
        shared_charge,
        (lambda told: elsewhere(lambda: AGAIN("")),),
    ),
    "before the beginning": (uncommitted, (committed,)),
    "more noise than was reserved": (twice, (reserved_twice,)),
    "a block that says nothing": (unsaid, (say,)),
    "reserved by two": (overtaken, (OTHER,)),
    "beyond the limit": (beyond, (remaining,)),
    "reserved and unused": (reserved_too_much, (given_back,)),
    "selections": (
        lambda: patients(4.0).reserve("best", SECRET),
        (selections,),
    ),
    "no price": (
        lambda: patients().reserve("bare", NONE),
        (
            spends(mechanism=COUNT),
            spends(mechanism=LAPLACE),
            spends(mechanism=[(30.0, 1.0, 2)]),
        ),
    ),
    "a sample without a price": (
        lambda: patients().reserve(
            "sample", dp_event.PoissonSampledDpEvent(0.1, dp_event.ComposedDpEvent([LAPLACE] * 2))
        ),
        (
            spends(mechanism=dp_event.PoissonSampledDpEvent(0.1, LAPLACE)),
            spends(mechanism=dp_event.PoissonSampledDpEvent(0.1, COUNT)),
        ),
    ),
    "without noise": (
        lambda: patients().reserve("bare", BARE),
        (spends(mechanism=COUNT),),
    ),
    "another home": (
        other_home,
        (OTHER,),
    ),
    "another's folder": (occupied, (own_folder,)),
}
FOLLOWED = [(name, place) for name, (_, ways) in REFUSED.items() for place in range(len(ways))]


@pytest.mark.few(9)
@pytest.mark.parametrize(("name", "place"), FOLLOWED)
def test_what_a_refusal_advises_works(name: str, place: int, approved: Callable[..., None]) -> None:
    cause, ways = REFUSED[name]
    with pytest.raises(Refused) as refusal:
        cause()
    told = str(refusal.value)
    approved(told, heading=f"test_what_a_refusal_advises_works {name}")
    ways[place](told)
