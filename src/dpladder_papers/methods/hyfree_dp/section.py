"""The keys of HyFreeDP."""

from __future__ import annotations

from typing import Literal

from dpladder.config.learner_sections import LossesLookedAt


class HyperparameterFree(LossesLookedAt):
    """HyFreeDP on a linear head: step sizes from privatised losses, automatic clipping (Bu &
    Liu)."""

    name: Literal["hyfree_dp"] = "hyfree_dp"
