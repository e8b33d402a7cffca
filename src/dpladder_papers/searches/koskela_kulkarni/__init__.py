"""Private selection on a secret random subset (Koskela & Kulkarni)."""

from dpladder.config.method import SearchMethod, later
from dpladder_papers.searches.koskela_kulkarni.section import KoskelaKulkarni
from dpladder_papers.searches.sections import SHORT_ATTACK

METHOD = SearchMethod(
    section=KoskelaKulkarni,
    price=later("dpladder_papers.searches.koskela_kulkarni.cost:price"),
    searcher=later("dpladder_papers.searches.koskela_kulkarni.search:Searcher"),
    attack={**SHORT_ATTACK, "apart": False},
)
