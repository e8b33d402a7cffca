"""The best of a secret, random number of runs (Papernot & Steinke)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from dpladder.config.method import SearchMethod, later
from dpladder_papers.searches.sections import SHORT_ATTACK, Law, Selection


class PapernotSteinke(Selection):
    """The best of a secret, random number of runs (Papernot & Steinke)."""

    name: Literal["papernot_steinke"] = "papernot_steinke"
    law: Law = Field(
        "logarithmic",
        description="Law of the number of runs. A Poisson number may be 0; then nothing is "
        "trained.",
    )


METHOD = SearchMethod(
    section=PapernotSteinke,
    price=later("dpladder_papers.searches.selection_cost:price"),
    searcher=later("dpladder_papers.searches.secret_runs:Searcher"),
    attack=SHORT_ATTACK,
)
