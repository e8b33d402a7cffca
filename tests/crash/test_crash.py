"""Real processes, killed at every step and at random times, racing for one limit and for one token.

The parent looks at what is left and runs again.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import random
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crash.processes import forks, run, together
from support import commit, release

from dpladder.errors import Refused
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.draws import gaussian
from dpladder.privacy.accounting.events import Gaussian, Job, Partition, Spend
from dpladder.privacy.ledger.book import (
    Ledger,
    cost_so_far,
    finish,
    head,
    load,
    open_ledger,
    refund,
    reserve,
    verify,
)
from dpladder.privacy.ledger.home import open_home
from dpladder.privacy.ledger.state import Item, LedgerCharge, Terms
from dpladder.privacy.release.meter import Meter

pytestmark = pytest.mark.ci

TERMS = Terms("toy", "add_remove", "record", 1, 1e-5, "hash", lifetime_epsilon=1.0)
DRAWS = (gaussian("noise", 20.0, 1.0, (4,)),)
DURABLE = ("link", "replace", "rename", "fsync", "unlink", "mkdir", "rmdir", "open")


def item(trial: int, mu: float = 0.05) -> Item:
    job = Job("main", "run_trial", (("trial", str(trial)),))
    spend = Spend("toy", "add_remove", Partition("hash", ("train",)), Gaussian(gdp.sigma(mu, 1)))
    return Item(job, f"trial {trial}", (spend,))


def produce(meter: Meter, folder: Path) -> None:
    """Noise, and bytes that no second run would repeat."""
    (folder / "weights").write_bytes(meter.publish("noise", np.zeros(4)).tobytes() + os.urandom(8))


def whole_job(folder: Path) -> None:
    """What the workflow does from the first look to the published file."""
    ledger = open_ledger(open_home(folder / "home"), TERMS)
    one = item(0)
    reserve(ledger, [one])
    outputs = {"weights": folder / "results" / "weights"}
    release(ledger, one.job, one.question, "query", one.spends, DRAWS, produce, outputs)


def die_at(step: int, before: bool, work: Callable[..., object], *given: Any) -> None:
    """`work`, killed just before or just after its step-th call that changes what is on disk."""
    calls = itertools.count(1)

    def patched(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            fatal = next(calls) == step
            if fatal and before:
                os.kill(os.getpid(), signal.SIGKILL)
            try:
                return real(*args, **options)
            finally:
                if fatal:
                    os.kill(os.getpid(), signal.SIGKILL)

        return call

    for name in DURABLE:
        setattr(os, name, patched(getattr(os, name)))
    work(*given)


def published(folder: Path) -> bytes | None:
    path = folder / "results" / "weights"
    return path.read_bytes() if path.exists() else None


def assert_whole(folder: Path, seen: set[bytes]) -> None:
    """One run to the end, whatever was there: one charge, one release, never other bytes than were
    published before."""
    assert run(whole_job, folder) == 0
    ledger = Ledger(open_home(folder / "home"), "toy")
    state = load(ledger)
    assert verify(ledger) == []
    assert len(state.charged_spends()) == 1
    assert [held.status for held in state.charges.values()] == ["DONE"]
    seen.add(published(folder) or b"")
    assert len(seen) == 1
    assert len(seen.pop()) == 40
    assert len(list((folder / "home" / "releases" / "toy" / "query").iterdir())) == 1
    assert not list((folder / "home" / "staging").iterdir())


def look_at_threads() -> None:
    assert len(os.listdir(f"/proc/{os.getppid()}/task")) == 1


def test_what_is_forked_has_a_single_thread() -> None:
    assert run(look_at_threads) == 0


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_killed_at_every_step_a_job_is_charged_once_and_published_once(
    tmp_path: Path, before: bool
) -> None:
    for step in itertools.count(1):
        folder = tmp_path / str(step)
        folder.mkdir()
        ended = run(die_at, step, before, whole_job, folder)
        if ended == 0:
            break
        assert ended == -signal.SIGKILL
        assert_whole(folder, {published(folder)} - {None})
    assert step > 60


@pytest.mark.parametrize("seed", range(12))
def test_killed_again_and_again_a_job_still_completes(tmp_path: Path, seed: int) -> None:
    """Each attempt gets a random number of steps further; what is on disk between them is never
    half a file."""
    choose = random.Random(seed)
    seen: set[bytes] = set()
    for _ in range(8):
        run(die_at, choose.randint(1, 60), choose.random() < 0.5, whole_job, tmp_path)
        seen |= {published(tmp_path)} - {None}
    assert_whole(tmp_path, seen)


def test_killed_at_random_times(tmp_path: Path) -> None:
    choose = random.Random(1)
    start = time.perf_counter()
    run(whole_job, tmp_path / "timing")
    usual = time.perf_counter() - start
    for attempt in range(60):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        run(whole_job, folder, kill_after=choose.uniform(0.0, 1.2 * usual))
        assert_whole(folder, {published(folder)} - {None})


def test_two_runs_of_one_job_at_once_publish_the_same_bytes(tmp_path: Path) -> None:
    """Killed or not, alone or not: whoever publishes, publishes the one release."""
    for attempt in range(10):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        workers = [forks().Process(target=whole_job, args=(folder,)) for _ in range(4)]
        for worker in workers:
            worker.start()
        workers[attempt % 4].kill()
        seen: set[bytes] = set()
        while any(worker.is_alive() for worker in workers):
            seen |= {published(folder)} - {None}
        for worker in workers:
            worker.join()
        assert_whole(folder, seen | ({published(folder)} - {None}))


def no_locks(*_: object) -> None:
    raise OSError(38, "Function not implemented")


@pytest.fixture(params=["with locks", "without locks"])
def ledger(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Ledger:
    """Nothing may rest on the queue, so every race is run without it too."""
    if request.param == "without locks":
        monkeypatch.setattr("dpladder.privacy.ledger.journal.fcntl.flock", no_locks)
    return open_ledger(open_home(tmp_path / "home"), TERMS)


def reserve_share(ledger: Ledger, share: float, number: int) -> LedgerCharge:
    return reserve(ledger, [item(number, share)])[0]


def test_sixteen_processes_never_reserve_more_than_the_limit_and_lose_nothing(
    ledger: Ledger,
) -> None:
    share = gdp.mu_from_epsilon(1.0, 1e-5) / 3.0001  # nine fit
    answers = together(partial(reserve_share, ledger, share), 16)
    granted = {answer.token for answer in answers if isinstance(answer, LedgerCharge)}
    state = load(ledger)
    assert len(granted) == 9
    assert granted == set(state.charges)
    assert all("lifetime" in answer for answer in answers if isinstance(answer, str))
    assert cost_so_far(ledger, state).epsilon <= 1.0
    assert verify(ledger) == []


def commit_or_refund(ledger: Ledger, held: LedgerCharge, number: int) -> object:
    time.sleep(0.002 * random.Random(held.token + str(number)).random())
    if number % 2:
        return refund(ledger, [held.token])
    return commit(ledger, held.token, f"query {held.token}", held.spends).status


def test_commit_and_refund_racing_for_one_token_exactly_one_wins(ledger: Ledger) -> None:
    won = []
    for trial in range(15):
        (held,) = reserve(ledger, [item(trial)])
        answers = together(partial(commit_or_refund, ledger, held), 4)
        status = load(ledger).charges[held.token].status
        assert status in ("COMMITTED", "REFUNDED")
        for number, answer in enumerate(answers):
            wins = status == ("REFUNDED" if number % 2 else "COMMITTED")
            assert (answer in (None, "COMMITTED")) == wins, (status, answers)
        won.append(status)
    assert len(load(ledger).charged_spends()) == won.count("COMMITTED")
    assert verify(ledger) == []


def commit_and_finish(ledger: Ledger, held: Sequence[LedgerCharge], number: int) -> object:
    commit(ledger, held[number].token, f"query {number}", held[number].spends)
    return finish(ledger, held[number].token, f"output {number}").output


def test_many_committers_none_lost(ledger: Ledger) -> None:
    held = reserve(ledger, [item(trial, 0.01) for trial in range(40)])
    assert together(partial(commit_and_finish, ledger, held), 40) == [
        f"output {number}" for number in range(40)
    ]
    assert {h.status for h in load(ledger).charges.values()} == {"DONE"}
    assert verify(ledger) == []


def finish_or_see_it_done(ledger: Ledger, held: LedgerCharge, number: int) -> object:
    try:
        nonce = commit(ledger, held.token, "query", held.spends).nonce
        return nonce, finish(ledger, held.token, f"output {number}").output
    except Refused as refusal:
        return "DONE" if "DONE" in str(refusal) else str(refusal)


def test_two_attempts_at_one_query_share_its_nonce_and_the_first_output(ledger: Ledger) -> None:
    (held,) = reserve(ledger, [item(0)])
    answers = set(together(partial(finish_or_see_it_done, ledger, held), 8)) - {"DONE"}
    assert len(answers) == 1, answers
    assert verify(ledger) == []


def test_the_key_removed_between_attempts_stops_the_next_one_and_its_return_mends_it(
    tmp_path: Path,
) -> None:
    for step in (20, 40, 60):
        folder = tmp_path / str(step)
        folder.mkdir()
        run(die_at, step, True, whole_job, folder)
        key = folder / "home" / "key"
        key.rename(folder / "key")
        assert run(whole_job, folder) == 1
        assert not key.exists()
        (folder / "key").rename(key)
        assert_whole(folder, {published(folder)} - {None})


def test_a_ledger_rolled_back_after_a_crash_is_found_by_its_anchor(tmp_path: Path) -> None:
    run(die_at, 30, True, whole_job, tmp_path)
    shutil.copytree(tmp_path / "home" / "ledger", tmp_path / "backup")
    assert run(whole_job, tmp_path) == 0
    ledger = Ledger(open_home(tmp_path / "home"), "toy")
    anchor = head(ledger)
    shutil.rmtree(ledger.home.ledgers)
    shutil.copytree(tmp_path / "backup", ledger.home.ledgers)
    assert any("rolled back" in problem for problem in verify(ledger, [anchor]))
    assert verify(ledger, [dataclasses.replace(anchor, lineage="other")]) == verify(ledger)
