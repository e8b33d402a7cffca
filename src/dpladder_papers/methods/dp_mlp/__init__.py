"""Private descent with one hidden layer."""

from __future__ import annotations

from typing import ClassVar, Literal

from dpladder.config.learner_sections import ByMomentum
from dpladder.config.method import LearnerMethod, later


class HiddenLayer(ByMomentum):
    """dp_gd's descent (Panda et al.) with one hidden layer."""

    has_head: ClassVar[bool] = False
    name: Literal["dp_mlp"] = "dp_mlp"

    @property
    def draws_start(self) -> bool:
        return True


METHOD = LearnerMethod(
    section=HiddenLayer,
    queries=later("dpladder_papers.methods.dp_mlp.train:queries"),
    train=later("dpladder_papers.methods.dp_mlp.train:train"),
    logit_noise=later("dpladder_papers.methods.dp_mlp.train:logit_noise"),
)
