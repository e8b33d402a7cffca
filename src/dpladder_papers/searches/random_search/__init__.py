"""One training at a random r."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from dpladder.config.method import SearchMethod, later
from dpladder.config.search_sections import SearchSection


class RandomSearch(SearchSection):
    """One training at a random r, with the whole total. It looks at nothing."""

    name: Literal["random_search"] = "random_search"
    law: Literal["log_uniform", "uniform"] = Field(
        "log_uniform", description="How r is drawn in its range."
    )


METHOD = SearchMethod(
    section=RandomSearch,
    price=later("dpladder_papers.searches.random_search.search:price"),
    searcher=later("dpladder_papers.searches.random_search.search:Searcher"),
    scored=False,
)
