"""The config section of dp_hypo."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from dpladder_papers.searches.sections import Selection, Share


class DpHypo(Selection):
    """Private selection whose runs look where earlier ones did well, by a Gaussian process (Wang et
    al., DP-HyPO)."""

    name: Literal["dp_hypo"] = "dp_hypo"
    law: Literal["logarithmic", "geometric"] = Field(
        "geometric", description="Law of the number of runs."
    )
    adapting: Share = Field(
        0.2, description="Share of the total that leaning towards good runs may cost."
    )
