"""Threads, or processes, that work ahead, and results in the order of the items."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def cores() -> int:
    """The processor cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def ordered_map(
    work: Callable[[Item], Result], items: Iterable[Item], workers: int, processes: bool = False
) -> Iterator[Result]:
    """Results of `work` on every item, in order, by so many threads at once.

    Args:
        work: what is done with one item. In a process of its own it must leave the GPU alone.
        items: begun no further ahead than keeps the workers busy.
        workers: how many items are worked on at once.
        processes: whether workers are forked processes: threads that decode images wait for each
            other's Python, above four of them for longer than they work.
    """
    begun: deque[Future[Result]] = deque()
    pool: Executor
    if processes:
        pool = ProcessPoolExecutor(workers, get_context("fork"), _set_worker_function, (work,))
        run: Callable[[Item], Result] = _run_worker_function
    else:
        pool, run = ThreadPoolExecutor(workers), work
    with pool:
        for item in items:
            begun.append(pool.submit(run, item))
            if len(begun) > workers:
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()


_taken_over: dict[str, Callable[[Any], Any]] = {}


def _set_worker_function(work: Callable[[Any], Any]) -> None:
    """Keep the work in a worker process. A fork inherits it, whatever it refers to."""
    _taken_over["work"] = work


def _run_worker_function(item: Any) -> Any:
    return _taken_over["work"](item)
