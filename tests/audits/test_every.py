"""Everything has an attack; and what is attacked is what the workflow runs, charged as its ledger charges it."""

from __future__ import annotations

import pytest

from dpladder.audits import every, rules, searches
from dpladder.audits.scene import LINEAGE, Rule, SceneFolder, within
from dpladder.cli import main
from dpladder.errors import BadInput
from dpladder.jobs.estimate_mean import estimate_mean
from dpladder.learn import audits, registry
from dpladder.learn.dp_gd import audit as dp_gd
from dpladder.privacy.accounting.events import Composed, Counted
from dpladder.privacy.audit.attack import run_audit, table
from dpladder.privacy.ledger import book
from dpladder.privacy.ledger.book import Ledger

KEY = b"a public key for audits in tests"
GROUPS = (*rules.ATTACKED, *searches.ATTACKED)


@pytest.mark.weaker
@pytest.mark.parametrize("group", GROUPS)
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
    monkeypatch.setattr(dp_gd, "mechanisms", lambda: ())
    with pytest.raises(BadInput, match="learner dp_gd has no audit"):
        audits.mechanisms("dp_gd")


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
    [held] = [h for h in book.load(Ledger(rule.scene.home, LINEAGE)).items.values() if h.status == "DONE"]
    assert Composed(tuple(Counted(s.event, s.count) for s in held.spends)) == attacked.event
    assert [draw["scale"] for draw in held.draws] == [draw.scale for draw in attacked.draws]
