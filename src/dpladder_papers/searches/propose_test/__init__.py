"""Candidates tested on disjoint parts (Ding & Wu)."""

from dpladder.config.method import SearchMethod, later
from dpladder_papers.searches.propose_test.section import ProposeTest

METHOD = SearchMethod(
    section=ProposeTest,
    price=later("dpladder_papers.searches.propose_test.cost:price"),
    searcher=later("dpladder_papers.searches.propose_test.search:Searcher"),
    attack={"parts": 2, "candidates": 2},
    scored=False,
)
