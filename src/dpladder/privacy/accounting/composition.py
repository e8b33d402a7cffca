"""What many spends cost together: the entries of all that one unit bears, added up (booking.py).

A unit lies in one part of each split rule, so the parts of one rule compose in parallel and
different rules add. Under replace_one the unit and its replacement may lie in different parts of a
rule. So there the worst two parts add: each loses or gains one unit, which costs no more than
replacing it. That is so because nothing else follows the size of a part. Sums are divided by public
constants, and a unit alone moves a sum by no more than two that change places. A unit's part may
change with the version of the data, so each version is a rule of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, product

from dpladder.errors import Refused
from dpladder.privacy.accounting import booking
from dpladder.privacy.accounting.booking import NO_COST, Entry
from dpladder.privacy.accounting.events import Relation, Spend

Rule = tuple[str, str]  # a split rule, and the version of the data
# a split rule and part; part "*" stands for all where the rule's spends name none
Part = tuple[str, str]


@dataclass(frozen=True)
class Figure:
    """The guarantee for one unit, at the lineage's delta.

    Attributes:
        epsilon: rounded up.
        entry: that it follows from.
    """

    epsilon: float
    entry: Entry

    @property
    def mu(self) -> float | None:
        """The mu that says everything; None where more than a Gaussian is behind the figure."""
        return self.entry.mu if self.entry.is_gaussian else None


@dataclass(frozen=True)
class Composition(Figure):
    """The guarantee of all spends together, which is the worst unit's.

    Attributes:
        parts: that of each part's units, whatever version of the data they are in.
    """

    parts: Mapping[Part, Figure]

    @property
    def mu(self) -> float | None:
        """The mu that says everything of every unit. The worst unit at delta may bear a Gaussian,
        and another one something that costs more at a smaller delta, or several units together."""
        gaussian = all(figure.entry.is_gaussian for figure in self.parts.values())
        return self.entry.mu if gaussian else None

    @property
    def exact(self) -> bool:
        """Whether all is Gaussian for every unit, without a probability left out."""
        return self.mu is not None and not any(one.entry.delta0 for one in self.parts.values())


def compose(spends: Sequence[Spend], delta: float) -> Composition:
    """What spends on one lineage cost together, whatever was spent because of what.

    Parts that are disjoint compose in parallel under add_remove; other split rules, other versions
    and replace_one add (contract: disjoint-parts).

    Args:
        spends: of one lineage, in any order.
        delta: the lineage's.

    Returns:
        The worst unit's guarantee, and that of each part's units. Of no spends, epsilon 0.

    Raises:
        Refused: spends are of several lineages, or under several relations.
    """
    choices = _choices(spends, _relation(spends))
    figures: dict[Part, Figure] = {}
    for (rule, version), of_rule in choices.items():
        for part in dict.fromkeys(part for choice in of_rule for part in choice.parts):
            within = [choice for choice in of_rule if part in choice.parts]
            figure = _worst_figure({**choices, (rule, version): within}, delta)
            figures[rule, part] = max(figures.get((rule, part), figure), figure, key=_cost)
    worst = max(figures.values(), key=_cost, default=Figure(0.0, NO_COST))
    return Composition(worst.epsilon, worst.entry, figures)


def largest_entry(spends: Sequence[Spend]) -> Entry:
    """The largest of each component that any unit may bear.

    A filter looks at it, for it limits each component by itself. The unit whose components cost
    most together need not have the largest of any.

    Args:
        spends: of one lineage, in any order.
    """
    choices = _choices(spends, _relation(spends)).values()
    return booking.total(booking.largest(choice.entry for choice in of_rule) for of_rule in choices)


@cache
def entry_of(spend: Spend) -> Entry:
    """The entry of one spend, under its own relation."""
    return booking.price(spend.event, spend.relation, spend.count)


def _relation(spends: Iterable[Spend]) -> Relation:
    """The one relation of spends on one lineage."""
    lineages = sorted({spend.lineage for spend in spends})
    relations = sorted({spend.relation for spend in spends})
    if len(lineages) > 1:
        raise Refused(
            f"Spends on lineages {', '.join(lineages)} cannot be composed into one figure. Compose "
            "each lineage alone; a person in two of them bears both."
        )
    if len(relations) > 1:
        raise Refused(
            f"Lineage {lineages[0]} has spends under {' and '.join(relations)}. A lineage has one "
            "relation for life: state every spend under it."
        )
    return relations[0] if relations else "add_remove"


@dataclass(frozen=True)
class _Choice:
    """For one split rule: the parts that a unit may touch (under replace_one, with its
    replacement), and what it then bears."""

    parts: tuple[str, ...]
    entry: Entry


def _choices(spends: Sequence[Spend], relation: Relation) -> dict[Rule, list[_Choice]]:
    """For each split rule and version of the data, all that a unit may bear of it."""
    touched = 2 if relation == "replace_one" else 1
    by_rule: dict[Rule, list[Spend]] = {}
    for spend in spends:
        where = spend.partition
        by_rule.setdefault((where.split_rule, where.version), []).append(spend)
    return {
        rule: list(_choices_of_rule(of_rule, touched)) for rule, of_rule in sorted(by_rule.items())
    }


def _choices_of_rule(spends: Sequence[Spend], touched: int) -> Iterator[_Choice]:
    """For each part, or under replace_one each two parts, what a unit there bears."""
    parts = sorted({part for spend in spends for part in spend.partition.parts}) or ["*"]
    for chosen in combinations(parts, min(touched, len(parts))):
        charged = [
            s
            for s in spends
            if not s.partition.parts or not set(chosen).isdisjoint(s.partition.parts)
        ]
        yield _Choice(chosen, booking.total(map(entry_of, charged)))


def _worst_figure(choices: Mapping[Rule, Sequence[_Choice]], delta: float) -> Figure:
    """The dearest that a unit can bear: split rules are independent, so any part of one may meet
    any part of another."""
    by_rule = [
        _drop_dominated({choice.entry for choice in of_rule}) for of_rule in choices.values()
    ]
    entries = (booking.total(chosen) for chosen in product(*by_rule))
    return max((Figure(booking.epsilon(entry, delta), entry) for entry in entries), key=_cost)


def _drop_dominated(entries: set[Entry]) -> list[Entry]:
    """The entries that may be the dearest, whatever is spent beside them."""
    return [
        e
        for e in entries
        if not any(other != e and e.costs_no_more_than(other) for other in entries)
    ]


def _cost(figure: Figure) -> tuple[float, float]:
    return figure.epsilon, figure.entry.mu
