"""What DP-GD with Prodigy's step sizes costs: a noised sum of clipped gradients at each step."""

from __future__ import annotations

from dpladder.learn import guide

declare = guide.declare
