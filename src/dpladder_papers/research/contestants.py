"""The searches as comparisons enter them: at their defaults, and the ladder in its published
versions too.

The names are those that `research.searches` of a config may list, and that tables show. Which
searches of them fit the data is asked in jobs/compare_hpo.py.
"""

from __future__ import annotations

from dataclasses import replace

from dpladder.config.learners import Learner
from dpladder.config.sweep_sections import Fit
from dpladder.search.protocol import Searcher, Setting, searcher_of
from dpladder_papers.methods.hyfree_dp import HyperparameterFree
from dpladder_papers.research.contest import Competitor, Straight
from dpladder_papers.research.ladder import LadderSearcher
from dpladder_papers.searches.dp_hypo import DpHypo
from dpladder_papers.searches.koskela_kulkarni import KoskelaKulkarni
from dpladder_papers.searches.liu_talwar import LiuTalwar
from dpladder_papers.searches.naive_composition import NaiveComposition
from dpladder_papers.searches.papernot_steinke import PapernotSteinke
from dpladder_papers.searches.propose_test import ProposeTest
from dpladder_papers.searches.random_search import RandomSearch

HYPERPARAMETER_FREE = "hyperparameter_free"  # HyFreeDP, a learner that searches nothing
PUBLISHED = ((0.1, 3), (0.2, 3))
LINE = Fit(using="best", against="epsilon")

# Nothing is secret in public data, so none is padded.
# Padding hides from an onlooker's clock how often a private search trained.
METHODS: dict[str, Searcher] = {
    "random_search": searcher_of(RandomSearch()),
    "random_search_uniform": searcher_of(RandomSearch(law="uniform")),
    "naive_composition": searcher_of(NaiveComposition()),
    "papernot_steinke": searcher_of(PapernotSteinke(padded=False)),
    "papernot_steinke_poisson": searcher_of(PapernotSteinke(law="poisson", padded=False)),
    "liu_talwar": searcher_of(LiuTalwar(padded=False)),
    "koskela_kulkarni": searcher_of(KoskelaKulkarni(padded=False)),
    "koskela_kulkarni_all": searcher_of(KoskelaKulkarni(apart=False, padded=False)),
    "dp_hypo": searcher_of(DpHypo(padded=False)),
    "propose_test": searcher_of(ProposeTest()),
    "linear_scaling_line": LadderSearcher(PUBLISHED, LINE),
    "linear_scaling_binary": LadderSearcher(PUBLISHED, LINE),
    "four_decades": LadderSearcher(PUBLISHED, Fit(against="epsilon")),
    "prior": LadderSearcher(()),
    "ladder": LadderSearcher(),
    HYPERPARAMETER_FREE: Straight(),
}
# What published versions search is r itself, over four decades.
DECADES: dict[str, object] = {
    "unit": "r",
    "prior": "none",
    "eta": (0.01, 5.0),
    "steps": (5, 100),
    "decompose": "balanced",
}
# By name, what a published version changes in the section `sweep.search`.
SEARCHES: dict[str, dict[str, object]] = {
    "linear_scaling_line": DECADES | {"draw": "uniform", "decompose": "random"},
    "linear_scaling_binary": DECADES | {"draw": "binary", "prior": "proportional"},
    "four_decades": DECADES,
}


def entry(name: str, setting: Setting, learner: Learner) -> Competitor:
    """A way to search at its defaults, with the range of r that it was published with.

    Args:
        name: of METHODS. HYPERPARAMETER_FREE trains HyFreeDP, whatever `learner` is.
        setting: the total and the range; what was published with a range of its own has that one.
        learner: that is trained.
    """
    search = setting.search.model_copy(update=SEARCHES.get(name, {}))
    learner_of_entry = HyperparameterFree() if name == HYPERPARAMETER_FREE else learner
    return Competitor(name, METHODS[name], replace(setting, search=search), learner_of_entry)
