"""Jobs as nodes: what is one job, who owns it, and what its question stands on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support import TINY, node_of

from dpladder.config import Project
from dpladder.config.load import overlay, resolve
from dpladder.plan.dag import build_dag
from dpladder.plan.edits import plan_note
from dpladder.plan.node import Node
from dpladder.plan.resolve import resolve_defaults

FINAL = {"target": "1"}
MEAN: dict[str, Any] = {
    "features": {"mean": {"epsilon": 0.1}},
    "dataset": {"census": {"epsilon": 0.05}},
}


@pytest.fixture(autouse=True)
def _sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("data.npz", "public.npz", "moved.npz"):
        Path(name).touch()


def project(*changes: Mapping[str, Any]) -> Project:
    values: dict[str, Any] = TINY
    for change in changes:
        values = overlay(values, change)
    return resolve_defaults(resolve(values))


def behind(node: Node) -> set[Node]:
    """Every job that a job stands on, or only comes after."""
    parents = {one for nodes in node.inputs.values() for one in nodes}
    return parents.union(*map(behind, parents))


def test_each_job_is_one_node_whoever_asks_for_it() -> None:
    found = build_dag(project({"experiments": {"copy": {}, "other": {"fit": {"degree": 2}}}}))
    assert [*found.jobs("copy", "train_final")] == [*found.jobs("main", "train_final")]
    (other,) = found.jobs("other", "train_final")
    assert other.experiment == "other"
    assert found.jobs("other", "run_trial") == found.jobs("main", "run_trial")
    (summary,) = found.jobs("copy", "summarise")
    assert summary.inputs["finals"] == tuple(found.jobs("main", "train_final"))


def test_totals_in_another_order_make_another_summary() -> None:
    """A summary pairs its inputs with the totals by their places."""
    totals = {"final": {"targets": [1.0, 0.5]}}
    turned = {"experiments": {"turned": {"final": {"targets": [0.5, 1.0]}}}}
    found = build_dag(project(totals, turned))
    (main,), (other,) = (found.jobs(name, "summarise") for name in ("main", "turned"))
    assert [node.wildcards["target"] for node in main.inputs["finals"]] == ["1", "0.5"]
    assert [node.wildcards["target"] for node in other.inputs["finals"]] == ["0.5", "1"]
    assert {*main.inputs["finals"]} == {*other.inputs["finals"]}


def test_a_job_stands_on_jobs_of_its_own_experiments_config_alone() -> None:
    found = build_dag(project(MEAN, {"experiments": {"bare": {"features": {"mean": None}}}}))
    (bare,) = found.jobs("bare", "train_final")
    (main,) = found.jobs("main", "train_final")
    assert "estimate_mean" in {node.rule for node in behind(main)}
    assert "estimate_mean" not in {node.rule for node in behind(bare)}


def test_a_question_changes_with_each_question_that_it_stands_on() -> None:
    before = node_of(project(MEAN), "evaluate", **FINAL)
    other = {"features": {"mean": {"epsilon": 0.2}}}
    dearer = node_of(project(MEAN, other), "evaluate", **FINAL)
    changed = {node.rule for node in behind(before) if node.row.asks}
    assert changed == {"count_units", "estimate_mean", "run_trial", "train_final"}
    was = {node.job: node.question for node in behind(before) if node.row.asks}
    now = {node.job: node.question for node in behind(dearer) if node.row.asks}
    same = {job.rule for job in was if was[job] == now[job]}
    assert same == {"count_units"}  # it comes before, and nothing stands on what it counts
    assert before.question != dearer.question
    # a key that trials alone read, whose scores chose what the final training stands on
    noisier = node_of(project(MEAN, {"sweep": {"select": {"share": 0.4}}}), "evaluate", **FINAL)
    assert before.params["question_id"] != noisier.params["question_id"]
    assert "sweep.select" not in noisier.params


def test_a_source_that_moves_asks_nothing_new_and_shares_no_job() -> None:
    before, moved = project(), project({"dataset": {"source": "npz:moved.npz"}})
    for rule, wildcards in (("evaluate", FINAL), ("train_final", FINAL)):
        here, there = node_of(before, rule, **wildcards), node_of(moved, rule, **wildcards)
        assert here.question == there.question
        assert here.content != there.content


def test_shards_are_how_and_not_what() -> None:
    one, three = project(), project({"features": {"shards": 3}})
    assert len(build_dag(three).jobs("main", "extract_features", part="train")) == 3
    for rule in ("merge_features", "train_final"):
        wildcards = {"part": "train"} if rule == "merge_features" else FINAL
        assert node_of(one, rule, **wildcards).content == node_of(three, rule, **wildcards).content
    assert (
        node_of(one, "train_final", **FINAL).params["places"]
        == node_of(three, "train_final", **FINAL).params["places"]
    )


def test_trials_of_a_rung_differ_in_their_question_alone() -> None:
    trials = build_dag(project()).jobs("main", "run_trial", rung="0")
    assert len({node.question for node in trials}) == len(trials) > 1
    assert len({node.content for node in trials}) == 1
    assert len({node.question_id for node in trials}) == 1


def test_a_mechanism_that_is_bought_stands_behind_all_that_reads_it() -> None:
    """So `respend: [estimate_mean]` asks anew what was trained on that mean."""
    final = node_of(project(MEAN), "train_final", **FINAL)
    assert "estimate_mean" in final.mechanisms_behind
    assert "count_units" not in final.mechanisms_behind


def test_the_learners_that_share_a_head_are_not_told_apart_by_their_public_start() -> None:
    Path("images").mkdir()
    cut: dict[str, Any] = {
        "dataset": {"source": "folder:images", "public_sample": "folder:images/."},
        "features": {"model": "efficientnet_lite0", "until": "blocks.5"},
        "learner": {"name": "dp_finetune", "head": {"epsilon": 0.1}, "public": "gradient"},
        "sweep": {"rungs": []},
    }
    slower = overlay(cut, {"learner": {"momentum": 0.5}})
    one, other = (node_of(project(change), "estimate_head") for change in (cut, slower))
    assert one.inputs["start"][0].content != other.inputs["start"][0].content
    assert one.question == other.question
    assert one.content == other.content


def test_what_a_config_does_not_have_is_no_job() -> None:
    found = build_dag(project())
    assert found.find("train_final", {"experiment": "main", "target": "7"}) is None
    assert found.find("train_final", {"experiment": "nobody", "target": "1"}) is None
    assert found.find("private_search", {"experiment": "main", "target": "1"}) is None
    assert found.find("merge_features", {"experiment": "main", "part": "sample"}) is None


@pytest.mark.parametrize(
    ("key", "change"),
    [
        ("privacy.epsilon", {"privacy": {"epsilon": 0.9}}),
        ("final.targets", {"final": {"targets": [1.0, 0.5]}}),
        ("features.mirror", {"features": {"mirror": True}}),
        ("sweep.rungs", {"sweep": {"rungs": [{"epsilon": 0.1, "trials": 2}]}}),
    ],
)
def test_a_plans_note_has_the_keys_that_jobs_read_as_facts(
    key: str, change: Mapping[str, Any]
) -> None:
    """A refusal names what was edited, by the key that was edited."""
    Path("images").mkdir()
    images: dict[str, Any] = {
        "dataset": {"source": "folder:images"},
        "features": {"model": "efficientnet_lite0"},
        "learner": {"augment": 2},
    }
    before, after = (
        plan_note(build_dag(project(images, edit)), "tiny")["main"]["keys"] for edit in ({}, change)
    )
    assert {name for name in before if before[name] != after[name]} == {key}
