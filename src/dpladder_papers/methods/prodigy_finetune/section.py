"""The keys of fine-tuning with Prodigy's step sizes."""

from __future__ import annotations

from typing import Literal

from dpladder.config.learner_sections import TunedDescent
from dpladder_papers.methods.dp_prodigy.section import GrowingSteps


class StepSizeFreeTuning(TunedDescent, GrowingSteps):
    """Fine-tuning of the public network, as dp_finetune's, with the step sizes of dp_prodigy. They
    grow with what the released gradients show, so there is no rate to search."""

    name: Literal["prodigy_finetune"] = "prodigy_finetune"
