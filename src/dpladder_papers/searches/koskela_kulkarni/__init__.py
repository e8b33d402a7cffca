"""Private selection on a secret random subset (Koskela & Kulkarni)."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from dpladder.config.method import SearchMethod, later
from dpladder_papers.searches.sections import SHORT_ATTACK, Law, Selection, Share


class KoskelaKulkarni(Selection):
    """Private selection on a secret random subset of the units; the final training sees the rest,
    or everything."""

    exact_under: ClassVar[tuple[str, ...]] = ("add_remove",)
    needs_delta: ClassVar[bool] = True
    name: Literal["koskela_kulkarni"] = "koskela_kulkarni"
    law: Law = Field("geometric", description="Law of the number of runs.")
    share: Share = Field(0.2, description="Expected share of the units that selects.")
    apart: bool = Field(
        True,
        description="What the final training sees. true: only the units that did not select. "
        "false: all units.",
    )


METHOD = SearchMethod(
    section=KoskelaKulkarni,
    price=later("dpladder_papers.searches.koskela_kulkarni.search:price"),
    searcher=later("dpladder_papers.searches.koskela_kulkarni.search:Searcher"),
    attack={**SHORT_ATTACK, "apart": False},
)
