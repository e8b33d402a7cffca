"""What DP-GD with Prodigy's step sizes asks: a noised sum of clipped gradients at each step."""

from __future__ import annotations

from dpladder.learn import guide

queries = guide.queries
