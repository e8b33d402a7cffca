"""One step of DP-Adam (Mehta et al.)."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from dpladder.config.learner_sections import Bias, Clip, Clipping, LearnerSection
from dpladder.config.method import LearnerMethod, later
from dpladder.section import Positive


class OneStep(LearnerSection):
    """A single step of DP-Adam from zero on a linear head. The rate scales the weights and changes
    no prediction."""

    steps: ClassVar[int] = 1
    name: Literal["one_step"] = "one_step"
    clip: Clip = 1.0
    clipping: Clipping = "flat"
    eta: Positive = Field(0.01, description="The learning rate.")
    stability: Positive = Field(
        1e-8, description="Number added to the gradient's size. A large one keeps its direction."
    )
    bias: Bias = False

    @property
    def constant_feature(self) -> bool:
        return self.bias


METHOD = LearnerMethod(
    section=OneStep,
    queries=later("dpladder_papers.methods.one_step.train:queries"),
    train=later("dpladder_papers.methods.one_step.train:train"),
)
