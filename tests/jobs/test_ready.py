"""What cannot be trained is refused before it is charged, by every rule that trains."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from support import Silent

from dpladder.config.learners import learner_of
from dpladder.config.model import Resources
from dpladder.config.sweep_sections import Search
from dpladder.errors import Refused
from dpladder.jobs import run_trial
from dpladder.jobs.run import run_rule
from dpladder.learn import layers, linear
from dpladder.learn.data import Data
from dpladder.learn.finetune import predict
from dpladder.learn.interface import MAX_BATCHED_TRAININGS, Constants
from dpladder.privacy.ledger import book
from dpladder.privacy.ledger.book import Ledger
from dpladder.search.bench import Bench, NamedAsk, answers
from dpladder.search.protocol import Ask
from dpladder_audit import searches
from dpladder_audit.rules import terms
from dpladder_audit.scene import (
    CLASSES,
    LINEAGE,
    Scene,
    SceneFolder,
    Units,
    job_environment,
    scene_folder,
)

UNITS: Units = tuple((((1.0, 0.5, place / 20), place % 2),) for place in range(20))
SWEEP = {"sweep": {"rungs": [{"epsilon": 4.0, "trials": 1}]}}
HEAD = {
    "features": {"model": "efficientnet_lite0", "weights": "random", "until": "blocks.5"},
    "learner": {"name": "dp_finetune", "trains": "last_block", "head": {"epsilon": 4.0}},
}
ASKING: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "train_final": ({}, {"target": "9"}),
    "run_trial": (SWEEP, {"rung": "0", "trial": "0"}),
} | {
    f"private_search {name}": ({"hpo": {"name": name, **method.attack}}, {"target": "9"})
    for name, method in searches.ATTACKED.items()
}


@pytest.fixture
def made() -> Iterator[SceneFolder]:
    with scene_folder(b"the key of tests of what is ready"[:32]) as found:
        yield found


def check_refused(scene: Scene, rule: str, wildcards: dict[str, str], why: str) -> None:
    """Before anything is charged."""
    task = scene.task(rule, wildcards, UNITS)
    with job_environment(scene.folder, scene.home), pytest.raises(Refused, match=why):
        run_rule(task)
    state = book.load(Ledger(scene.home, LINEAGE))
    assert {charge.status for charge in state.charges.values()} == {"RESERVED"}


@pytest.mark.parametrize("asking", ASKING)
def test_what_cannot_be_trained_is_refused_before_it_is_charged(
    asking: str, made: SceneFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise Refused("this network cannot be trained")

    changes, wildcards = ASKING[asking]
    monkeypatch.setattr(layers, "ready", refuse)
    scene = made.scene(terms("add_remove"), changes)
    check_refused(scene, asking.partition(" ")[0], wildcards, "cannot be trained")


@pytest.mark.parametrize(
    ("rule", "wildcards", "changes"),
    [("train_final", {"target": "40"}, {}), ("estimate_head", {}, HEAD)],
    ids=["linear head", "head of a network"],
)
def test_a_machine_that_rounds_by_places_is_refused_before_it_is_charged(
    rule: str,
    wildcards: dict[str, str],
    changes: Any,
    made: SceneFolder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One record more would move all others by a place."""

    def last_rows_otherwise(flat: Any, chunk: int) -> Any:
        return lambda x: torch.cat([flat @ x[:-8].T, flat @ x[-8:].T * (1 + 1e-6)], 1)

    linear._refuse_places.cache_clear()
    monkeypatch.setattr(linear, "logits_by", last_rows_otherwise)
    scene = made.scene(terms("add_remove", 40.0), changes)
    check_refused(scene, rule, wildcards, "by its place among others")


