"""Its keys in the config."""

from typing import Literal

from pydantic import Field

from dpladder.config.search_sections import SearchSection


class Halving(SearchSection):
    """Rounds of trainings, of which the better half goes on at twice the mu squared; all of them
    could be published, and the last one is."""

    name: Literal["own.halving"] = "own.halving"
    rounds: int = Field(
        3, ge=1, le=8, description="Number of rounds, of 2^(rounds - 1), ..., 2 and 1 trainings."
    )
