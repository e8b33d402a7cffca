"""Every score that a search looks at has noise of its own: by shared noise, or by none, the best
run would always win."""

from __future__ import annotations

from itertools import count, islice
from types import SimpleNamespace

import numpy as np
import pytest

from dpladder.config.sweep_sections import Search
from dpladder.learn.interface import Constants
from dpladder.privacy.release.meter import Meter
from dpladder.privacy.release.noise import SecretNoise
from dpladder.search.protocol import Answer, Searcher, Setting, run_alone, searcher_of
from dpladder_papers.research import ladder
from dpladder_papers.research.ladder import LadderSearcher
from dpladder_papers.searches.dp_hypo import DpHypo
from dpladder_papers.searches.liu_talwar import LiuTalwar
from dpladder_papers.searches.naive_composition import NaiveComposition
from dpladder_papers.searches.propose_test import ProposeTest
from dpladder_papers.searches.propose_test.search import rounds_in

SETTING = Setting(1.0, Search(), Constants(n0=1000, classes=10, dimension=4, length=10.0))
UNITS = np.arange(1000, dtype=np.uint64).repeat(2).view(np.uint8).reshape(1000, 16)


def searched(found_by: Searcher, seed: int) -> tuple[int, int]:
    """Which run won, of how many: each counts one right prediction more than the one before, far
    below its noise."""
    meter = Meter(
        found_by.declare(SETTING).draws,
        SecretNoise(bytes(32), "", str(seed)),
    )
    numbers = count()

    def trained(asks: list) -> list[Answer]:
        return [
            Answer((np.full((1, 1), number, np.float32),), number)
            for number in islice(numbers, len(asks))
        ]

    found = run_alone(found_by.run(SETTING, meter, UNITS), trained)
    assert found.weights is not None
    return int(found.weights[0][0, 0]), next(numbers)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "section",
    [NaiveComposition(runs=4), LiuTalwar(mean=6.0, padded=False), DpHypo(mean=6.0, padded=False)],
    ids=lambda section: section.name,
)
def test_every_run_has_noise_of_its_own(section):
    games = [searched(searcher_of(section), seed) for seed in range(60)]
    won_by_the_best = [winner >= runs - 2 for winner, runs in games if runs >= 4]
    assert len(won_by_the_best) > 10
    assert 0 < np.mean(won_by_the_best) < 0.8


def test_every_trial_of_a_rung_has_noise_of_its_own(monkeypatch):
    seen = []
    monkeypatch.setattr(
        ladder, "fit_radius", lambda trials, *_: seen.append(trials) or SimpleNamespace(r_star=1.0)
    )
    for seed in range(5):
        found_by = LadderSearcher(((0.2, 3),))
        meter = Meter(
            found_by.declare(SETTING).draws,
            SecretNoise(bytes(32), "", str(seed)),
        )
        run_alone(found_by.run(SETTING, meter, UNITS), lambda asks: [Answer((), 7) for _ in asks])
    scores = np.array([[trial.score for trial in trials] for trials in seen])
    assert len(np.unique(scores)) > 10
    assert (scores.std(axis=1) > 0).all()


def test_a_test_has_the_noise_of_above_threshold():
    """Dwork & Roth 2014, Algorithm 1 and Theorem 3.23: a level's noise is 2/epsilon0 of what a
    utility moves by, and that of the utilities twice as much, for a comparison may change from both
    sides."""
    declared = searcher_of(ProposeTest(parts=10)).declare(SETTING)
    epsilon0 = rounds_in(declared.events[1]).epsilon
    scales = {draw.name: draw.scale for draw in declared.draws}
    assert scales["level"] == pytest.approx(2 * 0.1 / epsilon0)
    assert scales["utility"] == pytest.approx(4 * 0.1 / epsilon0)


def test_no_record_set_aside_moves_a_utility_beyond_one():
    """Of the records set aside as many as there are may be right; what they are divided by is
    public, and may be fewer."""
    found_by, told = searcher_of(ProposeTest(parts=2, candidates=1)), []
    meter = Meter(
        found_by.declare(SETTING).draws,
        SecretNoise(bytes(32), "", "0"),
    )
    publish = meter.publish

    def seen(name: str, total):
        told.append((name, np.max(total)))
        return publish(name, total)

    meter.publish = seen  # type: ignore[method-assign]
    run_alone(found_by.run(SETTING, meter, UNITS), lambda asks: [Answer((), 10**6) for _ in asks])
    assert dict(told)["utility"] == 1.0
