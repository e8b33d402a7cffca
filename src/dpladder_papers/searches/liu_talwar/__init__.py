"""Runs until a coin says stop (Liu & Talwar)."""

from dpladder.config.method import SearchMethod, later
from dpladder_papers.searches.liu_talwar.section import LiuTalwar
from dpladder_papers.searches.sections import SHORT_ATTACK

METHOD = SearchMethod(
    section=LiuTalwar,
    price=later("dpladder_papers.searches.selection_cost:price"),
    searcher=later("dpladder_papers.searches.secret_runs:Searcher"),
    attack=SHORT_ATTACK,
)
