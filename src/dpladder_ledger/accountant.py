"""An accountant for Opacus that lets through what was reserved, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opacus.accountants import RDPAccountant


class WatchedAccountant(RDPAccountant):  # type: ignore[misc]  # untyped
    """An accountant that refuses steps which were not reserved.

    Opacus tells its accountant of each step after the noise is drawn and before the weights move.
    So a step that is refused here changes nothing that is released. `get_epsilon` is Opacus' own:
    for this training alone, and for records that are added or removed.

    Args:
        take: takes one reserved step by noise multiplier and sample rate, or raises.
    """

    def __init__(self, take: Callable[[float, float], None]) -> None:
        super().__init__()
        self._take = take

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """One step of Opacus', refused where it was not reserved."""
        self._take(noise_multiplier, sample_rate)
        super().step(noise_multiplier=noise_multiplier, sample_rate=sample_rate)

    def __deepcopy__(self, memo: dict[int, Any]) -> WatchedAccountant:
        return self  # a copy would count the same steps twice; the charge stays one
