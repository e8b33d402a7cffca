"""The class whose noised mean is nearest wins: one release, and nothing to search.

A plan imports this file, so what is heavy is imported where it is used.
"""

from typing import Any, ClassVar, Literal

from pydantic import Field

from dpladder.config.learner_sections import LearnerSection
from dpladder.config.method import LearnerMethod
from dpladder.section import Positive


class NearestMean(LearnerSection):
    """The class whose noised mean is nearest wins."""

    steps: ClassVar[int] = 1
    eta: ClassVar[float] = 1.0
    name: Literal["own.nearest_mean"] = "own.nearest_mean"
    radius: Positive = Field(
        1.0, le=1e4, description="Radius of a ball that records are scaled into first."
    )


def queries(learner: NearestMean, hyper: Any, constants: Any) -> tuple[Any, ...]:
    """Each class's sum, and its count as a last column, told in units of the radius."""
    from torch import arange

    from dpladder.learn.queries import WeighedSums
    from dpladder.privacy.accounting import gdp

    def membership(x: Any, label: Any) -> Any:  # of one record
        return (arange(constants.classes) == label).to(x)

    sums = WeighedSums(
        name="sums",
        multiplier=gdp.sigma(hyper.mu, 1),
        radius=learner.radius,
        by=membership,
        sums=constants.classes,
        constant=1.0,
    )
    return (sums,)


def train(inputs: Any, queries: Any, learner: NearestMean, hyper: Any, constants: Any) -> Any:
    """A generator: it yields questions, and is sent noised answers."""
    from torch import cat

    from dpladder.learn.moments import as_weights

    noised = yield queries[0].at()
    means = noised[:, :-1] / (noised[:, -1:] / learner.radius).clamp(min=1.0)
    # |x - m|^2 is least where m x - |m|^2 / 2 is largest, for an x of the public length
    bias = -means.square().sum(1, keepdim=True) / 2 * constants.length / learner.radius
    return as_weights(cat([means, bias], 1))


METHOD = LearnerMethod(section=NearestMean, queries=queries, train=train)
