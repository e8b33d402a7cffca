"""Linear scaling: rungs of cheap trials, and r carried along them to the final budget (Panda et al.
2024).

Every trial's weights and score could be published: all releases are Gaussian, and their mus add in
squares. Nothing has to stay secret, and finished trials serve any total. Assumes that the best r
grows with the budget as the fit has it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from dpladder.config.sweep_sections import Fit
from dpladder.errors import BadInput
from dpladder.learn import score
from dpladder.learn.interface import Declaration
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.events import Counted, Gaussian
from dpladder.privacy.release.meter import Meter
from dpladder.search import sweep_value
from dpladder.search.fit import Target, fit_radius
from dpladder.search.protocol import (
    SCORE_SHARE,
    Ask,
    Asking,
    SearchOutcome,
    Setting,
    Units,
    scores,
    split_mu,
    trainings,
)
from dpladder.search.space import draw
from dpladder.search.trial import Trial, best


@dataclass(frozen=True)
class LadderSearcher:
    """Search by rungs of cheap trials, and carry r along them to the final training.

    Guarantee: mu-GDP for the whole mu of the setting. Trials, their scores and the final training
    are Gaussian, so that mu^2 = sum of all mus squared, whatever later rungs make of earlier
    scores.

    Attributes:
        rungs: for each rung the epsilon of a trial as a share of the total, and how many trials it
            has. None: what pays on public data of this strength (search/sweep_value.py), which may
            be no trial at all.
        fit: how r at the final mu follows from the trials (search/fit.py).
        share: of a trial's mu^2, for its score.
    """

    rungs: tuple[tuple[float, int], ...] | None = None
    fit: Fit = field(default_factory=Fit)
    share: float = SCORE_SHARE

    def declare(self, setting: Setting) -> Declaration:
        """Each rung's trials and scores, and the final training with what is left of mu.

        Raises:
            BadInput: the trials use all of the total up.
        """
        climbed = self._ladder_of(setting)
        if not climbed.final:
            shares = ", ".join(f"{share:g}" for share, _ in self.rungs or ())
            raise BadInput(
                f"the ladder's trials, at {shares} of epsilon = {setting.epsilon:g}, use all of it "
                f"up at delta = {setting.delta:g}. Give rungs smaller shares or fewer trials, or "
                "set a smaller delta."
            )
        draws = [trainings(climbed.final, name="final")]
        for rung, (mu, number) in enumerate(climbed.rungs):
            trained, scored = split_mu(mu, climbed.share)
            draws.append(scores(scored, number, setting.constants, f"score {rung}"))
            draws.append(trainings(trained, number, f"rung {rung}"))
        events = (Counted(Gaussian(gdp.sigma(mu, 1))) for mu in (*climbed.trials, climbed.final))
        return Declaration(tuple(events), tuple(draws))

    def leaves_enough(self, setting: Setting) -> bool:
        """Whether its trials leave anything for a final training."""
        return self._ladder_of(setting).final > 0

    def run(self, setting: Setting, meter: Meter, units: Units) -> Asking:
        """A rung after the other: its trials see the best of the rung below, and the fit sees all
        scores.

        Args:
            setting: the total, the range and the public facts of the data.
            meter: publishes the noised counts that rank trials.
            units: unused, for every trial trains on all records.
        """
        space, climbed = setting.space, self._ladder_of(setting)
        trials: list[Trial] = []
        for rung, (total, number) in enumerate(climbed.rungs):
            epsilon = gdp.epsilon(total, setting.delta)
            mu, scored = split_mu(total, climbed.share)
            below = [trial for trial in trials if trial.rung == rung - 1]
            before = best(below) if below else None
            places = [draw(space, mu, epsilon, rung, trial, before) for trial in range(number)]
            answers = yield [Ask(r, mu, within=f"rung {rung}") for _, r in places]
            sd = score.count_at(scored).scale(setting.constants)
            noised = meter.publish(f"score {rung}", [answer.correct for answer in answers])
            trials += [
                Trial(rung, trial, epsilon, mu, kappa, r, reply, sd, setting.constants.n0)
                for trial, ((kappa, r), reply) in enumerate(
                    zip(places, noised.tolist(), strict=True)
                )
            ]
        final = climbed.final
        fitted = fit_radius(
            trials, Target(gdp.epsilon(final, setting.delta), final, space), self.fit
        )
        [answer] = yield [Ask(fitted.r_star, final, within="final")]
        return SearchOutcome(fitted.r_star, final, answer.weights)

    def _ladder_of(self, setting: Setting) -> Climbed:
        """The ladder in mus. A rung that is given is a share of epsilon, and one that is bought a
        share of mu^2."""
        if self.rungs is None:
            bought = sweep_value.best_ladder(setting.strength, setting.centred)
            rungs = tuple((math.sqrt(rung.part) * setting.mu, rung.trials) for rung in bought.rungs)
            return Climbed(rungs, bought.share, setting.mu)
        own_rungs = (
            (gdp.mu_from_epsilon(share * setting.epsilon, setting.delta), number)
            for share, number in self.rungs
        )
        return Climbed(tuple(own_rungs), self.share, setting.mu)


@dataclass(frozen=True)
class Climbed:
    """A ladder at a total.

    Attributes:
        rungs: for each rung the mu of one trial, its score included, and how many trials it has.
        share: of a trial's mu^2, for its score.
        total: mu of the whole search.
    """

    rungs: tuple[tuple[float, int], ...]
    share: float
    total: float

    @property
    def trials(self) -> list[float]:
        """The mu of each trial of all rungs."""
        return [mu for mu, number in self.rungs for _ in range(number)]

    @property
    def final(self) -> float:
        """The mu that trials leave for the final training; 0 where they leave nothing."""
        return gdp.remaining(self.total, self.trials)
