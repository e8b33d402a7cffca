"""How long a ledger with 10,000 spends takes, and how fast noise is drawn. Run: python
tests/benchmarks/bench_ledger.py"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from support import commit

from dpladder.privacy.accounting.events import Gaussian, Job, Partition, Spend
from dpladder.privacy.ledger.book import (
    Ledger,
    cost_so_far,
    finish,
    load,
    open_ledger,
    reserve,
    verify,
)
from dpladder.privacy.ledger.home import open_home
from dpladder.privacy.ledger.state import Item, Terms
from dpladder.privacy.release import noise

ITEMS, PLANS, COMMITTERS = 5_000, 100, 200


def item(trial: int) -> Item:
    job = Job("main", "run_trial", (("rung", "0"), ("trial", str(trial))))
    part = Partition("hash", ("train",))
    spends = [
        Spend("bench", "add_remove", part, Gaussian(1e3 + trial), label=label)
        for label in ("weights", "score")
    ]
    return Item(job, str(job), tuple(spends))


def timed(what: str, work: Callable[[], object], per: int = 1) -> None:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"{what:50s} {wall / per:9.4f} s, {cpu / per:9.4f} s of it at work")


def whole_life(ledger: Ledger, token: str, each: Item) -> None:
    held = commit(ledger, token, f"query {token}", each.spends)
    finish(ledger, held.token, "output")


def build(folder: Path) -> Ledger:
    """10,000 spends in 5,000 items, reserved in 100 plans; a tenth of the items committed and
    done."""
    home = open_home(folder)
    ledger = open_ledger(home, Terms("bench", "add_remove", "record", 1, 1e-5, "hash", 1e3))
    per_plan = ITEMS // PLANS
    for plan in range(PLANS):
        items = [item(plan * per_plan + i) for i in range(per_plan)]
        held = reserve(ledger, items)
        for each, place in list(zip(items, held, strict=True))[: per_plan // 10]:
            whole_life(ledger, place.token, each)
    return ledger


def compete(folder: Path, committers: int = COMMITTERS) -> None:
    home = open_home(folder)
    ledger = open_ledger(home, Terms("bench", "add_remove", "record", 1, 1e-5, "hash", 1e3))
    items = [item(i) for i in range(committers)]
    held = reserve(ledger, items)
    fork = get_context("fork")
    workers = [
        fork.Process(target=whole_life, args=(ledger, place.token, each))
        for each, place in zip(items, held, strict=True)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    done = sum(h.status == "DONE" for h in load(ledger).items.values())
    assert done == committers, f"{committers - done} lost"


def draw_noise() -> None:
    ids = np.random.default_rng(0).integers(0, 256, (1_000_000, 16), dtype=np.uint8)
    for what, draw in (
        ("gaussian", lambda: noise.gaussian(bytes(32), (10_000_000,))),
        ("laplace", lambda: noise.laplace(bytes(32), (10_000_000,))),
        ("uniform", lambda: noise.uniform(bytes(32), (10_000_000,))),
        ("mask", lambda: [noise.mask(bytes(32), 0.1, ids) for _ in range(10)]),
    ):
        timed(f"{what}, a million values", draw, per=10)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        ledger = build(Path(folder))
        entries = len(load(ledger).chain.hashes)
        print(f"built {2 * ITEMS} spends in {entries} entries: {time.perf_counter() - start:.1f} s")
        state = load(ledger)
        timed("load", lambda: load(Ledger(ledger.home, "bench")))
        timed("verify", lambda: verify(ledger))
        timed("compose", lambda: cost_so_far(ledger, state))
    with tempfile.TemporaryDirectory() as folder:
        timed(f"{COMMITTERS} processes commit and finish at once", lambda: compete(Path(folder)))
    draw_noise()


if __name__ == "__main__":
    main()
