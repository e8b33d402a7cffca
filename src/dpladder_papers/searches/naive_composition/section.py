"""The config section of naive_composition."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from dpladder.config.search_sections import SearchSection


class NaiveComposition(SearchSection):
    """Trainings of equal budgets, spread over the range of r; the best one is put out."""

    name: Literal["naive_composition"] = "naive_composition"
    runs: Annotated[int, Field(ge=1, le=10_000, description="Number of trainings.")] = 5
