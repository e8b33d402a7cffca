"""One training at a random r."""

from dpladder.config.method import SearchMethod, later
from dpladder_papers.searches.random_search.section import RandomSearch

METHOD = SearchMethod(
    section=RandomSearch,
    price=later("dpladder_papers.searches.random_search.cost:price"),
    searcher=later("dpladder_papers.searches.random_search.search:Searcher"),
    scored=False,
)
