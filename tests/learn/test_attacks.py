"""The learners' audits, short: as sharp as ever in what makes no noise, sensitivities and refusals."""

from __future__ import annotations

import pytest

from dpladder.learn import audits
from dpladder.learn.attacks import clipped_losses
from dpladder.learn.registry import LEARNERS
from dpladder.privacy.accounting.events import Relation
from dpladder.privacy.audit import attack
from dpladder.privacy.audit.attack import run_audit, table

KEY = b"a public key for audits in tests"


@pytest.fixture(name="short")
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attack, "ROUNDS", 40)
    monkeypatch.setattr(attack, "RUNS", 1500)
    monkeypatch.setattr(attack, "FEW_RUNS", 100)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_clipped_losses_pass_a_short_audit(relation: Relation) -> None:
    report = run_audit([clipped_losses(relation)], KEY, among=50)
    assert report.ok, table(report)


@pytest.mark.long
@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_passes_a_short_audit(name: str) -> None:
    report = run_audit(audits.mechanisms(name), KEY, among=50)
    assert report.ok, table(report)
