"""Fine-tuning by step sizes that grow with what gradients show."""

from __future__ import annotations

from typing import Literal

from dpladder.config.learner_sections import TunedDescent
from dpladder.config.method import LearnerMethod, later
from dpladder_papers.methods.dp_prodigy import GrowingSteps


class StepSizeFreeTuning(TunedDescent, GrowingSteps):
    """Fine-tuning of the public network, as dp_finetune's, with the step sizes of dp_prodigy. They
    grow with what the released gradients show, so there is no rate to search."""

    name: Literal["prodigy_finetune"] = "prodigy_finetune"


METHOD = LearnerMethod(
    section=StepSizeFreeTuning,
    queries=later("dpladder_papers.methods.prodigy_finetune.train:queries"),
    train=later("dpladder_papers.methods.prodigy_finetune.train:train"),
    weights="dpladder.learn.finetune.predict",
)
