"""The keys of DP-GD."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from dpladder.config.learner_sections import ByMomentum


class Descent(ByMomentum):
    """Full-batch gradient descent with momentum (Panda et al.), on a linear head."""

    linear_head: ClassVar[bool] = True
    name: Literal["dp_gd"] = Field(
        "dp_gd",
        description="How models are trained. config/README.md has all ways, and their keys.",
    )
