"""Whole searches on neighbouring toy data, many times over: what comes out respects the claimed
(epsilon, delta).

The toy's training puts out x + N(0, 1/mu^2), where x = 1 or 0 as a unit takes part or not: exactly
mu-GDP. A score is that same number in huge counts, so that score noise does not disturb it, or its
negative. What an attacker sees is compared with thresholds on both sides. A claim is broken when
some gap P(S) - e^epsilon P'(S), or the other way round, exceeds delta by six standard errors: by
chance, for less than one in 10^6 of the events, of which there are some 10^4 here. Seeds are public
and fixed, so a result moves only with the code.
"""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from dpladder.config.sweep_sections import Search
from dpladder.learn.interface import Constants
from dpladder.privacy.accounting import selection
from dpladder.privacy.accounting.events import Counted, Gaussian
from dpladder.privacy.release.grid import Noise
from dpladder.search.cost import price
from dpladder.search.protocol import Answer, Setting, run_alone, searcher_of
from dpladder.search.space import bounds
from dpladder_papers.research import ladder
from dpladder_papers.research.ladder import Climbed, LadderSearcher
from dpladder_papers.searches.dp_hypo import DpHypo
from dpladder_papers.searches.dp_hypo import search as dp_hypo
from dpladder_papers.searches.dp_hypo.search import CELLS, lean_bounds
from dpladder_papers.searches.koskela_kulkarni import KoskelaKulkarni
from dpladder_papers.searches.koskela_kulkarni import search as koskela_kulkarni
from dpladder_papers.searches.naive_composition import NaiveComposition
from dpladder_papers.searches.naive_composition import search as naive_composition
from dpladder_papers.searches.papernot_steinke import PapernotSteinke
from dpladder_papers.searches.propose_test import ProposeTest
from dpladder_papers.searches.propose_test.search import Searcher as DoublingTests

SEARCHES = 8_000
EPSILON, DELTA = 2.0, 1e-3
SETTING = Setting(EPSILON, Search(unit="r"), Constants(n0=50, classes=2, dimension=1, delta=DELTA))
# the first may take part
UNITS = np.arange(10, dtype=np.uint64).repeat(2).view(np.uint8).reshape(10, 16)
HUGE = 10**8
MIDDLE = math.sqrt(math.prod(bounds(Search())))

QUANTILES = np.concatenate([np.geomspace(1e-4, 0.5, 60), 1 - np.geomspace(1e-4, 0.5, 60)])


@pytest.fixture(autouse=True)
def nothing_remembered():
    """Planted defects must reach the prices, and must not stay in them."""
    yield
    forget()


def forget():
    for remembered in (price, selection.rank_loss, selection.largest_count):
        remembered.cache_clear()


class Dice:
    """A meter's draws from numpy: quicker, and a test's randomness is no secret."""

    def __init__(self, draws, seed):
        self.draws = {draw.name: draw for draw in draws}
        self.random = np.random.default_rng(seed)

    def uniform(self, name):
        return 1.0 - self.random.random(self.draws[name].shape)

    def runs(self, name):
        mean, shape, limit = self.draws[name].law
        return selection.number(float(self.uniform(name)), selection.Runs(mean, shape), limit)

    def noise(self, name, shape):
        draw = self.draws[name]
        of = self.random.laplace if draw.distribution == "laplace" else self.random.normal
        return Noise(of(size=shape), draw.scale)

    def publish(self, name, total):
        exact = np.asarray(total, np.float64)
        return self.noise(name, exact.shape).add_to(exact)

    def mask(self, name, ids):
        return self.random.random(len(ids)) < self.draws[name].scale


def taking_part(ask, present):
    return present and (ask.trained is None or bool(ask.trained[0]))


def up(y, r):
    return y


def down(y, r):
    return -y


def folded(y, r):
    """The worst ranking that is known: the middle, above it the lowest values, and above these the
    highest."""
    return y + 100 * ((y <= -1.0) + 2 * (y >= 5.0))


def across(y, r):
    """The winner's r tells which way its score leant."""
    return y if r > MIDDLE else -y


def searches(method, present, order=up, number=SEARCHES, score=None):
    """What many searches show: in which half of the range the winner lies, and its weights in units
    of their noise."""
    dice, seen = (
        Dice(method.declare(SETTING).draws, [present, order.__name__.encode()[0]]),
        np.zeros((number, 2)),
    )

    def train(ask):
        y = taking_part(ask, present) + dice.random.normal() / ask.mu
        return Answer(y, score(ask, present) if score else int(HUGE * order(y * ask.mu, ask.r)))

    for place in range(number):
        found = run_alone(
            method.run(SETTING, dice, UNITS), lambda asks: [train(ask) for ask in asks]
        )
        # No run at all shows as well: far away from every weight.
        seen[place] = found.r > MIDDLE, -1e3 if found.weights is None else found.weights * found.mu
    return seen


def violation(one, other, epsilon=EPSILON, delta=DELTA):
    """By how many standard errors the clearest of the attacker's events breaks the claim."""
    worst = -math.inf
    for lean in (0.0, 1.0, -1.0):
        a, b = (np.sort(seen[:, 1] + lean * seen[:, 0]) for seen in (one, other))
        for threshold in np.quantile(np.concatenate([a, b]), QUANTILES):
            p, q = (np.searchsorted(s, threshold) / len(s) for s in (a, b))
            for left, right in ((p, q), (q, p), (1 - p, 1 - q), (1 - q, 1 - p)):
                error = math.sqrt(
                    left * (1 - left) / len(a) + math.exp(2 * epsilon) * right / len(b)
                )
                worst = max(worst, (left - math.exp(epsilon) * right - delta) / (error + 1e-9))
    return worst


