"""Its keys in the config."""

from typing import ClassVar, Literal

from pydantic import Field

from dpladder.config.section import Positive, Section


class NearestMean(Section):
    """The class whose noised mean is nearest wins: one release, and nothing to search."""

    version: ClassVar[int] = 1  # rises when what it computes, draws or charges changes in meaning
    searches: ClassVar[None] = None  # "rate" or "ridge" where there is an r to be tuned
    steps: ClassVar[int] = 1
    eta: ClassVar[float] = 1.0
    name: Literal["own.nearest_mean"] = "own.nearest_mean"
    radius: Positive = Field(1.0, le=1e4, description="records are scaled into this ball first")


SECTION = NearestMean
