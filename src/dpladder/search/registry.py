"""The ways to search, by their sections of the config, and as they are compared. A new one is a module and a line here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpladder.config import searches
from dpladder.config.model import Fit
from dpladder.config.searches import DpHypo, KoskelaKulkarni, LiuTalwar, PapernotSteinke, PrivateSearch
from dpladder.search.adaptive import AdaptiveRuns
from dpladder.search.hpo import Method
from dpladder.search.ladder import Ladder
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


# Comparisons count no secret trainings, so these are not padded.
METHODS: dict[str, Method] = {
    "random_search": method_of(searches.RandomSearch()),
    "random_search_uniform": method_of(searches.RandomSearch(law="uniform")),
    "naive_composition": method_of(searches.NaiveComposition()),
    "papernot_steinke": method_of(PapernotSteinke(padded=False)),
    "papernot_steinke_poisson": method_of(PapernotSteinke(law="poisson", padded=False)),
    "liu_talwar": method_of(LiuTalwar(padded=False)),
    "koskela_kulkarni": method_of(KoskelaKulkarni(padded=False)),
    "koskela_kulkarni_all": method_of(KoskelaKulkarni(apart=False, padded=False)),
    "dp_hypo": method_of(DpHypo(padded=False)),
    "propose_test": method_of(searches.ProposeTest()),
    "linear_scaling_line": Ladder(draw="uniform", fit=Fit(using="best")),
    "linear_scaling_binary": Ladder(draw="binary", prior="proportional", fit=Fit(using="best")),
    "ladder": Ladder(),
}
