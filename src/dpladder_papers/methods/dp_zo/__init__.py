"""Steps by noised differences of losses (Tang et al.)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from dpladder.config.learner_sections import Bias, LearnerSection, Linked, Searched
from dpladder.config.method import LearnerMethod, later
from dpladder.section import Positive


class ZerothOrder(LearnerSection):
    """DP-ZO on a linear head: steps along public random directions, by noised differences of the
    loss (Tang et al.). Directions have length 1, so that eta means what it means elsewhere; many
    more steps than elsewhere pay."""

    searches: ClassVar[Searched] = "rate"
    findings: ClassVar[bool] = True
    name: Literal["dp_zo"] = "dp_zo"
    clip: Annotated[
        Positive, Field(le=1e6, description="C, the bound on one unit's difference of losses.")
    ] = 1.0
    link: Linked = "softmax"
    smoothing: Positive = Field(
        1.0, description="phi, how far along a direction the loss is looked at."
    )
    noise: Literal["gaussian", "laplace"] = Field(
        "gaussian",
        description="Law of the difference's noise. laplace makes each step pure DP, and is "
        "charged as its Gaussian bound.",
    )
    bias: Bias = False

    @property
    def constant_feature(self) -> bool:
        return self.bias


METHOD = LearnerMethod(
    section=ZerothOrder,
    queries=later("dpladder_papers.methods.dp_zo.train:queries"),
    train=later("dpladder_papers.methods.dp_zo.train:train"),
    logit_noise=later("dpladder_papers.methods.dp_zo.train:logit_noise"),
)
