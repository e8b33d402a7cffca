"""What DP-GD with Prodigy's step sizes costs: a noised sum of clipped gradients at each step."""

from __future__ import annotations

from dpladder.learn.interface import declare_head

declare = declare_head
