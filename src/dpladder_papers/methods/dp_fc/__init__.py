"""Descent preconditioned by the noised covariance (Mehta et al.)."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from dpladder.config.learner_sections import (
    Clip,
    Clipping,
    LearnerSection,
    Linked,
    Radius,
    Searched,
    SharedCovariance,
    configured_purchases,
)
from dpladder.config.method import LearnerMethod, later
from dpladder.section import Positive


class FeatureCovariance(LearnerSection):
    """DP-FC: gradient descent preconditioned by the noised feature covariance (Mehta et al.)."""

    searches: ClassVar[Searched] = "rate"
    findings: ClassVar[bool] = True
    name: Literal["dp_fc"] = "dp_fc"
    clip: Clip = 1.0
    clipping: Clipping = "flat"
    link: Linked = "softmax"
    radius: Radius = 1.0
    damping: Positive = Field(
        0.1, description="Number added to every eigenvalue of the mean covariance."
    )
    shared: SharedCovariance | None = Field(None, description=SharedCovariance.__doc__)

    @property
    def purchases(self) -> dict[str, Any]:
        return configured_purchases(shared=self.shared)


METHOD = LearnerMethod(
    section=FeatureCovariance,
    queries=later("dpladder_papers.methods.dp_fc.train:queries"),
    train=later("dpladder_papers.methods.dp_fc.train:train"),
    logit_noise=later("dpladder_papers.methods.dp_fc.train:logit_noise"),
    # fitted to digits and mixture
    prior={True: (0.03, 1.7), False: (0.04, 1.7)},
)
