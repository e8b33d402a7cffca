"""Full-batch gradient descent with momentum on a linear head (Panda et al.)."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from dpladder.config.learner_sections import ByMomentum
from dpladder.config.method import LearnerMethod, later


class Descent(ByMomentum):
    """Full-batch gradient descent with momentum (Panda et al.), on a linear head."""

    linear_head: ClassVar[bool] = True
    numbers: ClassVar[bool] = True
    name: Literal["dp_gd"] = Field(
        "dp_gd",
        description="How models are trained (docs/learners.md, docs/papers.md).",
    )


METHOD = LearnerMethod(
    section=Descent,
    queries=later("dpladder.learn.guide:queries"),
    train=later("dpladder.methods.dp_gd.train:train"),
    logit_noise=later("dpladder.methods.dp_gd.train:logit_noise"),
    # fitted to five data sets
    prior={
        **{True: (1.45, 1.7), False: (2.48, 1.87), "number": (0.3, 1.7)},
        **{"curves": (1.0, 1.7), "curves of a number": (0.25, 1.7)},
    },
    slope=0.23,
)
