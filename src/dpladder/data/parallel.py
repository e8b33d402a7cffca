"""Threads, or processes, that work ahead, and results in the order of the items."""

from __future__ import annotations

import mmap
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Item = TypeVar("Item")
Result = TypeVar("Result")


def cores() -> int:
    """The processor cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def ordered_map(
    work: Callable[[Item], Result], items: Iterable[Item], workers: int
) -> Iterator[Result]:
    """Results of `work` on every item, in order, by so many threads at once.

    Args:
        work: what is done with one item.
        items: begun no further ahead than keeps the workers busy.
        workers: how many items are worked on at once.
    """
    with ThreadPoolExecutor(workers) as pool:
        yield from _results_in_order(pool, work, items, workers)


def ordered_arrays(
    fill: Callable[[Item, NDArray[Any]], Result],
    items: Iterable[Item],
    workers: int,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
) -> Iterator[tuple[NDArray[Any], Result]]:
    """Arrays that forked processes fill, and what `fill` returned, in the order of the items.

    Threads that decode images wait for each other's Python, above four of them for longer than
    they work. The arrays lie in memory that all processes share, so nothing is copied.

    Args:
        fill: what is done with one item and its array. It must leave the GPU alone.
        items: begun no further ahead than keeps the workers busy.
        workers: how many items are worked on at once.
        shape, dtype: of every array.

    Yields:
        An array, which is filled anew once the next is asked for, and the result.
    """
    count = workers + 1  # those at work, and the one that the caller reads
    size = max(1, int(np.prod(shape))) * dtype.itemsize
    slots = [np.frombuffer(mmap.mmap(-1, size), dtype).reshape(shape) for _ in range(count)]

    def work(numbered: tuple[int, Item]) -> Result:
        number, item = numbered
        return fill(item, slots[number % count])

    with ProcessPoolExecutor(workers, get_context("fork"), _set_worker_function, (work,)) as pool:
        results = _results_in_order(pool, _run_worker_function, enumerate(items), workers)
        for number, result in enumerate(results):
            yield slots[number % count], result


def _results_in_order(
    pool: Executor, work: Callable[[Item], Result], items: Iterable[Item], ahead: int
) -> Iterator[Result]:
    """Results in the order of the items, of which at most so many are begun beside the next."""
    begun: deque[Future[Result]] = deque()
    for item in items:
        begun.append(pool.submit(work, item))
        if len(begun) > ahead:
            yield begun.popleft().result()
    while begun:
        yield begun.popleft().result()


_taken_over: dict[str, Callable[[Any], Any]] = {}


def _set_worker_function(work: Callable[[Any], Any]) -> None:
    """Keep the work in a worker process. A fork inherits it, whatever it refers to."""
    _taken_over["work"] = work


def _run_worker_function(item: Any) -> Any:
    return _taken_over["work"](item)
