"""Searches of kappa, clip and batch together, on public data: what of them is worth trials of
networks (Rehn et al. 2025, arXiv 2510.20616, ask how clip and batch go with the total).

A place has the clip and the sampling rate of one of a few learners, and a kappa. Learners are few,
and all take equally many steps. So the noise of a sampled training, which takes seconds to find, is
found once for each learner and mu, and remembered.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from itertools import product

import numpy as np

from dpladder.config.learners import Learner
from dpladder.learn.interface import Declaration
from dpladder.methods.dp_finetune import FineTune
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.booking import FINAL, Entry, delta0_of, largest_mu
from dpladder.privacy.accounting.events import Counted, Gaussian
from dpladder.privacy.release.meter import Meter
from dpladder.search.protocol import (
    Ask,
    Asking,
    SearchOutcome,
    Setting,
    Units,
    scores,
    split_mu,
    trainings,
)
from dpladder.search.space import Space


def learner_variants(
    learner: FineTune, clips: tuple[float, ...], rates: tuple[float, ...]
) -> list[Learner]:
    """The learner at each clip and each sampling rate, the candidates of `Joint`.

    Args:
        learner: a network's, which has both keys.
        clips: bounds on each record's gradient.
        rates: shares of the records at a step; 1 is the full batch.
    """
    return [
        learner.model_copy(update={"clip": clip, "sampling_rate": rate})
        for clip, rate in product(clips, rates)
    ]


def total_beside(epsilon: float, delta: float, number: int) -> float:
    """The epsilon that is left to the Gaussians of some trainings, each of which may sample and is
    then booked at its part of delta.

    Args:
        epsilon: the total of all of them together, at `delta`.
        delta: the lineage's.
        number: of trainings, the final one included.
    """
    mu = largest_mu(epsilon, delta, Entry(delta0=number * delta0_of(delta, FINAL)))
    return gdp.epsilon(mu, delta)


@dataclass(frozen=True)
class Joint:
    """Search kappa, clip and batch together: a few cheap trainings at random places, and one more
    at the best of them.

    Guarantee: mu-GDP for the whole mu of the total: trials, scores and the final training are
    Gaussian, and their mus add in squares. A learner that samples is booked at delta0 beside it;
    `total_beside` takes that off the total before.

    Attributes:
        learners: that a place may have (`learner_variants`).
        number: of trials, all at equal mu. 0 is one training at a random place, with the whole mu.
        part: of mu^2, that all trials with their scores take together.
    """

    learners: tuple[Learner, ...]
    number: int = 4
    part: float = 0.4

    def declare(self, setting: Setting) -> Declaration:
        """Trials with their scores at equal mus, and the final training with what is left."""
        trial, final = self._mus(setting)
        draws = [trainings(final, name="final")]
        if self.number:
            trained, scored = split_mu(trial, setting.share)
            draws.append(trainings(trained, self.number))
            draws.append(scores(scored, self.number, setting.constants))
        mus = (*[trial] * self.number, final)
        return Declaration(tuple(Counted(Gaussian(gdp.sigma(mu, 1))) for mu in mus), tuple(draws))

    def run(self, setting: Setting, meter: Meter, units: Units) -> Asking:
        """Trials at public places, their noised counts, and one more training at the best place.

        Args:
            setting: the total, the range and the seed of the public places.
            meter: publishes the noised counts of right answers, by which the best place is chosen.
            units: unused, for every trial trains on all records.
        """
        trial, final = self._mus(setting)
        best = 0
        if self.number:
            trained, _ = split_mu(trial, setting.share)
            places = range(self.number)
            answers = yield [self._ask(setting, place, trained, "trainings") for place in places]
            best = int(np.argmax(meter.publish("score", [answer.correct for answer in answers])))
        last = self._ask(setting, best, final, "final")
        [answer] = yield [last]
        return SearchOutcome(last.r, final, answer.weights)

    def _mus(self, setting: Setting) -> tuple[float, float]:
        """The mu of a trial with its score, and of the final training."""
        if not self.number:
            return 0.0, setting.mu
        trial = setting.mu * math.sqrt(self.part / self.number)
        return trial, gdp.remaining(setting.mu, [trial] * self.number)

    def _ask(self, setting: Setting, place: int, mu: float, within: str) -> Ask:
        """The training at a place. Its learner and its kappa are two public numbers of the place
        alone, kappa log-uniform over its range. So the final training at the same place has the
        same kappa, though its mu is another one: the best kappa hardly depends on mu."""
        which, where = (
            _public_uniform(setting.search.seed, place, axis) for axis in ("learner", "kappa")
        )
        learner = self.learners[int(which * len(self.learners))]
        space = Space(setting.search, learner, setting.constants)
        low, high = space.range()
        sampled = learner.sampling < 1.0
        delta0 = delta0_of(setting.delta, FINAL) if sampled else 0.0
        r = space.r(low * (high / low) ** where, mu)
        return Ask(r, mu, within=within, learner=learner, delta0=delta0)


def _public_uniform(*place: object) -> float:
    """A number from 0 to 1 that follows from its arguments. It has 48 bits, which a double holds
    exactly."""
    digest = hashlib.sha256(repr(("joint", *place)).encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2.0**48
