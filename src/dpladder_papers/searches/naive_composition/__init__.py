"""Trainings of equal budgets, of which the best is put out."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from dpladder.config.method import SearchMethod, later
from dpladder.config.search_sections import SearchSection


class NaiveComposition(SearchSection):
    """Trainings of equal budgets, spread over the range of r; the best one is put out."""

    name: Literal["naive_composition"] = "naive_composition"
    runs: Annotated[int, Field(ge=1, le=10_000, description="Number of trainings.")] = 5


METHOD = SearchMethod(
    section=NaiveComposition,
    price=later("dpladder_papers.searches.naive_composition.search:price"),
    searcher=later("dpladder_papers.searches.naive_composition.search:Searcher"),
    attack={"runs": 3},
)
