"""The keys that several private searches have."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from dpladder.config.search_sections import SearchSection

Law = Literal["logarithmic", "geometric", "poisson"]
Share = Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]
Mean = Annotated[float, Field(gt=1, le=500, description="Expected number of runs.")]
Padded = Annotated[
    bool,
    Field(
        description="Whether to train as often as there may ever be runs. Time and memory then do "
        "not tell how many counted. At a mean of 10 that is 148 trainings for a "
        "logarithmic law, 66 geometric, 21 Poisson."
    ),
]
SHORT_ATTACK: dict[str, Any] = {"mean": 2.0, "padded": False}
"""Runs that hardly cost an audit time."""


class Selection(SearchSection):
    """What private selection reads: the best of a secret number of runs."""

    mean: Mean = 10.0
    padded: Padded = True
    law: Law
