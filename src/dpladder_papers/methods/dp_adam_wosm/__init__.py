"""DP-Adam without a second moment (Mohapatra et al.)."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from dpladder.config.learner_sections import Rated, Searched
from dpladder.config.method import LearnerMethod, later
from dpladder.section import Fraction, Positive


class AdamNoSecondMoment(Rated):
    """DP-Adam whose second moment is its public noise level (Mohapatra et al., DPAdamWOSM).
    sweep.search.eta as for dp_adam."""

    searches: ClassVar[Searched] = "rate"
    linear_head: ClassVar[bool] = True
    name: Literal["dp_adam_wosm"] = "dp_adam_wosm"
    beta: Fraction = Field(0.9, description="Decay of the first moment.")
    stability: Positive = Field(1e-8, description="Number added to the noise level.")


METHOD = LearnerMethod(
    section=AdamNoSecondMoment,
    queries=later("dpladder.learn.guide:queries"),
    train=later("dpladder_papers.methods.dp_adam_wosm.train:train"),
    logit_noise=later("dpladder.learn.descent_noise:logit_noise_of_adam"),
    # fitted to digits, mixture and mnist5k-112
    prior={True: (1.83, 4.67), False: (1.72, 2.58)},
    slope=0.23,
)
