"""What an evaluation buys, through the ledger: no more than its price, and the measures that the
config asks for."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from counted import cells_of, figures_from

from dpladder.config.dataset_sections import TrainedGroup
from dpladder.config.evaluate_sections import Evaluate, tables_of
from dpladder.config.records import Corruption, FurtherTest
from dpladder.errors import BadInput
from dpladder.jobs.evaluate import NO_GROUPS, Groups, evaluate, groups_of
from dpladder.jobs.release import release_once
from dpladder.jobs.train_final import release_of
from dpladder.learn.data import Data
from dpladder.learn.interface import Constants
from dpladder.learn.measures.tables import MeasuredModel, ScoreLook, perplexity_of_share
from dpladder.learn.measures.tested import Confusion, GroupNames
from dpladder.learn.measures.tested import Tested as Found
from dpladder.learn.scorers import ClassScorer
from dpladder.privacy.accounting.composition import compose
from dpladder.privacy.ledger import book
from dpladder.privacy.ledger.book import Ledger
from dpladder.privacy.ledger.state import LedgerCharge
from dpladder.report.summary import read_test
from dpladder_audit.scene import (
    LINEAGE,
    NO_INPUTS,
    Scene,
    SceneFolder,
    Units,
    job_environment,
    scene_folder,
)

UNITS: Units = tuple((((1.0, 0.5, place / 200), place % 2),) for place in range(200))
EPSILON = 9.0


@pytest.fixture
def made() -> Iterator[SceneFolder]:
    with scene_folder(b"the key of tests of an evaluation"[:32]) as found:
        yield found


def measured(scene: Scene) -> Found:
    """Train, and evaluate, as the workflow does."""
    total = f"{scene.project.main.privacy.epsilon:g}"
    with job_environment(scene.folder, scene.home):
        trained = scene.task("train_final", {"target": total}, UNITS)
        release_once(release_of(trained))
        weights = {**NO_INPUTS, "weights": str(trained.output["weights"])}
        asked = scene.task("evaluate", {"target": total}, UNITS, weights)
        asked.output["metrics"].parent.mkdir(parents=True, exist_ok=True)
        evaluate(
            replace(asked, output={name: asked.output[name] for name in ("metrics", "privacy")})
        )
        return read_test(asked.output["metrics"])


def charge_of(scene: Scene) -> LedgerCharge:
    """What the counts were charged, which is their price and no more."""
    state = book.load(Ledger(scene.home, LINEAGE))
    [charge] = [charge for charge in state.charges.values() if charge.job.rule == "evaluate"]
    assert EPSILON * (1 - 1e-6) <= compose(charge.spends, 1e-5).epsilon <= EPSILON
    return charge


def test_perplexity_is_that_of_the_mean_loss_and_its_interval_holds_the_noise():
    found = perplexity_of_share(0.75, 0.01, 8.0)
    assert (found.loss, found.loss_sd) == (2.0, 0.08)
    assert found.value == pytest.approx(math.exp(2.0))
    assert (found.low, found.high) == pytest.approx(
        (math.exp(2 - 1.96 * 0.08), math.exp(2 + 1.96 * 0.08))
    )
    assert perplexity_of_share(0.0, 1.0, 8.0).high == math.exp(8.0)


def scene_of(made: SceneFolder, measures: str | list[str], **changes: Any) -> Scene:
    return made.scene(
        {
            "dataset": {"classes": ["ill", "well"]},
            "evaluate": {"measures": measures, "epsilon": EPSILON},
        },
        changes,
    )


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "measures", ["accuracy", "classes", "confusion", "auc", "calibration", "decision"]
)
def test_what_is_measured_costs_what_was_reserved(made: SceneFolder, measures: str) -> None:
    acts = {"evaluate": {"threshold": 0.2}} if measures == "decision" else {}
    scene = scene_of(made, measures, **acts)
    found = measured(scene)
    assert charge_of(scene).status == "DONE"
    assert ("sensitivity_at_threshold" in found.figures) == (measures == "decision")
    assert found.noised
    assert (found.classes is None) == ("balanced" not in found.figures)
    assert (found.classes is None) == (measures in ("accuracy", "calibration"))
    assert (found.reliability is None) == (measures != "calibration")
    assert ("auc" in found.figures) == (measures == "auc")
    assert (found.confusion is None) == (measures != "confusion")
    if found.classes is not None:
        assert [one.name for one in found.classes] == ["ill", "well"]
        assert sum(one.correct for one in found.classes) == pytest.approx(found.correct)


def test_measures_together_cost_what_one_of_them_does_and_share_it_evenly(
    made: SceneFolder,
) -> None:
    together = ["groups", "calibration", "auc"]
    scene = scene_of(made, together, dataset={"group": GROUPED | {"train": ["b"]}})
    found = measured(scene)
    charge_of(scene)
    [plain] = [measured(scene_of(made, "accuracy")).sd]
    # by class, a look at scores with what stands on it, by group, confidence
    assert found.groups is not None
    assert found.groups[0].sd == pytest.approx(4**0.5 * plain)
    assert {"auc", "balanced", "calibration_error", "elsewhere"} <= {*found.figures}
    assert found.reliability is not None
    # of both groups in its own table, of the trained one in all others
    assert sum(one.correct + one.wrong for one in found.groups) == pytest.approx(200, abs=30)
    assert found.total == pytest.approx(100, abs=30)
    assert sum(one.total for one in found.reliability) == pytest.approx(100, abs=60)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("auc", ("auc",)),
        (["groups", "auc", "auc"], ("auc", "groups")),
        (["accuracy", "classes"], ("classes",)),
        (["accuracy", "calibration"], ("calibration",)),
        (["classes", "auc", "confusion"], ("confusion", "auc")),
    ],
)
def test_measures_that_buy_the_same_tables_are_one_question(given: object, kept: object) -> None:
    assert Evaluate.model_validate_json(json.dumps({"measures": given})).measures == kept


def test_no_count_is_bought_twice() -> None:
    assert tables_of(("auc", "groups", "calibration")) == (
        *("by_class", "score_look", "standings", "by_group", "confidence"),
    )
    assert tables_of(("groups", "calibration"), grouped=False) == ("right_and_wrong", "confidence")
    assert tables_of(("auc", "calibration"), findings=True) == (
        *("by_finding", "score_look_by_finding", "standings_by_finding", "confidence"),
    )


def test_classes_cost_the_sum_more_noise_and_nothing_else(made: SceneFolder) -> None:
    plain, split = (measured(scene_of(made, measures)) for measures in ("accuracy", "classes"))
    assert split.sd == pytest.approx(2**0.5 * plain.sd)


def test_a_table_of_answers_hides_what_noise_may_be() -> None:
    cells = [[9.0, 9.0, 0.0], [0.0, 9.0, 0.0], [0.0, 0.0, 9.0]]
    assert Confusion(cells, 4.0).row_or_hidden(0) == [9.0, 9.0, None]
    assert Confusion(cells, 5.0).row_or_hidden(1) == [None, None, None]


def test_auc_is_of_two_classes(made: SceneFolder) -> None:
    with pytest.raises(BadInput, match="there are 3 classes, and auc is of two"):
        made.scene({"evaluate": {"measures": "auc"}})


def test_exact_counts_of_a_public_source_have_no_noise() -> None:
    found = figures_from(("a", "b"), by_class=([[3.0, 1.0], [0.0, 4.0]], 0.0))
    assert not found.noised
    assert found.accuracy == 3 / 8
    balanced = found.figures["balanced"]
    assert balanced is not None
    assert (balanced.value, balanced.sd) == (0.375, 0.0)
    assert balanced.interval[0] < 0.375 < balanced.interval[1]  # which records came is chance
    assert [one.accuracy for one in found.classes or ()] == [0.75, 0.0]


def test_research_tells_the_counts_of_its_own_test_part_exactly(made: SceneFolder) -> None:
    """In a release of the same data they are noised, and charged."""
    for mode, exact in (("release", False), ("research", True)):
        public = {"mode": mode, "dataset": {"declared_public": True}}
        scene = made.scene({"dataset": {"classes": ["ill", "well"]}}, public)
        found, state = measured(scene), book.load(Ledger(scene.home, LINEAGE))
        charged = {item.job.rule for item in state.charges.values()}
        assert charged == {"train_final"} | (set() if exact else {"evaluate"})
        assert found.noised is not exact
        assert (found.sd == 0.0) is exact
        # noise is zero now and then, for it lies on a grid
        assert found.total == len(UNITS) or not exact


GROUPED = {"column": "place", "names": ["a", "b"]}  # a scene's groups are its labels


@pytest.mark.parametrize("train", [[], ["b"]])
def test_groups_cost_one_count_and_the_accuracy_is_of_those_trained_on(
    made: SceneFolder, train: list[str]
) -> None:
    scene = scene_of(made, "groups", dataset={"group": GROUPED | {"train": train}})
    found = measured(scene)
    charge_of(scene)
    groups = found.groups or ()
    assert [(one.name, one.trained) for one in groups] == [("a", not train), ("b", True)]
    own = [one for one in groups if one.trained]
    assert found.correct == pytest.approx(sum(one.correct for one in own))
    assert found.sd == pytest.approx(groups[0].sd * len(own) ** 0.5)
    assert ("elsewhere" in found.figures) == bool(train)
    assert found.classes is None
    assert found.worst is not None
    assert found.worst.value == min(one.accuracy or 0.0 for one in groups)


def test_records_of_other_groups_than_those_trained_on_are_in_no_count(made: SceneFolder) -> None:
    whole = measured(scene_of(made, "accuracy", dataset={"group": GROUPED}))
    some = measured(scene_of(made, "accuracy", dataset={"group": GROUPED | {"train": ["b"]}}))
    assert whole.total == pytest.approx(200, abs=20)
    assert some.total == pytest.approx(100, abs=20)
    assert some.groups is None


def test_groups_of_a_test_are_numbered_as_they_are_counted() -> None:
    data = Data(np.zeros((4, 1)), np.array([0, 1, 1, 0]), groups=np.array([2, 0, 1, -1]))
    some = Groups(("a", "b", "c"), ("c", "a"), ("c", "a"), (), apart=True).restrict(data)
    assert some.labels.tolist() == [0, 1, -1, -1]
    assert some.groups is not None
    assert some.groups.tolist() == [0, 1, -1, -1]
    assert NO_GROUPS.restrict(replace(data, groups=None)).labels.tolist() == [0, 1, 1, 0]


def test_a_further_test_counts_the_groups_that_it_names_or_its_own() -> None:
    group = TrainedGroup(names=("a", "b"), column="place", train=("a",))
    held_out = FurtherTest("far", "test", named=("a", "b"), groups=("b",))
    assert groups_of(group, ("accuracy",), held_out).counted == ("b",)
    assert groups_of(group, ("groups",), held_out).trained == ("a",)
    blurred = FurtherTest("blurred-1", "test", Corruption("blur", 1), named=("a", "b"))
    assert groups_of(group, ("accuracy",), blurred) == groups_of(group, ("accuracy",))
    assert groups_of(group, ("accuracy",)).counted == ("a",)
    assert groups_of(group, ("groups",)).counted == ("a", "b")
    other = FurtherTest("other", "also-other", named=("x", "y"))
    assert groups_of(group, ("groups",), other) == Groups(
        ("x", "y"), ("x", "y"), ("x", "y"), (), True
    )
    assert not groups_of(group, ("groups",), FurtherTest("plain", "also-plain")).apart


def test_accuracies_by_group_follow_from_the_counts_alone() -> None:
    counts = [[30.0, 10.0], [5.0, 15.0], [8.0, 2.0]]
    groups = GroupNames(("a", "b", "c"), ("a", "c"), ("a", "c"))
    found = figures_from((), "classes", groups, by_group=(counts, 0.5))
    assert (found.accuracy, found.total) == (38 / 50, 50.0)
    assert found.sd == pytest.approx(0.5 * 2**0.5)
    elsewhere = found.figures["elsewhere"]
    assert elsewhere is not None
    assert elsewhere.value == 0.25
    assert found.worst is not None
    assert (found.worst.name, found.worst.value) == ("b", 0.25)
    assert found.worst.sd == elsewhere.sd  # of one group, the same counts


def test_a_record_is_in_one_cell_whatever_the_others_score() -> None:
    """The grid is public: one record more is one count more, and moves no other record to another
    cell."""
    random = np.random.default_rng(0)
    model = (random.normal(size=(2, 5)).astype(np.float32),)
    test = MeasuredModel(model, ClassScorer(), Constants(50, 2, 5), ("a", "b"))
    features = random.normal(size=(60, 5)).astype(np.float32)
    features[-1] = 100.0 * features[-1]
    labels = random.integers(0, 2, 60)
    without, among = (cells_of(ScoreLook(), test, Data(features[:n], labels[:n])) for n in (59, 60))
    assert np.abs(among - without).sum() == 1.0
