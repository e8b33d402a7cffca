"""The trainings of a private search: each with noise of its own, whatever shares a pass with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from counted import right_of

from dpladder.config import searches
from dpladder.config.learners import learner_of
from dpladder.config.model import Resources
from dpladder.config.sweep_sections import Search
from dpladder.errors import Refused
from dpladder.jobs.private_search import _choice, _head, _meters
from dpladder.jobs.run import run_rule
from dpladder.learn.data import Data
from dpladder.learn.interface import Constants
from dpladder.learn.trainings import scorer_of
from dpladder.privacy.accounting.draws import Draw, gaussian
from dpladder.privacy.ledger.state import Terms
from dpladder.privacy.release.grid import Noise
from dpladder.privacy.release.meter import Meter
from dpladder.privacy.release.noise import ResearchNoise
from dpladder.search.bench import Bench, NamedAsk, answers
from dpladder.search.protocol import Ask, Asking, SearchOutcome, Setting, trainings
from dpladder_audit.rules import terms
from dpladder_audit.scene import Units, job_environment, scene_folder
from dpladder_papers.searches.propose_test.search import Searcher
from dpladder_papers.searches.secret_runs import Chance, best

SEARCH = Search(eta=(0.01, 5.0), steps=(2, 6))
CONSTANTS = Constants(n0=300, classes=3, dimension=5)
UNITS: Units = tuple((((1.0, 0.5, place / 20), place % 2),) for place in range(20))
NOTHING = Data(
    np.zeros((300, 5), np.float32), np.zeros(300, np.int64)
)  # features all zero: noise alone trains


DRAWS = (Draw("runs", "uniform", law=(3.0, 1.0, 40)), trainings(0.5, under="runs"))


def outer(seed=0):
    terms = Terms("toy", "add_remove", "record", 1, 1e-5, "given", mode="research")
    return Meter(DRAWS, ResearchNoise(terms, "toy", seed))


def trained(number, seed=0, threads=1, data=NOTHING, **ask):
    bench = Bench(data, CONSTANTS, Resources(threads=threads), _meters(outer(seed), DRAWS))
    asks = [
        NamedAsk(str(place), Ask(8.0, 0.5, **ask), learner_of({"name": "dp_gd"}), SEARCH)
        for place in range(number)
    ]
    return [answer.weights[0] for answer in answers(bench, asks)[0]]


def test_every_training_draws_noise_of_its_own():
    heads = np.stack([head.ravel() for head in trained(40)])
    assert len(np.unique(heads, axis=0)) == 40
    between = np.corrcoef(heads)[np.triu_indices(40, 1)]
    assert abs(between.mean()) < 4 * between.std() / np.sqrt(len(between))


def test_noise_hangs_on_the_secret_stream_and_on_nothing_else():
    assert np.array_equal(trained(5), trained(5))
    np.testing.assert_allclose(trained(5), trained(5, threads=2), rtol=1e-4, atol=1e-7)
    assert not np.array_equal(trained(5), trained(5, seed=1))


def test_a_training_may_draw_only_what_its_learner_declares():
    training = NamedAsk("0", Ask(8.0, 0.5), learner_of({"name": "dp_gd"}), SEARCH)
    meter = _meters(outer(), DRAWS)(training, [gaussian("noise", 2.0, 1.0, (3,))])
    with pytest.raises(Refused, match="differs from the declared"):
        meter.publish("noise", np.zeros(4))


def test_a_training_for_more_than_its_search_declared_is_refused():
    training = NamedAsk("0", Ask(8.0, 0.5), learner_of({"name": "dp_gd"}), SEARCH)
    with pytest.raises(Refused, match="another mu"):
        _meters(outer(), DRAWS)(training, [gaussian("noise", 1.0, 1.0, (3,))])


def test_more_trainings_than_the_search_declared_are_refused():
    with pytest.raises(Refused, match="more trainings than the declared 40"):
        trained(41)


def test_the_stream_of_all_trainings_is_taken_once():
    meter = outer()
    meter.inner_meters("trainings")
    with pytest.raises(Refused, match="more often than the declared 1"):
        meter.inner_meters("trainings")


def test_a_part_without_any_record_trains_on_noise_alone():
    """A random part may come out empty, and nobody may learn that from a crash."""
    nobody = np.zeros(300, bool)
    heads = trained(3, trained=nobody, counted=nobody, share=0.01)
    assert all(np.isfinite(head).all() and head.any() for head in heads)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("name", ["dp_gd", "dp_mlp", "dp_finetune"])
def test_no_run_at_all_puts_out_a_head_that_knows_nothing(name, bias):
    """And that is counted as any other: it takes every record for the first class."""
    learner = learner_of({"name": name, "bias": bias})
    (head,) = _head(SearchOutcome(1.0, 0.0, None), learner, CONSTANTS)
    assert head.shape == (3, 5 + bias)
    assert not head.any()
    scorer = scorer_of(learner, CONSTANTS)
    assert right_of(scorer, (head,), NOTHING.features, NOTHING.labels) == 300


@pytest.mark.parametrize("name", ["dp_gd", "dp_adam", "dp_ls"])
def test_what_is_told_of_a_model_is_told_where_no_run_was_made(name):
    """Or the job would fail after it was charged, and each time that it ran again."""
    setting = Setting(1.0, SEARCH, CONSTANTS, learner=learner_of({"name": name}))
    nobody = np.empty(0)
    found = best([], [], Chance(0, nobody, Noise(nobody, 1.0), nobody), setting)
    told = _choice(setting, found)
    assert found.weights is None
    assert told["kappa"] == pytest.approx(setting.space.kappa(found.r, setting.mu))


def test_weights_of_trainings_that_cost_nothing_are_not_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Their noise is on no bill: a search that put them out would publish them for nothing."""
    sent: list[tuple[str, bool]] = []
    run = Searcher.run

    def watched(*arguments: Any) -> Asking:
        asking = run(*arguments)
        asks = next(asking)
        while True:
            answers = yield asks
            sent.extend((a.within, bool(b.weights)) for a, b in zip(asks, answers, strict=True))
            try:
                asks = asking.send(answers)
            except StopIteration as done:
                return done.value

    monkeypatch.setattr(Searcher, "run", watched)
    name = "propose_test"
    changes = {"hpo": {"name": name, **searches.METHODS[name].attack}}
    with scene_folder(b"the key of tests of what searches get"[:32]) as made:
        scene = made.scene(terms("add_remove"), changes)
        task = scene.task("private_search", {"target": "9"}, UNITS)
        with job_environment(scene.folder, scene.home):
            run_rule(task)
    assert set(sent) == {("parts", False), ("final", True)}
