"""The keys of DP-MLP."""

from __future__ import annotations

from typing import ClassVar, Literal

from dpladder.config.learner_sections import ByMomentum


class HiddenLayer(ByMomentum):
    """dp_gd's descent (Panda et al.) with one hidden layer."""

    has_head: ClassVar[bool] = False
    name: Literal["dp_mlp"] = "dp_mlp"

    @property
    def draws_start(self) -> bool:
        return True
