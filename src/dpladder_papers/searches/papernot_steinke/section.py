"""The config section of papernot_steinke."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from dpladder_papers.searches.sections import Law, Selection


class PapernotSteinke(Selection):
    """The best of a secret, random number of runs (Papernot & Steinke)."""

    name: Literal["papernot_steinke"] = "papernot_steinke"
    law: Law = Field(
        "logarithmic",
        description="Law of the number of runs. A Poisson number may be 0; then nothing is "
        "trained.",
    )
