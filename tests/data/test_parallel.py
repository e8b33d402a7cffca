"""Work that is shared out comes back in order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from dpladder.data.parallel import ordered_arrays, ordered_map
from dpladder.errors import Refused

Map = Callable[[Callable[[int], Any], range, int], Iterator[Any]]


def through_arrays(work: Callable[[int], Any], items: range, workers: int) -> Iterator[Any]:
    """What forked processes return, each with the item that they wrote into their array."""

    def fill(item: int, array: Any) -> Any:
        result = work(item)
        array[:] = item
        return result

    kind = np.dtype(np.int64)
    for item, (array, result) in zip(
        items, ordered_arrays(fill, items, workers, (2, 3), kind), strict=True
    ):
        assert (array == item).all()
        yield result


@pytest.mark.parametrize("shared_out", [ordered_map, through_arrays])
def test_results_come_in_the_order_of_the_items(shared_out: Map) -> None:
    own = os.getpid()
    found = [*shared_out(lambda item: (item * item, os.getpid()), range(40), 3)]
    assert [square for square, _ in found] == [item * item for item in range(40)]
    assert (own in {process for _, process in found}) == (shared_out is ordered_map)


@pytest.mark.parametrize("shared_out", [ordered_map, through_arrays])
def test_what_a_worker_refuses_reaches_the_caller(shared_out: Map) -> None:
    def work(item: int) -> int:
        if item == 3:
            raise Refused("the source changed")
        return item

    with pytest.raises(Refused, match="the source changed"):
        list(shared_out(work, range(5), 2))
