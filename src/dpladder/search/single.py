"""The two baselines that need no theorem: one random draw with the whole budget, and a budget split evenly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpladder.learn import score
from dpladder.privacy import gdp
from dpladder.privacy.meter import Draw, Meter
from dpladder.search.hpo import Ask, Asking, Declared, Found, Setting, Units, split
from dpladder.search.space import draw


@dataclass(frozen=True)
class RandomSearch:
    """One training at a random r. It looks at nothing, so its draw of r is public."""

    law: Literal["uniform", "log_uniform"]

    def declare(self, setting: Setting) -> Declared:
        return Declared(gdp.epsilon(setting.mu, setting.delta))

    def run(self, setting: Setting, meter: Meter, units: Units) -> Asking:
        search = setting.search.model_copy(update={"draw": self.law})
        r = draw(search, setting.epsilon, 0, 0)
        [answer] = yield [Ask(r, setting.mu)]
        return Found(r, setting.mu, answer.weights)


@dataclass(frozen=True)
class NaiveComposition:
    """`runs` trainings at mu / sqrt(runs) each, spread over the range; all could be published, the best one is."""

    runs: int = 5

    def declare(self, setting: Setting) -> Declared:
        scale = score.noise_scale(split(self._mu(setting))[1], setting.constants)
        spent = gdp.compose([self._mu(setting)] * self.runs)
        return Declared(gdp.epsilon(spent, setting.delta), (Draw("score", "gaussian", scale, (self.runs,)),))

    def run(self, setting: Setting, meter: Meter, units: Units) -> Asking:
        [noise] = self.declare(setting).draws
        search = setting.search.model_copy(update={"draw": "stratified"})
        mu, _ = split(self._mu(setting))
        asks = [Ask(draw(search, setting.epsilon, 0, run), mu) for run in range(self.runs)]
        answers = yield asks
        scores = meter.gaussian("score", noise.scale, noise.shape) + [answer.correct for answer in answers]
        best = int(np.argmax(scores))
        return Found(asks[best].r, mu, answers[best].weights)

    def _mu(self, setting: Setting) -> float:
        return setting.mu / math.sqrt(self.runs) * (1 - 1e-12)
