"""Releases that cost more than was booked for them, by a bug since mended: charged at what they
cost.

A version of a mechanism that rose for a privacy bug leaves such releases behind. They are known by
the draws that the ledger holds of them, whatever the mechanism was called, and whatever version of
dpladder reads them now.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dpladder.privacy.accounting.events import (
    Booked,
    Composed,
    Counted,
    Event,
    Gaussian,
    Sampled,
    Spend,
)

Draws = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Unsound:
    """`mechanisms`: those that have the bug, below this version. `shows`: whether the draws of a
    release show it. `true`: the event that they really made."""

    mechanisms: tuple[str, ...]
    below: int
    why: str
    shows: Callable[[Draws], bool]
    true: Callable[[Event], Event]


def _of_sampled_losses(draws: Draws) -> bool:
    """Losses of a sample, by a version that did not say how far a unit moves them that enters
    it."""
    return any(
        draw["name"] == "losses" and draw["under"] and "entering" not in draw for draw in draws
    )


def _losses_doubled(event: Event) -> Event:
    """The same with half the noise beside the move of losses: a unit replaced moves them twice as
    far inside a sample as was declared (`accounting.draws.in_sample`)."""
    match event:
        case Booked(events):
            return replace(event, events=tuple(map(_doubled, events)))
        case Sampled(_, Composed((gradient, losses))) if isinstance(losses.event, Gaussian):
            halved = replace(losses, event=Gaussian(losses.event.sigma / 2.0))
            return replace(event, event=Composed((gradient, halved)))
    return event


def _doubled(one: Counted) -> Counted:
    return replace(one, event=_losses_doubled(one.event))


UNSOUND = (
    Unsound(
        ("hyfree_dp", "hyfree_finetune"),
        2,
        "HyFreeDP's losses on Poisson samples were priced under replace_one as if a unit moved "
        "them half as far",
        _of_sampled_losses,
        _losses_doubled,
    ),
)


def found(spends: Sequence[Spend], draws: Draws) -> Unsound | None:
    """The bug that a release shows, if it shows one."""
    replaced = any(spend.relation == "replace_one" for spend in spends)
    return next((bug for bug in UNSOUND if replaced and bug.shows(draws)), None)


def charged(spends: Sequence[Spend], draws: Draws) -> tuple[Spend, ...]:
    """What a release costs: what was booked for it, unless a bug made that too little."""
    bug = found(spends, draws)
    return (
        tuple(spends) if bug is None else tuple(replace(s, event=bug.true(s.event)) for s in spends)
    )
