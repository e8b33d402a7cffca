"""A single training at a random r, with the whole budget."""

from __future__ import annotations

from dataclasses import dataclass

from dpladder.learn.interface import Declaration
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.events import Counted, Gaussian, Relation
from dpladder.privacy.release.meter import Meter
from dpladder.search.protocol import (
    Ask,
    Asking,
    SearchOutcome,
    Setting,
    Units,
    events_of,
    mu_of,
    trainings,
)
from dpladder.search.space import draw
from dpladder_papers.searches.random_search import RandomSearch


def price(
    search: RandomSearch, epsilon: float, delta: float, relation: Relation
) -> tuple[Counted, ...]:
    """The whole total, on one training."""
    return (Counted(Gaussian(gdp.sigma(gdp.mu_from_epsilon(epsilon, delta), 1))),)


@dataclass(frozen=True)
class Searcher:
    """One training at a random r. It looks at nothing, so its draw of r is public.

    Guarantee: that of the training, which takes the whole total.
    """

    section: RandomSearch

    def declare(self, setting: Setting) -> Declaration:
        """One training at the whole total."""
        [training] = events = events_of(self.section, setting)
        return Declaration(events, (trainings(mu_of(training.event)),))

    def run(self, setting: Setting, meter: Meter, units: Units) -> Asking:
        """Train once, at an r that everybody can draw."""
        [training] = self.declare(setting).events
        space, mu = setting.space_of(draw=self.section.law), mu_of(training.event)
        _, r = draw(space, mu, setting.epsilon, 0, 0)
        [answer] = yield [Ask(r, mu)]
        return SearchOutcome(r, mu, answer.weights)
