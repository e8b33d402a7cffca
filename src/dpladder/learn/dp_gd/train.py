"""DP-GD, the paper's learner: private gradient descent on a linear head (Panda et al., Algorithm
1)."""

from __future__ import annotations

from dpladder.learn.interface import alone
from dpladder.learn.linear import train_many

__all__ = ["train", "train_many"]

train = alone(train_many)
