"""Trainings of equal budgets, of which the best is put out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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
    scores,
    split_mu,
    trainings,
)
from dpladder.search.space import draw
from dpladder_papers.searches.naive_composition import NaiveComposition


def price(
    search: NaiveComposition, epsilon: float, delta: float, relation: Relation
) -> tuple[Counted, ...]:
    """Trainings of equal mu, whose squares add up to the total's."""
    sigma = gdp.sigma(gdp.mu_from_epsilon(epsilon, delta), search.runs)
    return (Counted(Gaussian(sigma), search.runs),)


@dataclass(frozen=True)
class Searcher:
    """Trainings at mu / sqrt(runs) each, spread over the range; all could be published, the best
    one is.

    Guarantee: that of all trainings and scores together, as Gaussians compose. So nothing about
    runs has to stay secret.
    """

    section: NaiveComposition

    def declare(self, setting: Setting) -> Declaration:
        """A score and a training for each run; their costs add up."""
        [training] = events = events_of(self.section, setting)
        trained, scored = split_mu(mu_of(training.event), setting.share)
        runs = self.section.runs
        return Declaration(
            events, (scores(scored, runs, setting.constants), trainings(trained, runs))
        )

    def run(self, setting: Setting, meter: Meter, units: Units) -> Asking:
        """Train all runs side by side, and put out the one with the highest noised count."""
        [training] = self.declare(setting).events
        space = setting.space_of(draw="stratified", prior="none")
        mu, _ = split_mu(mu_of(training.event), setting.share)
        places = [draw(space, mu, setting.epsilon, 0, run) for run in range(self.section.runs)]
        asks = [Ask(r, mu) for _, r in places]
        answers = yield asks
        best = int(np.argmax(meter.publish("score", [answer.correct for answer in answers])))
        return SearchOutcome(asks[best].r, mu, answers[best].weights)
