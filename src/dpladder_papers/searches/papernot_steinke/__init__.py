"""The best of a secret, random number of runs (Papernot & Steinke)."""

from dpladder.config.method import SearchMethod, later
from dpladder_papers.searches.papernot_steinke.section import PapernotSteinke
from dpladder_papers.searches.sections import SHORT_ATTACK

METHOD = SearchMethod(
    section=PapernotSteinke,
    price=later("dpladder_papers.searches.selection_cost:price"),
    searcher=later("dpladder_papers.searches.secret_runs:Searcher"),
    attack=SHORT_ATTACK,
)
