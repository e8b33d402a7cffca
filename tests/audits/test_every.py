"""Everything has an attack; and what is attacked is what the workflow runs, charged as its ledger
charges it."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from threading import Event
from typing import get_args

import pytest

from dpladder.cli import main
from dpladder.config.learners import METHODS
from dpladder.errors import BadInput
from dpladder.jobs.run import run_rule
from dpladder.privacy.accounting.events import Composed, Counted, Relation
from dpladder.privacy.ledger import book
from dpladder.privacy.ledger.book import Ledger
from dpladder_audit import every, kinds, rules, searches
from dpladder_audit.engine.attack import run_audit
from dpladder_audit.engine.findings import Finding, Report, table
from dpladder_audit.scene import LINEAGE, Rule, SceneFolder, job_environment

KEY = b"another public key of test audit"
GROUPS = (*rules.ATTACKED, *searches.ATTACKED)
# the longest, whose mechanisms stand in other groups too: tests/statistical has all in full
AT_NIGHT = {
    *("evaluate", "estimate_head", "estimate_sums", "evaluate_also"),
    *("dp_hypo", "koskela_kulkarni", "liu_talwar", "propose_test", "random_search"),
}


@pytest.mark.parametrize(
    "group",
    [
        pytest.param(group, marks=pytest.mark.long if group in AT_NIGHT else pytest.mark.weaker)
        for group in GROUPS
    ],
)
def test_every_rule_and_every_search_passes(group: str, made: SceneFolder, short: None) -> None:
    report = run_audit(every.mechanisms(group, made), KEY, among=50)
    assert report.ok, table(report)


def test_all_that_can_be_named_is_attacked() -> None:
    assert {*GROUPS, *METHODS, *kinds.ATTACKED} == set(every.groups())


@pytest.mark.ci
def test_rules_and_searches_are_run_under_both_relations_or_left_out_for_a_reason(
    made: SceneFolder,
) -> None:
    named = [
        *(f"rule {name}" for name in rules.ATTACKED),
        *(f"search {name}" for name in searches.ATTACKED),
    ]
    left = every.skipped_combinations(GROUPS)
    assert all(one.why for one in left)
    run = {one.name for group in GROUPS for one in every.mechanisms(group, made)}
    for name, relation in product(named, get_args(Relation)):
        assert any(one.startswith(name) and relation in one for one in run) == (
            f"{name} {relation}" not in {one.what for one in left}
        )


def test_a_rule_without_an_attack_fails_the_audit(monkeypatch, tmp_path, capsys) -> None:
    """A search has one by its `METHOD`."""
    monkeypatch.delitem(rules.ATTACKED, "evaluate")
    monkeypatch.setenv("DPLADDER_HOME", str(tmp_path / "home"))
    assert main(["audit"]) == BadInput.exit_code
    assert "evaluate has no audit" in capsys.readouterr().err


def test_what_is_attacked_is_what_the_ledger_is_charged(made: SceneFolder) -> None:
    attacked = rules.mean(made, "replace_one")
    rule: Rule = attacked.run.func.__self__  # type: ignore[attr-defined]
    with job_environment(rule.scene.folder, rule.scene.home):
        run_rule(rule.scene.task("estimate_mean", {}, attacked.neighbours[0][0]))
    [held] = [
        h
        for h in book.load(Ledger(rule.scene.home, LINEAGE)).charges.values()
        if h.status == "DONE"
    ]
    assert Composed(tuple(Counted(s.event, s.count) for s in held.spends)) == attacked.event
    assert [draw["scale"] for draw in held.draws] == [draw.scale for draw in attacked.draws]


def test_a_pipe_shows_each_group_as_soon_as_it_is_attacked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The first group ends only when a reader of the pipe has seen that the second one did."""
    first, second, *_ = chosen = every.groups("dp_ls")
    read, write = os.pipe()
    seen = Event()

    def attack(key: bytes, number: int, group: str) -> Report:
        if group == first:
            assert seen.wait(60), "no line about the others, while the first is attacked"
        return Report(0.0, (Finding(group, "a check", 0, 0, 0, 0),))

    def read_lines() -> list[str]:
        lines = []
        with open(read) as pipe:
            for line in pipe:
                lines.append(line.rstrip())
                if line.endswith(f": {second}\n"):
                    seen.set()
        return lines

    monkeypatch.setattr(every, "_run_attack", attack)
    monkeypatch.setattr(every, "ProcessPoolExecutor", lambda _, **how: ThreadPoolExecutor(2))
    monkeypatch.setenv("DPLADDER_HOME", str(tmp_path / "home"))
    with ThreadPoolExecutor(1) as reader:
        lines = reader.submit(read_lines)
        with monkeypatch.context() as within, open(write, "w") as pipe:
            within.setattr(sys, "stderr", pipe)
            assert main(["audit", "--learner", "dp_ls"]) == 0
        said = lines.result()
    number = len(chosen)
    assert said[0] == f"audit: 0 of {number} groups attacked"
    assert said[-1].startswith(f"audit: {number} of {number} groups attacked, the last: ")
    assert len(said) == number + 1
    order = [line.rpartition(": ")[2] for line in said[1:]]
    assert order.index(second) < order.index(first)
    table_shown = capfd.readouterr().out  # in its own order, whichever ended first
    assert table_shown.index(first) < table_shown.index(second)