def test_a_head_is_charged_only_where_its_network_can_be_trained(
    made: SceneFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else would start from it."""
    asked = []

    def refuse(learner: Any, *_: Any) -> None:
        asked.append(learner.trains)
        if learner.trains != "head":
            raise Refused("this network cannot be trained")

    monkeypatch.setattr(predict, "ready", refuse)
    scene = made.scene(terms("add_remove", 40.0), HEAD)
    check_refused(scene, "estimate_head", {}, "cannot be trained")
    assert asked == ["head", "last_block"]
    other = made.scene(terms("add_remove", 40.0), HEAD, {"learner": {"trains": "all"}})
    task, same = (one.task("estimate_head", {}, UNITS) for one in (scene, other))
    assert same.cfg["network"] != task.cfg["network"]
    assert same.public_cfg == task.public_cfg  # it starts every network from the same head


@pytest.fixture
def products(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[set[Any], set[Any]]]:
    """The shapes of heads and records that were tried on public noise, and those of trainings."""
    tried: set[Any] = set()
    trained: set[Any] = set()
    refuse_places, logits_by = linear.refuse_places, linear.logits_by
    shapes = trained

    def trying(*arguments: Any) -> None:
        nonlocal shapes
        shapes = tried
        refuse_places(*arguments)
        shapes = trained

    def noting(flat: Any, chunk: int) -> Any:
        logits = logits_by(flat, chunk)

        def noted(x: Any) -> Any:
            shapes.add((chunk, *flat.shape, *x.shape))
            return logits(x)

        return noted

    linear._refuse_places.cache_clear()
    monkeypatch.setattr(linear, "refuse_places", trying)
    monkeypatch.setattr(linear, "logits_by", noting)
    yield tried, trained
    linear._refuse_places.cache_clear()


class Closing(Silent):
    def close(self) -> None:
        pass


N0, WIDTH, ONE = 300, 7, Resources(threads=1)
ONE_VIEW, SEVERAL_VIEWS = (learner_of({"name": "dp_gd", "augment": views}) for views in (1, 3))


@pytest.mark.parametrize("share", [1.0, 0.3], ids=["all", "a part"])
@pytest.mark.parametrize("learner", [ONE_VIEW, SEVERAL_VIEWS], ids=["one view", "several views"])
def test_every_product_of_a_searchs_trainings_is_tried_beforehand(
    share: float, learner: Any, products: tuple[set[Any], set[Any]]
) -> None:
    """Trainings of several lengths leave a pass one by one, and some see a part of the records."""
    tried, trained = products
    constants, search = Constants(N0, 3, WIDTH), Search(eta=(0.01, 5.0), steps=(2, 6))
    layers.ready(learner, constants, ONE, MAX_BATCHED_TRAININGS, share < 1)
    data = Data(np.ones((200, learner.views, WIDTH), np.float32), np.zeros(200, np.int64))
    meters: Any = lambda training, draws: Closing()  # noqa: E731
    asks = [
        NamedAsk(str(place), Ask(4.0 + 8 * (place % 4), 0.5, share=share), learner, search)
        for place in range(70)
    ]
    answers(Bench(data, constants, ONE, meters), asks)
    assert len(trained) > 3
    assert trained <= tried


@pytest.mark.parametrize(("name", "on_parts"), [("liu_talwar", False), ("propose_test", True)])
def test_a_search_says_how_it_trains(
    name: str, on_parts: bool, made: SceneFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(learner: Any, constants: Any, resources: Any, trainings: int, parts: bool) -> None:
        raise Refused(f"{trainings} {parts}")

    changes, wildcards = ASKING[f"private_search {name}"]
    monkeypatch.setattr(layers, "ready", refuse)
    scene = made.scene(terms("add_remove"), changes)
    check_refused(scene, "private_search", wildcards, f"^{MAX_BATCHED_TRAININGS} {on_parts}$")


def test_every_product_of_a_rung_is_tried_beforehand(
    made: SceneFolder, products: tuple[set[Any], set[Any]]
) -> None:
    tried, _ = products
    scene = made.scene(terms("add_remove"), SWEEP)
    task = scene.task("run_trial", {"rung": "0", "trial": "0"}, UNITS)
    with job_environment(scene.folder, scene.home):
        release = run_trial._release([run_trial._prepare_trial(task)] * 3)
        assert release.ready is not None
        release.ready()
    assert {heads // CLASSES for _, heads, *_ in tried} == {1, 2, 3}
