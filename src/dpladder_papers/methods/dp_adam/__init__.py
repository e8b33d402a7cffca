"""DP-Adam on a linear head (Mehta et al.)."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from dpladder.config.learner_sections import Rated, Searched
from dpladder.config.method import LearnerMethod, later
from dpladder.section import Fraction, Positive


class Adam(Rated):
    """DP-Adam on a linear head (Mehta et al.). A step moves each weight by about eta, whatever the
    gradient's scale: let sweep.search.eta reach down to 0.001."""

    searches: ClassVar[Searched] = "rate"
    linear_head: ClassVar[bool] = True
    name: Literal["dp_adam"] = "dp_adam"
    betas: tuple[Fraction, Fraction] = Field(
        (0.9, 0.999), description="Decay of the two moments; the first is the momentum."
    )
    stability: Positive = Field(1e-8, description="Number added to the root of the second moment.")


METHOD = LearnerMethod(
    section=Adam,
    queries=later("dpladder.learn.guide:queries"),
    train=later("dpladder_papers.methods.dp_adam.train:train"),
    logit_noise=later("dpladder.learn.descent_noise:logit_noise_of_adam"),
    # fitted to digits, mixture and mnist5k-112
    prior={True: (3.02, 1.7), False: (2.17, 1.72)},
    slope=0.23,
)
