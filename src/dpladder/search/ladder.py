"""Linear scaling: rungs of cheap trials, and r carried along them to the final budget (Panda et al. 2024).

Every trial's weights and score could be published: all releases are Gaussian, and their mus add in squares. Nothing has
to stay secret, and finished trials serve any total. Assumes that the best r grows with the budget as the fit has it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dpladder.config.model import Fit, Search
from dpladder.learn import score
from dpladder.privacy import gdp
from dpladder.privacy.meter import Draw, Meter
from dpladder.privacy.spend import Counted, Gaussian
from dpladder.search.fit import fit_radius
from dpladder.search.hpo import SCORE_SHARE, Ask, Asking, Declared, Found, Setting, Units, split
from dpladder.search.select import best
from dpladder.search.space import draw
from dpladder.search.trial import Trial


@dataclass(frozen=True)
class Ladder:
    """`rungs`: each rung's epsilon per trial as a share of the total, and how many trials it has. `share`: of a trial's
    mu^2, for its score."""

    rungs: tuple[tuple[float, int], ...] = ((0.1, 3), (0.2, 3))
    draw: str = "stratified"
    prior: str = "none"
    fit: Fit = field(default_factory=Fit)
    share: float = SCORE_SHARE

    def declare(self, setting: Setting) -> Declared:
        trials = self._trials(setting)
        draws = (
            Draw(f"score {rung}", "gaussian", self._scale(setting, rung), (number,))
            for rung, (_, number) in enumerate(self.rungs)
        )
        events = (Counted(Gaussian(gdp.sigma(mu, 1))) for mu in (*trials, self._final(setting)))
        return Declared(tuple(events), tuple(draws))

    def run(self, setting: Setting, meter: Meter, units: Units) -> Asking:
        search = self._search(setting)
        trials: list[Trial] = []
        for rung, (share, number) in enumerate(self.rungs):
            epsilon = share * setting.epsilon
            mu, _ = split(self._mu(setting, rung), self.share)
            below = [trial for trial in trials if trial.rung == rung - 1]
            before = best(below) if below else None
            places = [draw(search, epsilon, rung, trial, before) for trial in range(number)]
            answers = yield [Ask(r, mu) for r in places]
            sd = self._scale(setting, rung)
            noise = meter.gaussian(f"score {rung}", sd, (number,))
            trials += [
                Trial(rung, trial, epsilon, mu, r, answer.correct + noise[trial], sd, setting.constants.n0)
                for trial, (r, answer) in enumerate(zip(places, answers, strict=True))
            ]
        final = self._final(setting)
        fitted = fit_radius(trials, gdp.epsilon(final, setting.delta), final, search, self.fit)
        [answer] = yield [Ask(fitted.r_star, final)]
        return Found(fitted.r_star, final, answer.weights)

    def _search(self, setting: Setting) -> Search:
        return setting.search.model_copy(update={"draw": self.draw, "prior": self.prior})

    def _mu(self, setting: Setting, rung: int) -> float:
        return gdp.mu(self.rungs[rung][0] * setting.epsilon, setting.delta)

    def _scale(self, setting: Setting, rung: int) -> float:
        return score.noise_scale(split(self._mu(setting, rung), self.share)[1], setting.constants)

    def _trials(self, setting: Setting) -> list[float]:
        return [self._mu(setting, rung) for rung, (_, number) in enumerate(self.rungs) for _ in range(number)]

    def _final(self, setting: Setting) -> float:
        return gdp.remaining(setting.mu, self._trials(setting))
