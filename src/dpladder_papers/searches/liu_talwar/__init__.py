"""Runs until a coin says stop (Liu & Talwar)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from dpladder.config.method import SearchMethod, later
from dpladder_papers.searches.sections import SHORT_ATTACK, Selection


class LiuTalwar(Selection):
    """Runs until a coin says stop, of which the best is put out (Liu & Talwar)."""

    name: Literal["liu_talwar"] = "liu_talwar"
    law: Literal["geometric"] = Field("geometric", description="Law of the number of runs.")


METHOD = SearchMethod(
    section=LiuTalwar,
    price=later("dpladder_papers.searches.selection_cost:price"),
    searcher=later("dpladder_papers.searches.secret_runs:Searcher"),
    attack=SHORT_ATTACK,
)
