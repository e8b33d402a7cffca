"""Candidates tested on disjoint parts (Ding & Wu)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from dpladder.config.method import SearchMethod, later
from dpladder.config.search_sections import SearchSection
from dpladder.section import Count
from dpladder_papers.searches.sections import Share


class ProposeTest(SearchSection):
    """Candidates tested on models of disjoint parts of the data, by AboveThreshold with doubling
    steps (Ding & Wu). The choice is a guess unless parts times a round's epsilon is some 100."""

    needs_delta: ClassVar[bool] = True
    name: Literal["propose_test"] = "propose_test"
    parts: Annotated[
        int,
        Field(ge=2, le=1000, description="Number of disjoint parts, each with models of its own."),
    ] = 10
    candidates: Count = Field(
        4, description="Number of values of r that are tried, spread over its range."
    )
    step: Annotated[
        float,
        Field(
            ge=0.01, lt=1, description="Least gain in accuracy that is worth a round, as a share."
        ),
    ] = 0.1
    aside: Share = Field(
        0.2, description="Expected share of the units that models of parts are tested on."
    )
    final: Share = Field(0.8, description="Share of mu squared for the final training.")


METHOD = SearchMethod(
    section=ProposeTest,
    price=later("dpladder_papers.searches.propose_test.search:price"),
    searcher=later("dpladder_papers.searches.propose_test.search:Searcher"),
    attack={"parts": 2, "candidates": 2},
    scored=False,
)
