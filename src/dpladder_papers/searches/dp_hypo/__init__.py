"""Private selection whose runs look where earlier ones did well (Wang et al., DP-HyPO)."""

from dpladder.config.method import SearchMethod, later
from dpladder_papers.searches.dp_hypo.section import DpHypo
from dpladder_papers.searches.sections import SHORT_ATTACK

METHOD = SearchMethod(
    section=DpHypo,
    price=later("dpladder_papers.searches.dp_hypo.cost:price"),
    searcher=later("dpladder_papers.searches.dp_hypo.search:Searcher"),
    attack=SHORT_ATTACK,
)
