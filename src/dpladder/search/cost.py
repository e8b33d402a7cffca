"""What a private search spends of a total: its events, from public figures alone.

A plan asks here before anything is read, and nothing heavy is loaded. A job asks the ledger
instead, which holds what the plan asked for.
"""

from __future__ import annotations

from functools import cache

from dpladder.config.searches import METHODS, PrivateSearch
from dpladder.privacy.accounting.events import Counted, Relation


@cache
def price(
    search: PrivateSearch, epsilon: float, delta: float, relation: Relation
) -> tuple[Counted, ...]:
    """The dearest events of this search that cost no more than the total.

    Args:
        search: its section in the config.
        epsilon: the total, final weights included.
        delta: the lineage's.
        relation: what neighbours are; some searches are bounded under one alone.

    Returns:
        Events that a ledger is charged, in the order that the search knows.

    Raises:
        Refused: the search has no bound under this relation.
    """
    return tuple(METHODS[search.name].price(search, epsilon, delta, relation))
