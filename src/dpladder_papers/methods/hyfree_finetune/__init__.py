"""Fine-tuning by step sizes from noised losses (Bu & Liu)."""

from __future__ import annotations

from typing import Literal

from dpladder.config.learner_sections import Tuning
from dpladder.config.method import LearnerMethod, later
from dpladder_papers.methods.hyfree_dp import LossesLookedAt


class HyperparameterFreeTuning(Tuning, LossesLookedAt):
    """Fine-tuning of the public network, as dp_finetune's, with the steps of HyFreeDP: their sizes
    from privatised losses, automatic clipping (Bu & Liu). weight_decay pulls back to the public
    weights."""

    name: Literal["hyfree_finetune"] = "hyfree_finetune"


METHOD = LearnerMethod(
    section=HyperparameterFreeTuning,
    queries=later("dpladder_papers.methods.hyfree_finetune.train:queries"),
    train=later("dpladder_papers.methods.hyfree_finetune.train:train"),
    weights="dpladder.learn.finetune.predict",
)
