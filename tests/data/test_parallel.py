"""Work that is shared out comes back in order."""

from __future__ import annotations

import os

import pytest

from dpladder.data.parallel import ordered_map
from dpladder.errors import Refused


@pytest.mark.parametrize("processes", [False, True])
def test_results_come_in_the_order_of_the_items(processes: bool) -> None:
    own = os.getpid()
    found = [*ordered_map(lambda item: (item * item, os.getpid()), range(40), 3, processes)]
    assert [square for square, _ in found] == [item * item for item in range(40)]
    assert (own in {process for _, process in found}) != processes


@pytest.mark.parametrize("processes", [False, True])
def test_what_a_worker_refuses_reaches_the_caller(processes: bool) -> None:
    def work(item: int) -> int:
        if item == 3:
            raise Refused("the source changed")
        return item

    with pytest.raises(Refused, match="the source changed"):
        list(ordered_map(work, range(5), 2, processes))
