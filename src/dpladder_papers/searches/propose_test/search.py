"""Propose, test, and double the step (Ding & Wu 2022): AboveThreshold over models of disjoint parts
of the data.

Every candidate trains on each of `parts` random parts, and its utility is the mean accuracy over
parts on records set aside. One record moves one part's model, or one record of those set aside: the
utility moves by 1/parts. A round asks by AboveThreshold (Dwork & Roth 2014, Algorithm 1) for a
candidate that beats the level by the step. A hit raises the level and doubles the step, a miss
resets the step, a miss of the smallest step ends. The published bound counts the rounds that were
used, which depends on the data. Here the most that can be is charged, and a cap enforces it.

A round's noise on the mean is about 4 / (parts * epsilon0). Unless parts * epsilon0 is some 100, it
drowns the utilities and the choice is a guess.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpladder.errors import Refused
from dpladder.learn.interface import Constants, Declaration
from dpladder.learn.queries import Query
from dpladder.privacy.accounting import booking, gdp, selection
from dpladder.privacy.accounting.booking import Entry
from dpladder.privacy.accounting.events import Booked, Counted, Exponential, Gaussian, Relation
from dpladder.privacy.arrays import Floats
from dpladder.privacy.release.meter import Draw, Meter
from dpladder.search.protocol import (
    Ask,
    Asking,
    Mask,
    SearchOutcome,
    Setting,
    Units,
    events_of,
    mu_of,
    trainings,
)
from dpladder.search.space import draw
from dpladder_papers.searches.propose_test import ProposeTest


def price(
    search: ProposeTest, epsilon: float, delta: float, relation: Relation
) -> tuple[Counted, ...]:
    """A share of mu^2 for the final training, the rest for as many rounds of tests as there can be.

    Args:
        search: its section in the config.
        epsilon: the total, final weights included.
        delta: the lineage's.
        relation: what neighbours are.

    Returns:
        The final training's event, and that of all rounds. These are pure DP, and booked as the
        Gaussian that dominates them.
    """
    rounds, delta0 = rounds_of(search), booking.delta0_of(delta, booking.FINAL)
    whole = booking.largest_mu(epsilon, delta, Entry(delta0=delta0))
    final = math.sqrt(search.final) * whole
    tests = gdp.remaining(whole, [final])

    def booked(epsilon0: float) -> Booked:
        return Booked((Counted(Exponential(epsilon0), rounds),), delta0)

    def cost(epsilon0: float) -> float:
        try:
            return booking.price(booked(epsilon0), relation).mu
        except Refused:  # no Gaussian dominates that many rounds: a smaller epsilon is looked for
            return math.inf

    epsilon0 = selection.largest(cost, tests, 2 * gdp.pure_of_mu(tests), 1e-7)
    return Counted(Gaussian(gdp.sigma(final, 1))), Counted(booked(epsilon0))


def rounds_of(search: ProposeTest) -> int:
    """The most there can be: every hit gains a step, and between two hits one miss at most (Ding &
    Wu, section 4). Counted from a level of 0, whatever the classes."""
    return 2 * math.ceil(1 / search.step) - 1


@dataclass(frozen=True)
class Searcher:
    """Candidates that are tested on parts, and the final training at the last one that passed.

    Guarantee: each round is epsilon0-DP (Dwork & Roth 2014, Theorem 3.23). As many rounds are
    charged as there may ever be, and the final training is a Gaussian beside them. Parts' models,
    their scores and which rounds were used stay secret.
    """

    section: ProposeTest

    def declare(self, setting: Setting) -> Declaration:
        """Masks of the parts, noise for every round that there can be, the parts' trainings and the
        final one."""
        training, tests = events_of(self.section, setting)
        rounds = rounds_in(tests)
        section, moves, epsilon0 = self.section, self._sensitivity(setting), rounds.epsilon
        shares = [section.aside, *(1 / (section.parts - part) for part in range(section.parts - 1))]
        masks = tuple(Draw(f"part {index}", "mask", share) for index, share in enumerate(shares))
        # Dwork & Roth 2014, Theorem 3.23: half of a round's epsilon is for its level, and half for
        # all of its utilities. Two neighbours' comparisons of a utility with the level differ by
        # twice what one of them moves. What rounding adds to that stands in
        # privacy/release/grid.py.
        level = Draw(
            "level", "laplace", 2 * moves / epsilon0, (rounds.count,), 1, moves, under="rounds"
        )
        shape = (rounds.count, section.candidates)
        utility = Draw(
            "utility", "laplace", 4 * moves / epsilon0, shape, 1, 2 * moves, under="rounds"
        )
        # The parts' models are seen through the utilities alone, so what they draw costs nothing by
        # itself.
        parts, final = Draw("parts", "within"), trainings(mu_of(training.event), name="final")
        return Declaration((training, tests), (*masks, level, utility, parts, final))

    def run(self, setting: Setting, meter: Meter, units: Units) -> Asking:
        """Train every candidate on every part, test the candidates in rounds, and train at the last
        one that passed."""
        declared, section = self.declare(setting), self.section
        masks = [draw for draw in declared.draws if draw.distribution == "mask"]
        mu = mu_of(declared.events[0].event)
        aside, *parts = _deal([meter.mask(mask.name, units) for mask in masks])
        space = setting.space_of(draw="stratified", prior="none")
        candidates = [
            draw(space, mu, setting.epsilon, 0, number)[1] for number in range(section.candidates)
        ]
        share = (1 - section.aside) / section.parts
        # A part's sums are as noisy, for their size, as those of the final training will be.
        asks = [
            Ask(r, mu / share, part, aside, share, "parts") for part in parts for r in candidates
        ]
        answers = yield asks
        correct = np.reshape(
            [answer.correct for answer in answers], (section.parts, section.candidates)
        )
        constants = setting.constants
        size = section.aside * constants.n0 * constants.cap
        utilities = np.minimum(correct / size, 1.0).mean(axis=0)
        count = rounds_in(declared.events[1]).count
        tried = (count, section.candidates)
        levels = meter.publish("level", np.zeros(count))
        noised = meter.publish("utility", np.broadcast_to(utilities, tried))
        r = candidates[last_above_threshold(noised, levels, 1 / constants.classes, section.step)]
        [answer] = yield [Ask(r, mu, within="final")]
        return SearchOutcome(r, mu, answer.weights)

    def _sensitivity(self, setting: Setting) -> float:
        """One unit: its part's model, or its records among those set aside, whichever moves the
        mean more."""
        constants, section = setting.constants, self.section
        most = max(1 / section.parts, 1 / (section.aside * constants.n0))
        return Utilities(name="utility", multiplier=1.0, most=most).sensitivity(constants)


@dataclass(frozen=True, kw_only=True)
class Utilities(Query):
    """The mean over parts of the share that their models are right about, a number from 0 to 1.

    A unit may lie in one part, whose model it may change as a whole. That is one share of `parts`.
    Or it lies among those set aside, where it is cap records of about aside * n0 * cap, in every
    part's share. Two units may pull the mean in opposite directions.

    Sensitivity: `most`, the larger of both; twice that where a unit is replaced.
    """

    most: float

    def bound(self, constants: Constants) -> float:
        return self.most / constants.cap


@dataclass(frozen=True)
class Rounds:
    """Rounds of tests that are each epsilon-DP."""

    epsilon: float
    count: int


def rounds_in(tests: Counted) -> Rounds:
    """The rounds that a search may spend on, from the event that it is charged."""
    assert isinstance(tests.event, Booked)
    [rounds] = tests.event.events
    assert isinstance(rounds.event, Exponential)
    return Rounds(rounds.event.epsilon, rounds.count)


def last_above_threshold(noised: Floats, levels: Floats, start: float, step: float) -> int:
    """The last candidate that beat its threshold; the first one if none did.

    Args:
        noised: utilities with fresh noise for each round, (rounds, candidates).
        levels: noise of each round's level, (rounds,).
        start: the level that the first round has to beat by a step.
        step: the smallest step. A hit doubles it, a miss resets it, a miss of the smallest ends.

    Returns:
        The place of a candidate.
    """
    chosen, level, ahead = 0, start, step
    for utilities, noise in zip(noised, levels, strict=True):
        above = np.flatnonzero(utilities > level + ahead + noise)
        if len(above):
            chosen, level, ahead = int(above[0]), level + ahead, 2 * ahead
        elif ahead > step:
            ahead = step
        else:
            break
    return chosen


def _deal(masks: Sequence[Mask]) -> list[Mask]:
    """Disjoint parts: each mask takes from what those before it left, and the last part is what is
    left over.

    So a unit lies in one part at most, and moves one part's model alone.
    """
    left = np.ones_like(masks[0])
    dealt = []
    for mask in masks:
        dealt.append(left & mask)
        left = left & ~mask
    return [*dealt, left]
