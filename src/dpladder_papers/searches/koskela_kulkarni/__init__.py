"""Private selection on a secret random subset (Koskela & Kulkarni)."""

from dpladder.config.method import SearchMethod, later
from dpladder.config.search_sections import FEW
from dpladder_papers.searches.koskela_kulkarni.section import KoskelaKulkarni

METHOD = SearchMethod(
    section=KoskelaKulkarni,
    price=later("dpladder_papers.searches.koskela_kulkarni.cost:price"),
    searcher=later("dpladder_papers.searches.koskela_kulkarni.search:Searcher"),
    attack={**FEW, "apart": False},
)
