"""Private selection on a random subset, the final training on the rest or on everything (Koskela &
Kulkarni 2023).

Assumes add_remove, that the subset stays secret, and what private selection assumes. The best r
grows in proportion to the number of records, as a sum's signal does beside its noise. So the
winner's r is scaled by the ratio of sizes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpladder.errors import Refused
from dpladder.learn.interface import Declaration
from dpladder.privacy.accounting import booking, gdp, selection
from dpladder.privacy.accounting.events import (
    Counted,
    Gaussian,
    Relation,
    RepeatAndSelect,
    SubsetSelect,
)
from dpladder.privacy.release.meter import Draw, Meter
from dpladder.search.protocol import (
    Ask,
    Asking,
    SearchOutcome,
    Setting,
    Units,
    events_of,
    mu_of,
    spread_r,
    trainings,
)
from dpladder_papers.searches.koskela_kulkarni import KoskelaKulkarni
from dpladder_papers.searches.secret_runs import best, budget, draw_run_count, draws
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


@dataclass(frozen=True)
class Searcher:
    """A selection on a secret subset, and a final training at the winner's r.

    Guarantee: that of `SubsetSelect` (privacy/accounting/subset.py), under add_remove. With
    `section.apart` the final training sees the rest alone (variant 1), else everything (variant 2).
    """

    section: KoskelaKulkarni

    def declare(self, setting: Setting) -> Declaration:
        """The selection's draws for the longest selection there may be, a mask for the subset, and
        the final training's."""
        events = events_of(self.section, setting)
        selected = _selected_event(events)
        plan = budget(selected.tuning, setting)
        return Declaration(
            events,
            (
                Draw("subset", "mask", self.section.share),
                *draws(plan),
                trainings(mu_of(selected.final), name="final"),
            ),
        )

    def run(self, setting: Setting, meter: Meter, units: Units) -> Asking:
        """Select on the subset, then train at the winner's r on what the final training may see."""
        selected = _selected_event(self.declare(setting).events)
        plan = budget(selected.tuning, setting)
        mu = mu_of(selected.final)
        share = selected.probability
        subset = meter.mask("subset", units)
        chance = draw_run_count(plan, self.section.padded, meter)
        rest = 1 - share if selected.apart else 1.0
        finals = [spread_r(place, setting.space, mu) for place in chance.places]
        smaller = [setting.space.clamp(r * share / rest) for r in finals]
        asks = [Ask(r, plan.weights, subset, subset, share) for r in smaller]
        answers = (yield asks) if asks else []
        won = best(
            [replace(ask, r=r) for ask, r in zip(asks, finals, strict=True)],
            answers,
            chance,
            setting,
        )
        [answer] = yield [Ask(won.r, mu, ~subset if selected.apart else None, None, rest, "final")]
        return SearchOutcome(won.r, mu, answer.weights)


def _selected_event(events: tuple[Counted, ...]) -> SubsetSelect:
    """The one event of the whole search."""
    [selected] = events
    assert isinstance(selected.event, SubsetSelect)
    return selected.event
