"""The keys of prototypes."""

from __future__ import annotations

from typing import ClassVar, Literal

from dpladder.config.learner_sections import LearnerSection, Radius


class Prototypes(LearnerSection):
    """A noised mean of each class; the nearest by angle wins. One release, nothing to search, and
    small classes count as much as large ones (as Wahdany et al.'s DPPL, with plain means)."""

    steps: ClassVar[int] = 1
    eta: ClassVar[float] = 1.0
    findings: ClassVar[bool] = True
    name: Literal["dp_prototypes"] = "dp_prototypes"
    radius: Radius = 1.0
