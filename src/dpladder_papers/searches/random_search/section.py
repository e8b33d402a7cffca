"""The config section of random_search."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from dpladder.config.search_sections import SearchSection


class RandomSearch(SearchSection):
    """One training at a random r, with the whole total. It looks at nothing."""

    name: Literal["random_search"] = "random_search"
    law: Literal["log_uniform", "uniform"] = Field(
        "log_uniform", description="How r is drawn in its range."
    )