def attack(method, **how):
    return violation(searches(method, True, **how), searches(method, False, **how))


@pytest.mark.few(1)
@pytest.mark.ci
@pytest.mark.parametrize("order", [up, down, folded])
@pytest.mark.parametrize("law", ["logarithmic", "geometric", "poisson"])
def test_the_best_of_a_random_number_of_runs(law, order):
    assert attack(searcher_of(PapernotSteinke(law=law, padded=False)), order=order) < 6


@pytest.mark.long
def test_a_fixed_number_of_runs_is_caught(monkeypatch):
    monkeypatch.setattr(selection, "number", lambda uniform, runs, limit: 30)
    assert attack(searcher_of(PapernotSteinke(mean=30.0, padded=False)), number=25_000) > 6


@pytest.mark.long
def test_a_bound_without_the_weight_of_ranks_is_caught(monkeypatch):
    forget()
    with monkeypatch.context() as planted:
        planted.setattr(selection, "rank_loss", lambda mu, runs, lean=None: 0.0)
        assert (
            attack(
                searcher_of(PapernotSteinke(mean=40.0, law="poisson", padded=False)), number=4_000
            )
            > 6
        )


def eager(cells, answers, chance, scale):
    """Leans as far as it may, to the side that the last score spoke for."""
    return 1 if answers and answers[-1].correct > 0 else -1


@pytest.mark.long
@pytest.mark.parametrize("order", [up, across, folded])
def test_runs_that_look_where_earlier_ones_did_well(monkeypatch, order):
    lean = lean_bounds(DpHypo(), EPSILON)
    proposals = {side: dp_hypo.proposal(side * np.linspace(-8, 8, CELLS), lean) for side in (1, -1)}
    monkeypatch.setattr(dp_hypo, "upper_bounds", eager)
    monkeypatch.setattr(dp_hypo, "proposal", lambda side, _: proposals[side])
    assert attack(searcher_of(DpHypo(padded=False)), order=order) < 6


@pytest.mark.long
@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize("order", [up, across, folded])
def test_tuning_on_a_subset(apart, order):
    assert (
        attack(searcher_of(KoskelaKulkarni(share=0.5, apart=apart, padded=False)), order=order) < 6
    )


@pytest.mark.ci
def test_a_final_training_that_is_not_paid_for_is_caught(monkeypatch):
    rarely = KoskelaKulkarni(mean=1.1, share=0.9, apart=False, padded=False)
    [honest] = price(rarely, EPSILON, DELTA, "add_remove")
    dear = Counted(replace(honest.event, final=Gaussian(1 / (2 * SETTING.mu))))
    monkeypatch.setattr(koskela_kulkarni, "events_of", lambda *_: (dear,))
    assert attack(searcher_of(rarely)) > 6


def favourite(ask, present):
    """Half of the records set aside, and all of them for a part with the unit in it and the second
    candidate."""
    return 10 if taking_part(ask, present) and ask.r > MIDDLE else 5


@pytest.mark.long
def test_rounds_of_propose_and_test():
    assert attack(searcher_of(ProposeTest(parts=2, candidates=2)), score=favourite) < 6


@pytest.mark.long
def test_utilities_without_enough_noise_are_caught(monkeypatch):
    monkeypatch.setattr(DoublingTests, "_sensitivity", lambda self, setting: 1e-3)
    assert attack(searcher_of(ProposeTest(parts=2, candidates=2)), score=favourite) > 6


@pytest.mark.long
@pytest.mark.parametrize("order", [up, down])
def test_the_best_of_runs_that_were_all_paid_for(order):
    assert attack(searcher_of(NaiveComposition(runs=5)), order=order) < 6


@pytest.mark.ci
def test_losers_that_are_not_paid_for_are_caught(monkeypatch):
    whole = Counted(Gaussian(1 / SETTING.mu), 5)
    monkeypatch.setattr(naive_composition, "events_of", lambda *_: (whole,))
    assert attack(searcher_of(NaiveComposition(runs=5))) > 6


@pytest.fixture
def told(monkeypatch):
    """Everything that a ladder may publish, as the likelihood ratio of all its weights. Where r*
    lies is no news."""
    monkeypatch.setattr(ladder, "fit_radius", lambda *_: SimpleNamespace(r_star=1.0))

    def all_told(climbed, present):
        dice, seen = Dice(climbed.declare(SETTING).draws, [present, 7]), np.zeros((SEARCHES, 2))

        def train(row, ask):
            y = present + dice.random.normal() / ask.mu
            row[1] += y * ask.mu**2 / SETTING.mu
            return Answer(y, int(10 * y))

        for row in seen:
            run_alone(
                climbed.run(SETTING, dice, UNITS),
                lambda asks, row=row: [train(row, ask) for ask in asks],
            )
        return seen

    return all_told


@pytest.mark.long
def test_all_that_a_ladder_publishes(told):
    assert violation(told(LadderSearcher(), True), told(LadderSearcher(), False)) < 6


@pytest.mark.long
def test_trials_that_are_not_paid_for_are_caught(monkeypatch, told):
    monkeypatch.setattr(Climbed, "final", property(lambda self: self.total))
    dear = LadderSearcher(((0.5, 3), (0.6, 3)))
    assert violation(told(dear, True), told(dear, False)) > 6
