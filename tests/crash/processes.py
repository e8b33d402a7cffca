"""Processes that are started, killed and raced: forks of one fresh Python that has a single thread.

This process has threads, of its libraries and of pytest-xdist, and a fork keeps for ever what they
hold locked.
"""

from __future__ import annotations

import fcntl
import os
import sys
import time
from collections.abc import Callable
from functools import cache
from multiprocessing import forkserver, get_context
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

from dpladder.errors import Refused

NAMES = ("crash.test_crash", "crash.test_own_code", "crash.test_shared_home", "month.driver")
TESTS = Path(__file__).parents[1]
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}


@cache
def forks() -> ForkServerContext:
    """The context whose processes are forks of that Python. They take functions of modules and
    values from here; what is patched here they do not see."""
    context = get_context("forkserver")
    # by the names that pytest gives them; what is not loaded here, no fork needs
    names = [known for name in NAMES for known in (name, f"tests.{name}") if known in sys.modules]
    context.set_forkserver_preload(names)
    here = dict(os.environ)
    paths = [*map(str, (TESTS, TESTS.parent)), *filter(None, [here.get("PYTHONPATH")])]
    os.environ.update(ONE_THREAD, PYTHONPATH=os.pathsep.join(paths))
    try:
        forkserver.ensure_running()
    finally:
        os.environ.clear()
        os.environ.update(here)
    return context


def run(work: Callable[..., object], *given: Any, kill_after: float | None = None) -> int:
    """`work` in a process of its own; how that ended: 0, 1 for an error, -9 when killed."""
    child = forks().Process(target=_work, args=(dict(os.environ), work, *given))
    child.start()
    if kill_after is not None:
        time.sleep(kill_after)
        child.kill()
    child.join()
    assert child.exitcode is not None
    return child.exitcode


def _work(environment: dict[str, str], work: Callable[..., object], *given: Any) -> None:
    os.environ.clear()
    os.environ.update(environment)
    work(*given)


def together(work: Callable[[int], object], processes: int) -> list[object]:
    """What each process returned, all let loose at the same moment; the text of a refusal counts as
    a return. They lock files as this process does, or not at all."""
    gate, answers = forks().Barrier(processes), forks().SimpleQueue()
    workers = [
        forks().Process(target=_answer, args=(work, number, gate, answers, fcntl.flock))
        for number in range(processes)
    ]
    for worker in workers:
        worker.start()
    found = dict(answers.get() for _ in workers)
    for worker in workers:
        worker.join()
    return [found[number] for number in range(processes)]


def _answer(
    work: Callable[[int], object], number: int, gate: Any, answers: Any, flock: Any
) -> None:
    fcntl.flock = flock
    gate.wait()
    try:
        answers.put((number, work(number)))
    except Refused as refusal:
        answers.put((number, str(refusal)))
