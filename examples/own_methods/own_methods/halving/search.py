"""Successive halving (Jamieson & Talwalkar 2016), paid for by plain composition."""

import math
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
from own_methods.halving import Halving


def price(search: Halving, epsilon: float, delta: float, relation: Relation) -> tuple[Counted, ...]:
    """Every round costs the same, for it has half of the last one's trainings at twice its mu
    squared. The last comes first: its model is put out."""
    mu = gdp.mu_from_epsilon(epsilon, delta)
    runs = [2**number for number in range(search.rounds)]
    each = [mu / math.sqrt(search.rounds * count) for count in runs]
    return tuple(
        Counted(Gaussian(gdp.sigma(one, 1)), count) for one, count in zip(each, runs, strict=True)
    )


@dataclass(frozen=True)
class Searcher:
    section: Halving

    def declare(self, setting: Setting) -> Declaration:
        """Of each round, noise for its trainings and for their scores; the last one scores
        nothing."""
        events = events_of(self.section, setting)
        draws = [trainings(mu_of(events[0].event), 1, _trained(1))]
        for count, (trained, scored) in _rounds(events, setting):
            draws += [
                trainings(trained, count, _trained(count)),
                scores(scored, count, setting.constants, _scored(count)),
            ]
        return Declaration(events, tuple(draws))

    def run(self, setting: Setting, meter: Meter, units: Units) -> Asking:
        events = self.declare(setting).events
        final = mu_of(events[0].event)
        space, many = setting.space_of(draw="stratified", prior="none"), events[-1].count
        rates = [draw(space, final, setting.epsilon, 0, run)[1] for run in range(many)]
        for count, (mu, _) in _rounds(events, setting):
            answers = yield [Ask(r, mu, within=_trained(count)) for r in rates]
            noised = meter.publish(_scored(count), [answer.correct for answer in answers])
            rates = [rates[place] for place in np.argsort(noised)[::-1][: count // 2]]
        [answer] = yield [Ask(rates[0], final, within=_trained(1))]
        return SearchOutcome(rates[0], final, answer.weights)


def _rounds(events: tuple[Counted, ...], setting: Setting) -> list[tuple[int, tuple[float, float]]]:
    """All rounds but the last: how many trainings, and a training's mu for weights and score."""
    return [
        (event.count, split_mu(mu_of(event.event), setting.share)) for event in reversed(events[1:])
    ]


def _trained(count: int) -> str:
    return f"trainings-{count}"


def _scored(count: int) -> str:
    return f"score-{count}"
