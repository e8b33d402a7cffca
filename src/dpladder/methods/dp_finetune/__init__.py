"""Fine-tuning of the public network."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from dpladder.config.learner_sections import Rated, Searched, TunedDescent
from dpladder.config.method import LearnerMethod, later
from dpladder.section import Fraction, Positive


class FineTune(TunedDescent, Rated):
    """Fine-tuning of the public network itself, above `features.until`, with a linear head on top.
    What is released is the difference from the public weights, to which weight_decay pulls back."""

    searches: ClassVar[Searched] = "rate"
    name: Literal["dp_finetune"] = "dp_finetune"
    optimizer: Literal["momentum", "adam"] = Field(
        "momentum", description="What makes a direction of the noised gradients."
    )
    momentum: Fraction = Field(0.9, description="Heavy-ball momentum, with optimizer: momentum.")
    betas: tuple[Fraction, Fraction] = Field(
        (0.9, 0.999),
        description="Decay of the two moments, with optimizer: adam; the first is the momentum.",
    )
    stability: Positive = Field(
        1e-8, description="Number added to the root of the second moment, with optimizer: adam."
    )


METHOD = LearnerMethod(
    section=FineTune,
    queries=later("dpladder.methods.dp_finetune.train:queries"),
    train=later("dpladder.methods.dp_finetune.train:train"),
    logit_noise=later("dpladder.methods.dp_finetune.train:logit_noise"),
    weights="dpladder.learn.finetune.predict",
)
