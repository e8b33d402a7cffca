"""Everything has an attack; and what is attacked is what the workflow runs, charged as its ledger
charges it."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import get_args

import pytest
from pydantic import ValidationError

from dpladder.audit import every, rules, searches
from dpladder.audit import learners as audits
from dpladder.audit.engine.attack import run_audit
from dpladder.audit.engine.cells import GridCell
from dpladder.audit.engine.findings import table
from dpladder.audit.engine.mechanism import Mechanism
from dpladder.audit.methods import dp_gd
from dpladder.audit.scene import LINEAGE, Rule, SceneFolder, within
from dpladder.cli import main
from dpladder.config.learner_sections import learner_of
from dpladder.errors import BadInput
from dpladder.jobs.estimate_mean import estimate_mean
from dpladder.learn import registry
from dpladder.privacy.accounting.events import Composed, Counted, Relation
from dpladder.privacy.ledger import book
from dpladder.privacy.ledger.book import Ledger

KEY = b"another public key of test audit"
GROUPS = (*rules.ATTACKED, *searches.ATTACKED)
# the longest, whose mechanisms stand in other groups too: tests/statistical has all in full
AT_NIGHT = {"evaluate", "estimate_head", "evaluate_also", "dp_hypo", "propose_test"}


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
    assert set(GROUPS) | set(registry.LEARNERS) < set(every.groups())


def test_a_learner_without_an_audit_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "LEARNERS", (*registry.LEARNERS, "dp_new"))
    with pytest.raises(BadInput, match="learner dp_new has no audit"):
        audits.mechanisms("dp_new")


def test_a_learner_whose_audit_attacks_nothing_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(dp_gd, "in_cell")
    with pytest.raises(BadInput, match="learner dp_gd has no audit"):
        audits.mechanisms("dp_gd")


@pytest.mark.parametrize("field", ["relation", "sampled", "cap", "views"])
def test_an_attack_that_forgets_what_its_cell_says_is_an_error(
    field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, honest = GridCell("dp_gd", "add_remove"), dp_gd.in_cell

    def forgetful(cell: GridCell) -> Mechanism:
        return honest(replace(cell, **{field: getattr(plain, field)}))

    monkeypatch.setattr(dp_gd, "in_cell", forgetful)
    with pytest.raises(BadInput, match=r"the attack on dp_gd .* runs dp_gd "):
        audits.mechanisms("dp_gd")


def test_the_grid_is_run_or_left_out_for_a_reason() -> None:
    """Counted here anew, so that no learner, relation, sample, cap or view can fall out."""
    asked = product(registry.LEARNERS, get_args(Relation), (False, True), (1, 2), (1, 2))
    grid = {str(GridCell(*each)) for each in asked}
    run = [str(one.cell) for name in registry.LEARNERS for one in audits.in_cells(name)]
    left = [one for name in registry.LEARNERS for one in audits.left_out(name)]
    assert len(grid) == 15 * 16
    assert {*run} | {one.what for one in left} == grid
    assert not {*run} & {one.what for one in left}
    assert all(one.why for one in left)


@pytest.mark.ci
def test_rules_and_searches_are_run_under_both_relations_or_left_out_for_a_reason(
    made: SceneFolder,
) -> None:
    named = [
        *(f"rule {name}" for name in rules.ATTACKED),
        *(f"search {name}" for name in searches.ATTACKED),
    ]
    left = every.left_out(GROUPS)
    assert all(one.why for one in left)
    run = {one.name for group in GROUPS for one in every.mechanisms(group, made)}
    for name, relation in product(named, get_args(Relation)):
        assert any(one.startswith(name) and relation in one for one in run) == (
            f"{name} {relation}" not in {one.what for one in left}
        )


@pytest.mark.parametrize("name", registry.LEARNERS)
def test_what_a_config_can_ask_for_is_not_left_out(name: str) -> None:
    """A cell is left out where the config refuses to set what it needs, and nowhere else."""
    for key, value in (("sampling_rate", 0.5), ("augment", 2)):
        cell = GridCell(name, "add_remove", key == "sampling_rate", 1, 1 + (key == "augment"))
        try:
            learner_of({"name": name, key: value})
        except ValidationError:
            assert audits.why_not(cell)
        else:
            assert not audits.why_not(cell)


@pytest.mark.parametrize(
    ("attacked", "name"),
    [(searches.ATTACKED, "dp_hypo"), (rules.ATTACKED, "evaluate")],
    ids=["a search", "a rule"],
)
def test_what_has_no_attack_fails_the_audit(attacked, name, monkeypatch, tmp_path, capsys) -> None:
    monkeypatch.delitem(attacked, name)
    monkeypatch.setenv("DPLADDER_HOME", str(tmp_path / "home"))
    assert main(["audit"]) == BadInput.exit_code
    assert f"{name} has no audit" in capsys.readouterr().err


def test_a_learner_in_the_config_alone_fails_the_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(every, "LEARNERS", registry.LEARNERS[1:])
    with pytest.raises(BadInput, match=f"learner {registry.LEARNERS[0]} has no audit"):
        every.groups()


def test_what_is_attacked_is_what_the_ledger_is_charged(made: SceneFolder) -> None:
    attacked = rules.mean(made, "replace_one")
    rule: Rule = attacked.run.func.__self__  # type: ignore[attr-defined]
    with within(rule.scene.folder, rule.scene.home):
        estimate_mean(rule.scene.task("estimate_mean", {}, attacked.neighbours[0][0]))
    [held] = [
        h for h in book.load(Ledger(rule.scene.home, LINEAGE)).items.values() if h.status == "DONE"
    ]
    assert Composed(tuple(Counted(s.event, s.count) for s in held.spends)) == attacked.event
    assert [draw["scale"] for draw in held.draws] == [draw.scale for draw in attacked.draws]
