"""One training at a random r."""

from dpladder.config.method import SearchMethod, later
from dpladder.searches.random_search.section import RandomSearch

METHOD = SearchMethod(
    section=RandomSearch,
    price=later("dpladder.searches.random_search.cost:price"),
    searcher=later("dpladder.searches.random_search.search:Searcher"),
    scored=False,
)
