"""A noised mean of each class."""

from __future__ import annotations

from typing import ClassVar, Literal

from dpladder.config.learner_sections import LearnerSection, Radius
from dpladder.config.method import LearnerMethod, later


class Prototypes(LearnerSection):
    """A noised mean of each class; the nearest by angle wins. One release, nothing to search, and
    small classes count as much as large ones (as Wahdany et al.'s DPPL, with plain means)."""

    steps: ClassVar[int] = 1
    eta: ClassVar[float] = 1.0
    findings: ClassVar[bool] = True
    name: Literal["dp_prototypes"] = "dp_prototypes"
    radius: Radius = 1.0


METHOD = LearnerMethod(
    section=Prototypes,
    queries=later("dpladder_papers.methods.dp_prototypes.train:queries"),
    train=later("dpladder_papers.methods.dp_prototypes.train:train"),
)
