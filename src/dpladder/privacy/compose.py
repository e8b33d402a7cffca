"""What many spends cost together: exactly where all are Gaussian, by the tightest sound accountant elsewhere.

Spends compose over what one unit bears. A unit lies in one part of each split rule, so the parts of one rule
compose in parallel and different rules add. Under replace_one the unit and its replacement may lie in different
parts of a rule, so there the worst two parts add: each loses or gains one unit, which costs no more than replacing it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Literal

from dpladder.errors import Refused
from dpladder.privacy import gdp, selection, winner
from dpladder.privacy.spend import (
    Accountant,
    Composed,
    Counted,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    Relation,
    RepeatAndSelect,
    Sampled,
    Spend,
    SubsetSelect,
    describe,
    mu,
    new_accountant,
    to_dp_event,
)

Part = tuple[str, str]  # split rule and part; part "*" stands for all where the rule's spends name none


@dataclass(frozen=True)
class Figure:
    """The guarantee for one unit. `mu` is None where the accountant states none."""

    epsilon: float
    mu: float | None
    accountant: Literal["exact", "bound", "profile", "pld", "rdp"]


@dataclass(frozen=True)
class Composition:
    """The guarantee of all spends together, which is the worst unit's, and that of each part's units."""

    epsilon: float
    mu: float | None
    accountant: Literal["exact", "bound", "profile", "pld", "rdp"]
    parts: Mapping[Part, Figure]


@dataclass(frozen=True)
class _Load:
    """What one unit bears: all Gaussian events as one mu, every other event with its count."""

    mu: float
    others: frozenset[tuple[Event, int]]

    def covers(self, other: _Load) -> bool:
        counts = dict(self.others)
        return self.mu >= other.mu and all(counts.get(event, 0) >= n for event, n in other.others)


def compose(spends: Sequence[Spend], delta: float, adaptive: bool = False) -> Composition:
    """The composed cost at delta of spends on one lineage.

    Gaussians compose exactly, "exact", however later ones depend on earlier releases. A plan with other events,
    all fixed before the first release, takes the smallest sound figure: pure-DP events bounded as mu-GDP, "bound";
    private selections and rounds of equal pure-DP events by proofs of our own, "profile"; "pld"; "rdp". With `adaptive`,
    for events chosen as results come in (a lineage's life), "bound" is taken where there is one, else selections' or
    "rdp" curves with delta split over their orders, because the results then choose the best order too.
    """
    relation = _relation(spends)
    choices = _choices(spends, relation)
    loads = {
        (rule, part): _worst_loads({**choices, rule: [c for c in choices[rule] if part in c[0]]})
        for rule, part in _parts(choices)
    }
    distinct = set().union(*loads.values())
    figures = {load: _figure(load, relation, delta, adaptive) for load in distinct}
    parts = {part: max((figures[load] for load in bears), key=_cost) for part, bears in loads.items()}
    return of_parts(parts)


def of_parts(parts: Mapping[Part, Figure]) -> Composition:
    """The guarantee for all units, from that for each part's."""
    worst = max(parts.values(), key=_cost, default=Figure(0.0, 0.0, "exact"))
    return Composition(worst.epsilon, worst.mu, worst.accountant, parts)


def report(spends: Sequence[Spend], delta: float) -> dict[str, float | None]:
    """Epsilon of the same plan under naive, RDP, PLD and exact accounting; None where one does not apply.

    Naive is basic composition: each of k spends at its own epsilon for delta/k, and the epsilons add.
    """
    relation = _relation(spends)
    choices = _choices(spends, relation)
    loads = _worst_loads(choices)
    own = {spend: compose([spend], delta / len(spends)).epsilon for spend in dict.fromkeys(spends)}
    naive = math.fsum(max(math.fsum(own[s] for s in charged) for _, charged in c) for c in choices.values())
    ways: dict[str, list[Figure | None]] = {
        "rdp": [_by_rdp(load, relation, delta) for load in loads],
        "pld": [_by_pld(load, relation, delta) for load in loads],
        "exact": [_exact(load, delta) for load in loads],
    }
    return {"naive": naive} | {
        way: None if None in figures else max((f.epsilon for f in figures if f), default=0.0)
        for way, figures in ways.items()
    }


def contributions(spends: Sequence[Spend]) -> tuple[float, ...] | None:
    """Each spend's share of the worst unit's mu^2, in the order given; None where a spend has no mu."""
    choices = _choices(spends, _relation(spends))
    squares = {}
    for spend in dict.fromkeys(spends):
        bound = _bounded(_load([spend]))
        if bound is None:
            return None
        squares[spend] = bound * bound
    worst = {
        spend
        for of_rule in choices.values()
        for spend in max((c for _, c in of_rule), key=lambda c: math.fsum(squares[s] for s in c))
    }
    total = math.fsum(squares[s] for s in spends if s in worst)
    return tuple(squares[s] / total if s in worst and total else 0.0 for s in spends)


def _relation(spends: Iterable[Spend]) -> Relation:
    """The one relation of spends on one lineage."""
    lineages = sorted({spend.lineage for spend in spends})
    relations = sorted({spend.relation for spend in spends})
    if len(lineages) > 1:
        raise Refused(
            f"Spends on lineages {', '.join(lineages)} cannot be composed into one figure. Compose each lineage "
            "alone; a person in two of them bears both."
        )
    if len(relations) > 1:
        raise Refused(
            f"Lineage {lineages[0]} has spends under {' and '.join(relations)}. A lineage has one relation for life: "
            "state every spend under it."
        )
    return relations[0] if relations else "add_remove"


# For one split rule: the parts a unit may touch, and the spends it is then charged for.
_Choice = tuple[tuple[str, ...], Sequence[Spend]]


def _choices(spends: Sequence[Spend], relation: Relation) -> dict[str, list[_Choice]]:
    touched = 2 if relation == "replace_one" else 1
    by_rule: dict[str, list[Spend]] = {}
    for spend in spends:
        by_rule.setdefault(spend.partition.split_rule, []).append(spend)
    return {rule: list(_choices_of_rule(of_rule, touched)) for rule, of_rule in sorted(by_rule.items())}


def _choices_of_rule(spends: Sequence[Spend], touched: int) -> Iterator[_Choice]:
    parts = sorted({part for spend in spends for part in spend.partition.parts}) or ["*"]
    for chosen in combinations(parts, min(touched, len(parts))):
        charged = [
            s for s in spends if not s.partition.parts or not set(chosen).isdisjoint(s.partition.parts)
        ]
        yield chosen, charged


def _parts(choices: Mapping[str, Sequence[_Choice]]) -> list[Part]:
    return list(
        dict.fromkeys((rule, part) for rule, of_rule in choices.items() for ps, _ in of_rule for part in ps)
    )


def _worst_loads(choices: Mapping[str, Sequence[_Choice]]) -> set[_Load]:
    """The loads that a unit can bear, less those that another one covers."""
    by_rule = [_uncovered({_load(charged) for _, charged in of_rule}) for of_rule in choices.values()]
    return _uncovered({_join(loads) for loads in product(*by_rule)})


def _uncovered(loads: set[_Load]) -> set[_Load]:
    return {load for load in loads if not any(other != load and other.covers(load) for other in loads)}


def _load(spends: Sequence[Spend]) -> _Load:
    mus: list[float] = []
    others: Counter[Event] = Counter()
    for event, count in _flat((s.event, s.count) for s in spends):
        event_mu = mu(event, count)
        if event_mu is None:
            others[event] += count
        else:
            mus.append(event_mu)
    return _Load(gdp.compose(mus), frozenset(others.items()))


def _flat(events: Iterable[tuple[Event, int]]) -> Iterator[tuple[Event, int]]:
    for event, count in events:
        if isinstance(event, Composed):
            yield from _flat((part.event, part.count * count) for part in event.events)
        else:
            yield event, count


def _join(loads: Sequence[_Load]) -> _Load:
    others: Counter[Event] = Counter()
    for load in loads:
        others.update(dict(load.others))
    return _Load(gdp.compose(load.mu for load in loads), frozenset(others.items()))


def _cost(figure: Figure) -> tuple[float, float]:
    return figure.epsilon, math.inf if figure.mu is None else figure.mu


def _figure(load: _Load, relation: Relation, delta: float, adaptive: bool) -> Figure:
    if exact := _exact(load, delta):
        return exact
    bound = _by_bound(load, delta)
    if adaptive:
        figures = [
            bound
            or _by_selection(load, relation, delta, adaptive)
            or _by_rdp(load, relation, delta / len(_orders(load)))
        ]
    elif own := _by_selection(load, relation, delta) or _by_rounds(load, delta):
        figures = [bound, own]
    else:
        figures = [bound, _by_pld(load, relation, delta), _by_rdp(load, relation, delta)]
    sound = [figure for figure in figures if figure]
    if not sound:
        names = sorted({describe(event) for event, _ in load.others})
        raise Refused(
            f"No accountant takes {', '.join(names)} together under {relation}"
            f"{' when they are chosen as results come in' if adaptive else ''}. "
            "Replace one of them by a Gaussian, Laplace or Exponential event: those go wherever the rest goes."
        )
    return min(sound, key=_cost)


def _exact(load: _Load, delta: float) -> Figure | None:
    return None if load.others else Figure(gdp.epsilon(load.mu, delta), load.mu, "exact")


def _by_bound(load: _Load, delta: float) -> Figure | None:
    bound = _bounded(load)
    return None if bound is None else Figure(gdp.epsilon(bound, delta), bound, "bound")


def _bounded(load: _Load) -> float | None:
    """A mu for the whole load, where every event beside the Gaussian ones is pure DP."""
    mus = [_mu_bound(event, count) for event, count in load.others]
    return None if None in mus else gdp.compose([load.mu, *(m for m in mus if m is not None)])


def _mu_bound(event: Event, count: int) -> float | None:
    match event:
        case Laplace(scale):
            return gdp.compose([gdp.mu_of_pure(1 / scale) * math.sqrt(count)])
        case Exponential(epsilon):
            return gdp.compose([gdp.mu_of_pure(epsilon) * math.sqrt(count)])
    return None


def _by_selection(load: _Load, relation: Relation, delta: float, adaptive: bool = False) -> Figure | None:
    """Private selections beside Gaussians, and pure-DP events bounded as such."""
    selections = [(event, n) for event, n in load.others if isinstance(event, RepeatAndSelect | SubsetSelect)]
    rest = _bounded(_Load(load.mu, load.others - frozenset(selections)))
    subsets = any(isinstance(event, SubsetSelect) for event, _ in selections)
    if not selections or rest is None or (subsets and relation != "add_remove"):
        return None
    epsilon = winner.epsilon(rest, sorted(selections, key=repr), delta, adaptive)
    return None if epsilon is None else Figure(epsilon, None, "profile")


def _by_rounds(load: _Load, delta: float) -> Figure | None:
    """Equal rounds of pure DP beside Gaussians."""
    match [*load.others]:
        case [(Exponential(epsilon), rounds)]:
            return Figure(selection.tested_epsilon(load.mu, epsilon, rounds, delta), None, "profile")
    return None


def _by_pld(load: _Load, relation: Relation, delta: float) -> Figure | None:
    """PLD. Pure-DP events that it does not take under the relation enter as the Gaussians that bound them."""
    mus, events = [load.mu], []
    for event, count in load.others:
        bound = _mu_bound(event, count)
        if _takes(event, relation, "pld"):
            events.append(Counted(event, count))
        elif bound is not None:
            mus.append(bound)
        else:
            return None
    return _by_accountant(gdp.compose(mus), events, relation, delta, "pld")


def _by_rdp(load: _Load, relation: Relation, delta: float) -> Figure | None:
    if not all(_takes(event, relation, "rdp") for event, _ in load.others):
        return None
    events = [Counted(event, count) for event, count in load.others]
    return _by_accountant(load.mu, events, relation, delta, "rdp", orders=_orders(load))


def _by_accountant(
    total_mu: float,
    events: list[Counted],
    relation: Relation,
    delta: float,
    accountant: Accountant,
    **options: object,
) -> Figure | None:
    gaussian = [Counted(Gaussian(1 / total_mu))] if total_mu else []
    # A fixed order, so that the same spends give the same digits.
    ordered = (*gaussian, *sorted(events, key=repr))
    fresh = new_accountant(relation, accountant, **options)
    composed = fresh.compose(to_dp_event(Composed(ordered), relation, accountant))
    epsilon = float(composed.get_epsilon(delta))
    return Figure(epsilon, None, accountant) if math.isfinite(epsilon) else None


def _takes(event: Event, relation: Relation, accountant: Accountant) -> bool:
    try:
        to_dp_event(event, relation, accountant)
    except Refused:
        return False
    return True


def _orders(load: _Load) -> list[float]:
    """RDP orders, up to a million so that an epsilon near 0.001 is not lost; fewer where each costs a long sum."""
    highest = 2**12 if any(_samples(event) for event, _ in load.others) else 2**20
    tenths = [1 + tenth / 10 for tenth in range(1, 100)]
    above = [math.ceil(64 * 1.25**k) for k in range(44)]
    return [*tenths, *range(11, 64), *(order for order in above if order <= highest)]


def _samples(event: Event) -> bool:
    match event:
        case Sampled():
            return True
        case RepeatAndSelect(inner):
            return _samples(inner)
        case Composed(events):
            return any(_samples(part.event) for part in events)
    return False
