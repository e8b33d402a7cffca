"""Successive halving (Jamieson & Talwalkar 2016), paid for by plain composition."""

from typing import Literal

from pydantic import Field

from dpladder.config.method import SearchMethod, later
from dpladder.config.search_sections import SearchSection


class Halving(SearchSection):
    """Rounds of trainings, of which the better half goes on at twice the mu squared; all of them
    could be published, and the last one is."""

    name: Literal["own.halving"] = "own.halving"
    rounds: int = Field(
        3, ge=1, le=8, description="Number of rounds, of 2^(rounds - 1), ..., 2 and 1 trainings."
    )


METHOD = SearchMethod(
    section=Halving,
    price=later("own_methods.halving.search:price"),
    searcher=later("own_methods.halving.search:Searcher"),
    scored=False,
    attack={"rounds": 2},
)
