"""The ways to search as comparisons enter them: at their defaults, and the ladder in its published versions too."""

from __future__ import annotations

from dpladder.config import searches
from dpladder.config.model import Fit
from dpladder.config.searches import DpHypo, KoskelaKulkarni, LiuTalwar, PapernotSteinke
from dpladder.search.hpo import Method
from dpladder.search.ladder import Ladder
from dpladder.search.registry import method_of

# Nothing is secret in public data, so none is padded.
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
