"""The two baselines that need no theorem: one random draw with the whole budget, and a budget split evenly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpladder.config import searches
from dpladder.learn import score
from dpladder.privacy.meter import Draw, Meter
from dpladder.search.hpo import Ask, Asking, Declared, Found, Setting, Units, events_of, mu_of, split
from dpladder.search.space import draw


@dataclass(frozen=True)
class RandomSearch:
    """One training at a random r. It looks at nothing, so its draw of r is public."""

    section: searches.RandomSearch

    def declare(self, setting: Setting) -> Declared:
        return Declared(events_of(self.section, setting))

    def run(self, setting: Setting, meter: Meter, units: Units) -> Asking:
        [training] = self.declare(setting).events
        search = setting.search.model_copy(update={"draw": self.section.law})
        r, mu = draw(search, setting.epsilon, 0, 0), mu_of(training.event)
        [answer] = yield [Ask(r, mu)]
        return Found(r, mu, answer.weights)


@dataclass(frozen=True)
class NaiveComposition:
    """Trainings at mu / sqrt(runs) each, spread over the range; all could be published, the best one is."""

    section: searches.NaiveComposition

    def declare(self, setting: Setting) -> Declared:
        [training] = events = events_of(self.section, setting)
        _, scored = split(mu_of(training.event), setting.share)
        scale = score.noise_scale(scored, setting.constants)
        return Declared(events, (Draw("score", "gaussian", scale, (self.section.runs,)),))

    def run(self, setting: Setting, meter: Meter, units: Units) -> Asking:
        declared = self.declare(setting)
        [training], [noise] = declared.events, declared.draws
        search = setting.search.model_copy(update={"draw": "stratified"})
        mu, _ = split(mu_of(training.event), setting.share)
        asks = [Ask(draw(search, setting.epsilon, 0, run), mu) for run in range(self.section.runs)]
        answers = yield asks
        scores = meter.gaussian("score", noise.scale, noise.shape) + [answer.correct for answer in answers]
        best = int(np.argmax(scores))
        return Found(asks[best].r, mu, answers[best].weights)
