"""The config section of liu_talwar."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from dpladder_papers.searches.sections import Selection


class LiuTalwar(Selection):
    """Runs until a coin says stop, of which the best is put out (Liu & Talwar)."""

    name: Literal["liu_talwar"] = "liu_talwar"
    law: Literal["geometric"] = Field("geometric", description="Law of the number of runs.")
