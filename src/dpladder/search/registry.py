"""The ways to search, by name. A new one is a module and a line here."""

from __future__ import annotations

import math

from dpladder.config.model import Fit
from dpladder.errors import BadInput
from dpladder.privacy.selection import Runs
from dpladder.search.adaptive import AdaptiveRuns
from dpladder.search.hpo import Method
from dpladder.search.ladder import Ladder
from dpladder.search.propose_test import ProposeTest
from dpladder.search.repeat import RandomRuns
from dpladder.search.single import NaiveComposition, RandomSearch
from dpladder.search.subset import SubsetRuns

METHODS: dict[str, Method] = {
    "random_search": RandomSearch("log_uniform"),
    "random_search_uniform": RandomSearch("uniform"),
    "naive_composition": NaiveComposition(),
    "papernot_steinke": RandomRuns(Runs(10.0, 0.0)),
    "papernot_steinke_poisson": RandomRuns(Runs(10.0, math.inf)),
    "liu_talwar": RandomRuns(Runs(10.0, 1.0)),
    "koskela_kulkarni": SubsetRuns(Runs(10.0, 1.0), apart=True),
    "koskela_kulkarni_all": SubsetRuns(Runs(10.0, 1.0), apart=False),
    "dp_hypo": AdaptiveRuns(Runs(10.0, 1.0)),
    "propose_test": ProposeTest(),
    "linear_scaling_line": Ladder(draw="uniform", fit=Fit(using="best")),
    "linear_scaling_binary": Ladder(draw="binary", prior="proportional", fit=Fit(using="best")),
    "ladder": Ladder(),
}


def method(name: str) -> Method:
    if name not in METHODS:
        raise BadInput(f"{name} is no way to search. Choose one of: {', '.join(METHODS)}.")
    return METHODS[name]
