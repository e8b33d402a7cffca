"""What a private search spends of a total: its events, from public figures alone.

A plan asks here before anything is read, and nothing heavy is loaded. A job asks the ledger
instead, which holds what the plan asked for.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from dpladder.config.search_sections import PrivateSearch
from dpladder.privacy.accounting.events import Counted, Relation


@cache
def price(
    search: PrivateSearch, epsilon: float, delta: float, relation: Relation
) -> tuple[Counted, ...]:
    """The dearest events of this search that cost no more than the total."""
    room = import_module(f"dpladder.search.{search.name}.price")
    found: tuple[Counted, ...] = room.price(search, epsilon, delta, relation)
    return found
