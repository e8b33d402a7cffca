"""How each gradient is kept within the bound that its sum's noise is for. Both ways look at the one gradient's norm alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from torch import Tensor

STABILITY = 0.01  # added to a norm, so that a small gradient stays small (Bu et al. 2023, AUTO-S)

Scale = Callable[[Tensor, float], Tensor]
"""From gradients' norms and a bound to factors that keep each gradient within the bound."""


def clip(norms: Tensor, bound: float) -> Tensor:
    return (bound / norms).clamp(max=1.0)


def normalise(norms: Tensor, bound: float) -> Tensor:
    """g / (|g| + gamma), with `bound` for 1: shorter than the bound whatever the gradient (Bu et al. 2023, Eq. 5)."""
    return bound / (norms + STABILITY)


def scale_of(clipping: Literal["flat", "automatic"]) -> Scale:
    """What the config calls it."""
    return normalise if clipping == "automatic" else clip
