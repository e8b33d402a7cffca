"""Private selection whose runs look where earlier ones did well (Wang et al., DP-HyPO)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from dpladder.config.method import SearchMethod, later
from dpladder_papers.searches.sections import SHORT_ATTACK, Selection, Share


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


METHOD = SearchMethod(
    section=DpHypo,
    price=later("dpladder_papers.searches.dp_hypo.search:price"),
    searcher=later("dpladder_papers.searches.dp_hypo.search:Searcher"),
    attack=SHORT_ATTACK,
)
