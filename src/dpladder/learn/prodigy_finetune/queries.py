"""What fine-tuning with Prodigy's step sizes asks: a noised sum of clipped gradients at each step,
of all trained weights in one vector."""

from __future__ import annotations

from dpladder.learn.dp_finetune.queries import OWN, queries, shapes

__all__ = ["OWN", "queries", "shapes"]
