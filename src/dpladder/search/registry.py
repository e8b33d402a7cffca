"""The ways to search, by their sections of the config, which name their modules. A new one is a module and a line here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpladder.config import searches
from dpladder.config.searches import DpHypo, KoskelaKulkarni, LiuTalwar, PapernotSteinke, PrivateSearch
from dpladder.search.adaptive import AdaptiveRuns
from dpladder.search.hpo import Method
from dpladder.search.propose_test import DoublingTests
from dpladder.search.repeat import RandomRuns
from dpladder.search.single import NaiveComposition, RandomSearch
from dpladder.search.subset import SubsetRuns

WAYS: dict[type[PrivateSearch], Callable[[Any], Method]] = {
    searches.RandomSearch: RandomSearch,
    searches.NaiveComposition: NaiveComposition,
    PapernotSteinke: RandomRuns,
    LiuTalwar: RandomRuns,
    DpHypo: AdaptiveRuns,
    KoskelaKulkarni: SubsetRuns,
    searches.ProposeTest: DoublingTests,
}


def method_of(section: PrivateSearch) -> Method:
    """The search that a section of the config describes."""
    return WAYS[type(section)](section)
