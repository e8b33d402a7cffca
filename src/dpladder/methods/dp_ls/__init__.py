"""Ridge regression from noised second moments (Mehta et al.)."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from dpladder.config.learner_sections import (
    Alpha,
    LearnerSection,
    Radius,
    Searched,
    SharedSums,
    configured_purchases,
)
from dpladder.config.method import LearnerMethod, later


class LeastSquares(LearnerSection):
    """DP-LS: ridge regression, weighted by class, from noised second moments (Mehta et al.). The
    ladder's r is 1/lambda."""

    searches: ClassVar[Searched] = "ridge"
    findings: ClassVar[bool] = True
    several_labels: ClassVar[bool] = True
    steps: ClassVar[int] = 1
    name: Literal["dp_ls"] = "dp_ls"
    radius: Radius = 1.0
    alpha: Alpha = Field(
        1.0, description="Weight of all records beside a class's own. It is free post-processing."
    )
    shared: SharedSums | None = Field(None, description=SharedSums.__doc__)

    @property
    def purchases(self) -> dict[str, Any]:
        return configured_purchases(shared=self.shared)

    @property
    def trials_are_solved(self) -> bool:
        return self.shared is not None and self.shared.sums == "all"

    def of_trial(self, number: int) -> Self:
        values = (self.shared and self.shared.alpha) or (self.alpha,)
        return self.model_copy(update={"alpha": values[number % len(values)]})

    @property
    def chosen_keys(self) -> dict[str, Any]:
        return {"alpha": self.alpha}


METHOD = LearnerMethod(
    section=LeastSquares,
    queries=later("dpladder.methods.dp_ls.train:queries"),
    train=later("dpladder.methods.dp_ls.train:train"),
    logit_noise=later("dpladder.methods.dp_ls.train:logit_noise"),
    # fitted to digits and mixture
    prior={True: (0.02, 1.7), False: (0.05, 2.61)},
)
