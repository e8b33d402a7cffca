"""The keys of HyFreeDP on a public network."""

from __future__ import annotations

from typing import Literal

from dpladder.config.learner_sections import Tuning
from dpladder_papers.methods.hyfree_dp.section import LossesLookedAt


class HyperparameterFreeTuning(Tuning, LossesLookedAt):
    """Fine-tuning of the public network, as dp_finetune's, with the steps of HyFreeDP: their sizes
    from privatised losses, automatic clipping (Bu & Liu). weight_decay pulls back to the public
    weights."""

    name: Literal["hyfree_finetune"] = "hyfree_finetune"
