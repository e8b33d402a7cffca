"""Who trains and who is kept for what, where the config leaves it open: settled for a lineage's
life, and told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from workflow.test_formats import reconfigure, unpacked

from dpladder.config.load import overlay, resolve
from dpladder.plan.dag import build_dag
from dpladder.plan.plan import make_plan
from dpladder.plan.resolve import resolve_defaults
from dpladder.plan.startup import known_states, load_past_choices, open_resolved
from dpladder.plan.table import plan_document, plan_table
from dpladder.privacy.ledger.book import open_ledger
from dpladder.privacy.ledger.home import open_home

SHOWN = {"dataset": {"public_test": "mnist5k"}}
PLAIN: dict[str, Any] = {
    "dataset": {"lineage": "small", "source": "digits", "nominal_size": 400},
    "privacy": {"epsilon": 1.0, "delta": 1e-5, "lifetime": {"epsilon": 8.0}},
    "sweep": {"rungs": []},
}


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({}, "hash test=0.2 validation=0.0"),
        (SHOWN, "hash test=0.0 validation=0.0"),
        (overlay(SHOWN, {"dataset": {"split": {"validation": 0.1}}}), "hash test=0.0 validation="),
        (overlay(SHOWN, {"dataset": {"split": {"test": 0.2}}}), "hash test=0.2 validation=0.0"),
        ({"experiments": {"open": SHOWN}}, "hash test=0.2 validation=0.0"),
        (overlay(SHOWN, {"dataset": {"split": {"rule": "given"}}}), "given"),
    ],
)
def test_all_units_of_a_new_lineage_train_where_nobody_asks_for_a_private_test(
    changes: dict[str, Any], rule: str
) -> None:
    made = make_plan(build_dag(resolve_defaults(resolve(overlay(PLAIN, changes)))), {})
    assert made.terms["small"].split_rule.startswith(rule)


def test_a_lineage_keeps_the_split_that_it_was_opened_under(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished = unpacked("1-ladder", tmp_path, monkeypatch)
    reconfigure(finished, "dataset", **SHOWN["dataset"])
    project = open_resolved(["config.yaml"])
    assert project.main.dataset.split.test == 0.2
    make_plan(build_dag(project), known_states(project))  # refuses other terms


def test_a_lineage_that_was_opened_without_a_test_part_stays_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPLADDER_HOME", str(tmp_path / "home"))
    whole = make_plan(build_dag(resolve_defaults(resolve(overlay(PLAIN, SHOWN)))), {})
    open_ledger(open_home(), whole.terms["small"])
    project, _ = load_past_choices(resolve(overlay(PLAIN, SHOWN)))
    assert project.main.dataset.split.test == 0.0


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, "by declaration 400 units train, 100 are the test part"),
        (SHOWN, "by declaration 400 units train, all of them"),
        (
            {"dataset": {"split": {"test": 0.3, "validation": 0.2}}},
            "400 units train, 240 are the test part and 160 are the validation part",
        ),
    ],
)
def test_the_plan_says_how_many_are_kept_for_what(changes: dict[str, Any], told: str) -> None:
    project = resolve_defaults(resolve(overlay(PLAIN, changes)))
    table = plan_table(plan_document(make_plan(build_dag(project), {}), {}, build_dag(project)))
    assert told + "\n" in table


def test_parts_as_given_add_and_nothing_is_said_of_how_many_train() -> None:
    given = {"dataset": {"split": {"rule": "given"}}, "final": {"targets": [1.0]}}
    for changes, parallel in (({}, True), (given, False)):
        project = resolve_defaults(resolve(overlay(PLAIN, changes)))
        table = plan_table(plan_document(make_plan(build_dag(project), {}), {}, build_dag(project)))
        assert ("in parallel" in table) == parallel
        assert ("by declaration" in table) == parallel
