"""Trainings of equal budgets, of which the best is put out."""

from dpladder.config.method import SearchMethod, later
from dpladder_papers.searches.naive_composition.section import NaiveComposition

METHOD = SearchMethod(
    section=NaiveComposition,
    price=later("dpladder_papers.searches.naive_composition.cost:price"),
    searcher=later("dpladder_papers.searches.naive_composition.search:Searcher"),
    attack={"runs": 3},
)
