"""Runs until a coin says stop (Liu & Talwar)."""

from dpladder.config.method import SearchMethod, later
from dpladder.config.search_sections import FEW
from dpladder.searches.liu_talwar.section import LiuTalwar

METHOD = SearchMethod(
    section=LiuTalwar,
    price=later("dpladder.search.selection_cost:price"),
    searcher=later("dpladder.search.secret_runs:Searcher"),
    attack=FEW,
)
