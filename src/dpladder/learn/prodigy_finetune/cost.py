"""What fine-tuning with Prodigy's step sizes costs: a noised sum of clipped gradients at each step,
of all trained weights in one vector."""

from __future__ import annotations

from dpladder.learn.dp_finetune.cost import OWN, declare, shapes

__all__ = ["OWN", "declare", "shapes"]
