"""One home seen by two machines that each remember what they saw for a minute: two mounts of one
folder, by bindfs, each with the kernel's caches of names and attributes to itself. Nobody who
writes may be deceived by what is remembered."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from crash.processes import forks
from support import commit

from dpladder.errors import Refused
from dpladder.privacy.accounting.events import Gaussian, Job, Partition, Spend
from dpladder.privacy.ledger.book import Ledger, finish, load, open_ledger, reserve, verify
from dpladder.privacy.ledger.home import Home, open_home
from dpladder.privacy.ledger.state import Item, Terms

pytestmark = pytest.mark.ci

REMEMBERED = "attr_timeout=60,entry_timeout=60,negative_timeout=60"
TERMS = Terms("shared", "add_remove", "record", 1, 1e-5, "hash", 1.0)
PROCESSES = 20


@pytest.fixture(name="homes")
def _homes(tmp_path: Path) -> Iterator[list[Home]]:
    if shutil.which("bindfs") is None or os.geteuid() != 0:
        pytest.skip("needs root and bindfs: apt-get install bindfs")
    (tmp_path / "disk" / "home").mkdir(mode=0o700, parents=True)
    mounts = [tmp_path / "first", tmp_path / "second"]
    mounted: list[Path] = []
    try:
        for mount in mounts:
            mount.mkdir()
            command = ["bindfs", "-o", REMEMBERED, str(tmp_path / "disk"), str(mount)]
            made = subprocess.run(command, capture_output=True, text=True, check=False)
            if made.returncode != 0:
                pytest.skip(f"bindfs cannot mount here: {made.stderr}")
            mounted.append(mount)
        yield [open_home(mount / "home") for mount in mounts]
    finally:
        for mount in mounted:
            subprocess.run(["umount", "--lazy", str(mount)], check=True)


def item(trial: int, sigma: float) -> Item:
    job = Job("main", "run_trial", (("rung", "0"), ("trial", str(trial))))
    spend = Spend(
        "shared", "add_remove", Partition("hash", ("train",)), Gaussian(sigma), label="weights"
    )
    return Item(job, str(job), (spend,))


def whole_life(ledger: Ledger, token: str, asked: Item) -> None:
    commit(ledger, token, f"query {token}", asked.spends)
    finish(ledger, token, "output")


def test_processes_on_both_are_charged_once_each(homes: list[Home]) -> None:
    ledgers = [open_ledger(home, TERMS) for home in homes]
    items = [item(trial, 1e3) for trial in range(PROCESSES)]
    held = reserve(ledgers[0], items)
    workers = [
        forks().Process(target=whole_life, args=(ledgers[place % 2], each.token, items[place]))
        for place, each in enumerate(held)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=300)
    assert [worker.exitcode for worker in workers] == [0] * PROCESSES
    for home in homes:
        found = load(Ledger(home, "shared"))
        assert Counter(each.status for each in found.charges.values()) == {"DONE": PROCESSES}
        assert verify(Ledger(home, "shared")) == []


@pytest.mark.parametrize("first", [0, 1])
def test_what_the_limit_allows_once_is_not_reserved_by_both(homes: list[Home], first: int) -> None:
    ledgers = [open_ledger(home, TERMS) for home in homes]  # both have read it
    reserve(ledgers[first], [item(0, 4.0)])
    with pytest.raises(Refused, match="lifetime limit"):
        reserve(ledgers[1 - first], [item(1, 4.0)])
    assert [len(load(Ledger(home, "shared")).charges) for home in homes] == [1, 1]
