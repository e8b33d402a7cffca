"""Successive halving (Jamieson & Talwalkar 2016), paid for by plain composition."""

from dpladder.config.method import SearchMethod, later
from own_methods.halving.section import Halving

METHOD = SearchMethod(
    section=Halving,
    price=later("own_methods.halving.cost:price"),
    searcher=later("own_methods.halving.search:Searcher"),
    scored=False,
    attack={"rounds": 2},
)
