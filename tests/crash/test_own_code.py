"""A mechanism of the user's own, killed at every step and at random times: whatever it drew is on
the books."""

from __future__ import annotations

import itertools
import random
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest
from crash.processes import forks, run
from crash.test_crash import die_at
from dp_accounting import dp_event

from dpladder import Ledger
from dpladder.errors import Refused
from dpladder.privacy.ledger import book
from dpladder.privacy.ledger.home import open_home

EVENT = dp_event.GaussianDpEvent(20.0)


def opened(folder: Path) -> Ledger:
    return Ledger("toy", epsilon=4.0, delta=1e-5, results=folder / "results", home=folder / "home")


def script(folder: Path) -> None:
    """What users write: two spends, each with a draw that leaves a trace, and a statement."""
    ledger = opened(folder)
    for name in ("first", "second"):
        if ledger.released(name):
            continue
        with ledger.spend(name, EVENT, again=True) as charge:
            with (folder / f"{name}.drawn").open("a") as trace:
                trace.write(".")
            charge.finish(charge.noise(0.0, 1.0))
    ledger.statement()


def charged(folder: Path) -> dict[str, int]:
    """How often each spend was committed, as the disk says."""
    state = book.load(book.Ledger(open_home(folder / "home"), "toy"))
    held = [one for one in state.charges.values() if one.status in ("COMMITTED", "DONE")]
    return {name: sum(one.job.rule == name for one in held) for name in ("first", "second")}


def drawn(folder: Path) -> dict[str, int]:
    traces = {name: folder / f"{name}.drawn" for name in ("first", "second")}
    return {name: len(trace.read_text()) if trace.exists() else 0 for name, trace in traces.items()}


def assert_paid(folder: Path) -> None:
    """Nothing was drawn that is not charged, and one more run ends well."""
    made = drawn(folder)
    assert all(charged(folder)[name] >= made[name] for name in made)
    assert run(script, folder) == 0
    ledger = opened(folder)
    assert ledger.verify() == []
    state = book.load(book.Ledger(open_home(folder / "home"), "toy"))
    done = [held.job.rule for held in state.charges.values() if held.status == "DONE"]
    assert sorted(done) == ["first", "second"]
    assert not [held for held in state.charges.values() if held.status == "RESERVED"]


@pytest.mark.long
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_killed_at_every_step_all_that_was_drawn_is_charged(tmp_path: Path, before: bool) -> None:
    for step in itertools.count(1):
        folder = tmp_path / str(step)
        folder.mkdir()
        ended = run(die_at, step, before, script, folder)
        if ended == 0:
            break
        assert ended == -signal.SIGKILL
        assert_paid(folder)
    assert step > 60


@pytest.mark.few(2)
@pytest.mark.ci
@pytest.mark.parametrize("seed", range(6))
def test_killed_at_random_times_all_that_was_drawn_is_charged(tmp_path: Path, seed: int) -> None:
    choose = random.Random(seed)
    for _ in range(4):
        run(script, tmp_path, kill_after=choose.uniform(0.0, 0.15))
        made = drawn(tmp_path)
        assert all(charged(tmp_path)[name] >= made[name] for name in made)
    assert_paid(tmp_path)


def race(folder: Path, number: int, until: float) -> None:
    """Spend until the ledger refuses."""
    ledger = opened(folder)
    event = dp_event.GaussianDpEvent(6.0)
    with suppress(Refused):  # where another process was quicker
        for trial in itertools.count():
            if time.monotonic() > until or not ledger.affords(event):
                return
            with ledger.spend(f"{number}-{trial}", event) as charge:
                charge.finish(trial)


@pytest.mark.ci
def test_of_many_processes_racing_for_one_limit_none_goes_beyond_it(tmp_path: Path) -> None:
    """As hosts with one home do. Each process spends until it is refused."""
    opened(tmp_path)
    until = time.monotonic() + 60
    racers = [forks().Process(target=race, args=(tmp_path, number, until)) for number in range(4)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    assert [racer.exitcode for racer in racers] == [0] * 4
    ledger = opened(tmp_path)
    assert 3.0 < ledger.spent <= 4.0
    assert ledger.verify() == []
