"""Searches of kappa, clip and batch together: what they are charged, and that networks may take
part in a contest."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from counted import right_of
from literature.test_contest import SEARCH, arena

from dpladder.errors import Refused
from dpladder.learn import descent_noise, interface
from dpladder.learn.scorers import ClassScorer
from dpladder.methods.dp_finetune import FineTune
from dpladder.methods.dp_gd import Descent
from dpladder.privacy.accounting import gdp
from dpladder.privacy.accounting.booking import FINAL, Entry, delta0_of, epsilon
from dpladder.privacy.accounting.events import Composed, mu
from dpladder.research.arena import Arena, bench_of
from dpladder.search.bench import NamedAsk, answers
from dpladder.search.protocol import Answer, Ask, Setting
from dpladder_papers.research.contest import Competitor, contest, oracle
from dpladder_papers.research.joint import Joint, learner_variants, total_beside

HEAD = FineTune(trains="head", free_step=True)
TOGETHER = tuple(learner_variants(HEAD, (0.3, 3.0), (0.5, 1.0)))


def with_units() -> Arena:
    place = arena()
    units = np.arange(2 * 400, dtype=np.uint64).reshape(400, 2).view(np.uint8)
    return replace(place, train=replace(place.train, units=units))


def setting(total: float = 8.0) -> Setting:
    return Setting(total, SEARCH, arena().constants, learner=HEAD)


class Loud:
    """A meter whose noise is none."""

    def publish(self, name: str, counts: list[int]) -> list[int]:
        return counts


@pytest.mark.parametrize("number", [0, 3])
def test_all_trainings_and_scores_are_charged_inside_the_total(number: int) -> None:
    way, asked = Joint(TOGETHER, number), setting()
    assert mu(Composed(way.declare(asked).events)) == pytest.approx(asked.mu, rel=1e-9)
    delta = asked.delta
    left = gdp.mu_from_epsilon(total_beside(8.0, delta, number + 1), delta)
    all_of_it = Entry(left, delta0=(number + 1) * delta0_of(delta, FINAL))
    assert epsilon(all_of_it, delta) == pytest.approx(8.0, rel=1e-9)


def test_the_final_training_is_where_the_best_trial_was() -> None:
    nobody = np.zeros((1, 16), np.uint8)
    asking = Joint(TOGETHER, 6).run(setting(), Loud(), nobody)  # type: ignore[arg-type]
    asks = next(asking)
    assert {ask.learner for ask in asks} <= set(TOGETHER)
    assert len({ask.learner for ask in asks}) > 1
    for ask in asks:
        assert bool(ask.delta0) == (ask.learner.sampling_rate < 1.0)  # type: ignore[union-attr]
    [last] = asking.send([Answer((), correct) for correct in (3, 1, 4, 9, 2, 6)])
    assert last.learner == asks[3].learner
    assert last.mu > asks[3].mu


def test_trials_that_are_not_declared_are_refused() -> None:
    class Unpaid(Joint):
        def declare(self, setting: Setting) -> interface.Declaration:
            found = super().declare(setting)
            return replace(found, events=found.events[-1:])

    with pytest.raises(Refused, match="is not what the declared noise costs"):
        contest(with_units(), [Competitor("unpaid", Unpaid(TOGETHER), setting(), HEAD)], 1)


def test_a_contest_of_a_network_trains_each_place_by_its_own_learner() -> None:
    place = with_units()
    with patch.object(descent_noise, "sampled_sigma", lambda *_: 5.0):
        entries = [Competitor("together", Joint(TOGETHER, 4), setting(), HEAD)]
        [found] = contest(place, entries, 2)
    assert found.trainings == 5.0
    assert found.mean > 0.6
    assert oracle(place, setting(), HEAD, 3, 1) >= found.mean - 0.1


def test_a_network_is_judged_by_its_own_logits() -> None:
    """A head alone, on features, is the linear head's."""
    place = with_units()
    found = {}
    for learner in (HEAD, Descent()):
        training = NamedAsk("same", Ask(2.0, 1e3), learner, SEARCH)
        [[answer], _] = answers(bench_of(place), [training])
        found[learner.name] = answer
    assert found["dp_finetune"].correct == found["dp_gd"].correct

    def turned(weights: object, features: object) -> np.ndarray:
        return -np.asarray(features) @ found["dp_gd"].weights[0].T

    head, records = found["dp_gd"].weights, (place.test.features, place.test.labels)
    right = right_of(ClassScorer(turned), head, *records)
    assert right < right_of(ClassScorer(), head, *records)
