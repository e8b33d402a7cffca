"""What dp_hypo spends of a total."""

from __future__ import annotations

import math

from dpladder.privacy.accounting.events import Counted, Relation
from dpladder.privacy.accounting.selection import Lean
from dpladder_papers.searches.dp_hypo.section import DpHypo
from dpladder_papers.searches.selection_cost import SHAPES, event_of_repeats


def price(search: DpHypo, epsilon: float, delta: float, relation: Relation) -> tuple[Counted, ...]:
    """One event: the whole selection, its winner's weights included. Under either relation.

    Args:
        search: its section in the config.
        epsilon: the total, final weights included.
        delta: the lineage's.
        relation: what neighbours are.

    Returns:
        The dearest selection that costs no more than the total.
    """
    return (Counted(event_of_repeats(search, epsilon, delta, lean_bounds(search, epsilon))),)


def lean_bounds(search: DpHypo, epsilon: float) -> Lean:
    """How far proposals may lean for their share of epsilon: (2 + shape) log(high/low) of it (Wang
    et al. 2023, Theorem 2).

    Args:
        search: its section, with the share.
        epsilon: the total.

    Returns:
        low = 1/high, the bounds on a proposal's density over the uniform prior.
    """
    half = search.adapting * epsilon / (2 + SHAPES[search.law]) / 2
    return Lean(math.exp(-half), math.exp(half))
