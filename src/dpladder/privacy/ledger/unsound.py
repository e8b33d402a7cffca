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

from dpladder.privacy.accounting.events import Event, Spend

Draws = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Unsound:
    """A privacy bug that is mended, and how its releases are known.

    Attributes:
        mechanisms: those that had it.
        below: the version of them that no longer has it.
        why: for statement and ledger, in words.
        shows: whether the spends and draws of a release show it.
        true: the event that a release really made.
    """

    mechanisms: tuple[str, ...]
    below: int
    why: str
    shows: Callable[[Sequence[Spend], Draws], bool]
    true: Callable[[Event], Event]


UNSOUND: tuple[Unsound, ...] = ()


def matching_bug(spends: Sequence[Spend], draws: Draws) -> Unsound | None:
    """The bug that a release shows, if it shows one."""
    return next((bug for bug in UNSOUND if bug.shows(spends, draws)), None)


def true_spends(spends: Sequence[Spend], draws: Draws) -> tuple[Spend, ...]:
    """What a release costs: what was booked for it, unless a bug made that too little."""
    bug = matching_bug(spends, draws)
    return (
        tuple(spends) if bug is None else tuple(replace(s, event=bug.true(s.event)) for s in spends)
    )
