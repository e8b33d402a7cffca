"""What an evaluation buys, through the ledger: no more than its price, and the measures that the config asks for."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpladder.audits.scene import LINEAGE, NOTHING, Scene, SceneFolder, Units, stage, within
from dpladder.config.section import restored
from dpladder.errors import BadInput
from dpladder.jobs.evaluate import evaluate, metrics, perplexity
from dpladder.jobs.task import read_json
from dpladder.jobs.train_final import train_final
from dpladder.privacy.accounting.composition import compose
from dpladder.privacy.ledger import book
from dpladder.privacy.ledger.book import Ledger
from dpladder.report.summary import Tested as Found

UNITS: Units = tuple((((1.0, 0.5, place / 200), place % 2),) for place in range(200))
EPSILON = 9.0


@pytest.fixture
def made() -> Iterator[SceneFolder]:
    with stage(b"the key of tests of an evaluation"[:32]) as found:
        yield found


def measured(scene: Scene) -> Found:
    """Train, and evaluate, as the workflow does."""
    total = f"{scene.project.main.privacy.epsilon:g}"
    with within(scene.folder, scene.home):
        trained = scene.task("train_final", {"target": total}, UNITS)
        train_final(trained)
        weights = {**NOTHING, "weights": str(trained.output["weights"])}
        asked = scene.task("evaluate", {"target": total}, UNITS, weights)
        evaluate(replace(asked, output={name: asked.output[name] for name in ("metrics", "privacy")}))
        return restored(Found, read_json(asked.output["metrics"]))


def test_perplexity_is_that_of_the_mean_loss_and_its_interval_holds_the_noise():
    found = perplexity(0.75, 0.01, 8.0)
    assert (found.loss, found.loss_sd) == (2.0, 0.08)
    assert found.value == pytest.approx(math.exp(2.0))
    assert (found.low, found.high) == pytest.approx((math.exp(2 - 1.96 * 0.08), math.exp(2 + 1.96 * 0.08)))
    assert perplexity(0.0, 1.0, 8.0).high == math.exp(8.0)


def scene_of(made: SceneFolder, measures: str, **changes: Any) -> Scene:
    return made.scene(
        {"dataset": {"classes": ["ill", "well"]}, "evaluate": {"measures": measures, "epsilon": EPSILON}},
        changes,
    )


@pytest.mark.parametrize("measures", ["accuracy", "classes", "auc"])
def test_what_is_measured_costs_what_was_reserved(made: SceneFolder, measures: str) -> None:
    scene = scene_of(made, measures)
    found = measured(scene)
    state = book.load(Ledger(scene.home, LINEAGE))
    [held] = [held for held in state.items.values() if held.job.rule == "evaluate"]
    assert held.status == "DONE"
    assert compose(held.spends, 1e-5).epsilon == pytest.approx(EPSILON, rel=1e-6)
    assert compose(held.spends, 1e-5).epsilon <= EPSILON
    assert found.noised
    assert (found.classes is None) == (found.balanced is None) == (measures == "accuracy")
    assert (found.auc is None) == (found.scores is None) == (measures != "auc")
    if found.classes is not None:
        assert [one.name for one in found.classes] == ["ill", "well"]
        assert sum(one.correct for one in found.classes) == pytest.approx(found.correct)


def test_classes_cost_the_sum_more_noise_and_nothing_else(made: SceneFolder) -> None:
    plain, split = (measured(scene_of(made, measures)) for measures in ("accuracy", "classes"))
    assert split.sd == pytest.approx(2**0.5 * plain.sd)


def test_auc_is_of_two_classes(made: SceneFolder) -> None:
    with pytest.raises(BadInput, match="there are 3 classes, and AUC is of two"):
        made.scene({"evaluate": {"measures": "auc"}})


def test_exact_counts_of_a_public_source_have_no_noise() -> None:
    found = metrics(("a", "b"), np.array([[3.0, 1.0], [0.0, 4.0]]), 0.0)
    assert not found.noised
    assert found.accuracy == 3 / 8
    assert found.balanced == {"value": 0.375, "sd": 0.0}
    assert [one.accuracy for one in found.classes or ()] == [0.75, 0.0]
