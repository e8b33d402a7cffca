"""Least squares of a number, from noised second moments (Wang 2018)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from dpladder.config.learner_sections import LearnerSection, Radius, Searched
from dpladder.config.method import LearnerMethod, later
from dpladder.section import Fraction


class Ridge(LearnerSection):
    """Least squares of dataset.target, from noised second moments whose eigenvalues are raised to
    lambda at least (after Wang 2018). The ladder's r is 1/lambda."""

    searches: ClassVar[Searched] = "ridge"
    numbers: ClassVar[bool] = True
    classes: ClassVar[bool] = False
    has_head: ClassVar[bool] = False
    steps: ClassVar[int] = 1
    name: Literal["dp_ridge"] = "dp_ridge"
    radius: Radius = 1.0
    """Radius of the ball that records are scaled into first, in units of their public length
    (features.length). Predictions are of records as they are, so a smaller one bends them."""
    share: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)] = 0.5
    """Share of a training's mu^2 that buys the sum of x y; the rest buys the sum of x x^T."""
    constant: Fraction = 0.5
    """Length of a constant feature that is appended, as a share of the radius. 0: none is."""

    @property
    def constant_feature(self) -> bool:
        return self.constant > 0


METHOD = LearnerMethod(
    section=Ridge,
    queries=later("dpladder.methods.dp_ridge.train:queries"),
    train=later("dpladder.methods.dp_ridge.train:train"),
    logit_noise=later("dpladder.methods.dp_ridge.train:logit_noise"),
    # measured on public tables and digits (docs/measurements/regression.md)
    prior={"number": (0.125, 1.7)},
)
