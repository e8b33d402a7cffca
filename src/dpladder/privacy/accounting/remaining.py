"""Plan arithmetic: what is left of a total, what each target may spend, and the nearest plan that
fits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dpladder.errors import BadInput, Refused
from dpladder.privacy.accounting import booking, gdp
from dpladder.privacy.accounting.booking import NO_COST, Entry
from dpladder.privacy.accounting.composition import compose
from dpladder.privacy.accounting.events import Nothing, Partition, Spend
from dpladder.privacy.accounting.rounding import round_up


def remaining_mu(
    total_epsilon: float,
    delta: float,
    spends: Sequence[Spend],
    partition: Partition,
    delta0: float = 0.0,
) -> float:
    """The mu that one more mechanism may spend on a partition.

    It is a proposal for a plan, by the unit that bears most today. The plan is composed whole
    afterwards, and the ledger's limits hold whatever was proposed.

    Args:
        total_epsilon: that no unit may exceed.
        delta: the lineage's.
        spends: all that was spent, whatever was spent because of what.
        partition: whose units the mechanism reads.
        delta0: that the mechanism is booked at.

    Returns:
        mu, rounded down, above 0.

    Raises:
        Refused: nothing is left.
    """
    spent = _spent_on_partition(delta, spends, partition)
    beside = booking.total([spent, Entry(delta0=delta0)])
    left = gdp.remaining(booking.largest_mu(total_epsilon, delta, beside), [spent.mu])
    if not left:
        raise Refused(
            f"Nothing is left of epsilon {total_epsilon:g}: the spends before it cost "
            f"{round_up(booking.epsilon(spent, delta))} already. Raise the total, or spend less "
            f"before."
        )
    return left


@dataclass(frozen=True)
class Nearest:
    """Two ways out of a sweep too dear for its total: scale every rung's epsilon, or raise the
    total.

    Attributes:
        sweep_epsilon: what the sweep costs as it is asked for.
        total_epsilon: the smallest total that leaves the final run its share.
        factor: the largest factor on the rungs' epsilons that leaves the share, at most 1, in
            thousandths. 0 where none does.
    """

    sweep_epsilon: float
    total_epsilon: float
    factor: float


def nearest_feasible(
    total_epsilon: float,
    delta: float,
    sweep: Callable[[float], Sequence[Spend]],
    partition: Partition,
    final_share: float,
) -> Nearest:
    """The nearest plans that leave `final_share` of mu^2 to the final run, in figures a person can
    type.

    Args:
        total_epsilon: that no unit may exceed.
        delta: the lineage's.
        sweep: the sweep's spends with every rung's epsilon multiplied by a factor; they grow with
            it.
        partition: whose units sweep and final run read.
        final_share: between 0 and 1, both excluded.
    """
    if not 0 < final_share < 1:
        raise BadInput(f"final_share is {final_share}. It must lie between 0 and 1.")
    search = math.sqrt(1 - final_share)
    allowed = gdp.mu_from_epsilon(total_epsilon, delta) * search

    def cost(factor: float) -> float:
        return _spent_on_partition(delta, sweep(factor), partition).mu

    # Three decimals of factor are what a config holds; the last one that fits by bisection over
    # them.
    fits, fails = 0, 1001
    while fails - fits > 1:
        middle = (fits + fails) // 2
        fits, fails = (middle, fails) if cost(middle / 1000) <= allowed else (fits, middle)
    whole = _spent_on_partition(delta, sweep(1.0), partition)
    return Nearest(
        sweep_epsilon=booking.epsilon(whole, delta),
        total_epsilon=_round_up(booking.epsilon(replace(whole, mu=whole.mu / search), delta)),
        factor=fits / 1000,
    )


def sentence(nearest: Nearest) -> str:
    """The proposal as the user reads it."""
    lower = (
        f"multiply every rung's epsilon by {nearest.factor:g}, or "
        if 0 < nearest.factor < 1
        else ""
    )
    return (
        f"All before the final training costs epsilon {round_up(nearest.sweep_epsilon)}; "
        f"{lower}raise the total to {nearest.total_epsilon:g}."
    )


def _round_up(value: float, figures: int = 3) -> float:
    if not value:
        return 0.0
    places = figures - 1 - math.floor(math.log10(value))
    # Decimal digits are not binary ones: rounding can fall a hair short, then the next figure is
    # taken.
    rounded = round(math.ceil(value * 10.0**places) * 10.0**-places, places)
    return rounded if rounded >= value else round(rounded + 10.0**-places, places)


def _spent_on_partition(delta: float, spends: Sequence[Spend], partition: Partition) -> Entry:
    """What the worst unit of `partition` bears from spends, by its epsilon."""
    if not spends:
        return NO_COST
    # A free spend on the partition makes its parts known to the composition.
    reader = replace(spends[0], partition=partition, event=Nothing("asks what is left"), count=1)
    parts = compose([*spends, reader], delta).parts
    spends_here = [
        figure
        for (rule, part), figure in parts.items()
        if rule == partition.split_rule and (not partition.parts or part in partition.parts)
    ]
    worst = max(spends_here, key=lambda figure: figure.epsilon)
    return worst.entry
