"""What cannot be trained is refused before it is charged, by every rule that trains."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from dpladder.audit import searches
from dpladder.audit.rules import terms
from dpladder.audit.scene import LINEAGE, Units, job_environment, scene_folder
from dpladder.errors import Refused
from dpladder.jobs.estimate_head import release_of
from dpladder.jobs.release import release_once
from dpladder.jobs.run import run_rule
from dpladder.learn import layers, linear
from dpladder.learn.finetune import predict
from dpladder.privacy.ledger import book
from dpladder.privacy.ledger.book import Ledger

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


@pytest.mark.parametrize("asking", ASKING)
def test_what_cannot_be_trained_is_refused_before_it_is_charged(
    asking: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise Refused("this network cannot be trained")

    changes, wildcards = ASKING[asking]
    rule = asking.partition(" ")[0]
    with scene_folder(b"the key of tests of what is ready"[:32]) as made:
        scene = made.scene(terms("add_remove"), changes)
        task = scene.task(rule, wildcards, UNITS)
        monkeypatch.setattr(layers, "ready", refuse)
        with (
            job_environment(scene.folder, scene.home),
            pytest.raises(Refused, match="cannot be trained"),
        ):
            run_rule(task)
        state = book.load(Ledger(scene.home, LINEAGE))
        assert {held.status for held in state.items.values()} == {"RESERVED"}


@pytest.mark.parametrize(
    ("rule", "wildcards", "changes"),
    [("train_final", {"target": "40"}, {}), ("estimate_head", {}, HEAD)],
    ids=["linear head", "head of a network"],
)
def test_a_machine_that_rounds_by_places_is_refused_before_it_is_charged(
    rule: str, wildcards: dict[str, str], changes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One record more would move all others by a place."""

    def last_rows_otherwise(flat: Any, chunk: int) -> Any:
        return lambda x: torch.cat([flat @ x[:-8].T, flat @ x[-8:].T * (1 + 1e-6)], 1)

    with scene_folder(b"the key of tests of what is ready"[:32]) as made:
        scene = made.scene(terms("add_remove", 40.0), changes)
        task = scene.task(rule, wildcards, UNITS)
        linear._refuse_places.cache_clear()
        monkeypatch.setattr(linear, "logits_by", last_rows_otherwise)
        with (
            job_environment(scene.folder, scene.home),
            pytest.raises(Refused, match="by its place among others"),
        ):
            run_rule(task)
        state = book.load(Ledger(scene.home, LINEAGE))
        assert {charge.status for charge in state.items.values()} == {"RESERVED"}


def test_a_head_is_charged_only_where_its_network_can_be_trained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing else would start from it."""
    asked = []

    def refuse(learner: Any, *_: Any) -> None:
        asked.append(learner.trains)
        if learner.trains != "head":
            raise Refused("this network cannot be trained")

    with scene_folder(b"the key of tests of what is ready"[:32]) as made:
        scene = made.scene(terms("add_remove", 40.0), HEAD)
        task = scene.task("estimate_head", {}, UNITS)
        monkeypatch.setattr(predict, "ready", refuse)
        with (
            job_environment(scene.folder, scene.home),
            pytest.raises(Refused, match="cannot be trained"),
        ):
            release_once(release_of(task))
        assert asked == ["head", "last_block"]
        state = book.load(Ledger(scene.home, LINEAGE))
        assert {held.status for held in state.items.values()} == {"RESERVED"}
        other = made.scene(terms("add_remove", 40.0), HEAD, {"learner": {"trains": "all"}})
        same = other.task("estimate_head", {}, UNITS)
        assert same.cfg["network"] != task.cfg["network"]
        assert same.public_cfg == task.public_cfg  # it starts every network from the same head
