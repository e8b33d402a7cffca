"""What dp_hypo spends of a total."""

from __future__ import annotations

import math

from dpladder.privacy.accounting.events import Counted, Relation
from dpladder.privacy.accounting.selection import Lean
from dpladder.search.selection_cost import SHAPES, event_of_repeats
from dpladder.searches.dp_hypo.section import DpHypo


def price(search: DpHypo, epsilon: float, delta: float, relation: Relation) -> tuple[Counted, ...]:
    return (Counted(event_of_repeats(search, epsilon, delta, lean_bounds(search, epsilon))),)


def lean_bounds(search: DpHypo, epsilon: float) -> Lean:
    """How far proposals may lean for their share of epsilon: (2 + shape) log(high/low) of it (Wang
    et al. 2023)."""
    half = search.adapting * epsilon / (2 + SHAPES[search.law]) / 2
    return Lean(math.exp(-half), math.exp(half))
