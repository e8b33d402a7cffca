"""The keys of DP-LS."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from dpladder.config.learner_sections import (
    Alpha,
    Covariance,
    LearnerSection,
    Radius,
    Searched,
    Statistics,
    configured_purchases,
)


class LeastSquares(LearnerSection):
    """DP-LS: ridge regression, weighted by class, from noised second moments (Mehta et al.). The
    ladder's r is 1/lambda, in the range that sweep.search gives r."""

    searches: ClassVar[Searched] = "ridge"
    findings: ClassVar[bool] = True
    several_labels: ClassVar[bool] = True
    steps: ClassVar[int] = 1
    name: Literal["dp_ls"] = "dp_ls"
    radius: Radius = 1.0
    alpha: Alpha = Field(
        1.0, description="Weight of all records beside a class's own. It is free post-processing."
    )
    covariance: Covariance | None = Field(None, description=Covariance.__doc__)
    statistics: Statistics | None = Field(None, description=Statistics.__doc__)

    @model_validator(mode="after")
    def _one_of_them_is_shared(self) -> LeastSquares:
        if self.covariance and self.statistics:
            raise ValueError("statistics hold the covariance already; name one of the two")
        return self

    @property
    def purchases(self) -> dict[str, Any]:
        return configured_purchases(covariance=self.covariance, statistics=self.statistics)

    def of_trial(self, number: int) -> Self:
        values = (self.statistics and self.statistics.alpha) or (self.alpha,)
        return self.model_copy(update={"alpha": values[number % len(values)]})

    @property
    def chosen_keys(self) -> dict[str, Any]:
        return {"alpha": self.alpha}
