"""What koskela_kulkarni spends of a total."""

from __future__ import annotations

from dpladder.errors import Refused
from dpladder.privacy.accounting import booking, gdp, selection
from dpladder.privacy.accounting.events import (
    Counted,
    Gaussian,
    Relation,
    RepeatAndSelect,
    SubsetSelect,
)
from dpladder_papers.searches.koskela_kulkarni.section import KoskelaKulkarni
from dpladder_papers.searches.selection_cost import epsilon_alone, runs_of


def price(
    search: KoskelaKulkarni, epsilon: float, delta: float, relation: Relation
) -> tuple[Counted, ...]:
    """Every run costs as much as the final training, the same noise relative to its own sum.

    Args:
        search: its section in the config.
        epsilon: the total, final weights included.
        delta: the lineage's.
        relation: add_remove.

    Returns:
        One event: the selection on a subset, and the final training.

    Raises:
        Refused: under replace_one, for which there is no bound.
    """
    if relation != "add_remove":
        raise Refused(
            "tuning on a random subset is bounded under add_remove alone, and the lineage's "
            f"relation is {relation}. Choose another way to search."
        )
    runs = runs_of(search)
    limit = selection.largest_count(runs)
    delta0 = booking.delta0_of(delta, booking.FINAL)

    def event(mu: float) -> SubsetSelect:
        one = Gaussian(gdp.sigma(mu, 1))
        tuning = RepeatAndSelect(one, runs.mean, runs.shape, limit)
        return SubsetSelect(search.share, tuning, one, search.apart, delta0)

    most = selection.largest(
        lambda mu: epsilon_alone(event(mu), delta),
        epsilon,
        gdp.mu_from_epsilon(epsilon, delta),
        1e-6,
    )
    return (Counted(event(most)),)
