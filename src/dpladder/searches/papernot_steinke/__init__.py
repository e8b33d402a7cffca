"""The best of a secret, random number of runs (Papernot & Steinke)."""

from dpladder.config.method import SearchMethod, later
from dpladder.config.search_sections import FEW
from dpladder.searches.papernot_steinke.section import PapernotSteinke

METHOD = SearchMethod(
    section=PapernotSteinke,
    price=later("dpladder.search.selection_cost:price"),
    searcher=later("dpladder.search.secret_runs:Searcher"),
    attack=FEW,
)
