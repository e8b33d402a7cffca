"""The learners' audits, short: as sharp as ever in what makes no noise, sensitivities and refusals."""

from __future__ import annotations

import pytest

from dpladder.learn import audits
from dpladder.learn.registry import LEARNERS
from dpladder.privacy.audit import attack
from dpladder.privacy.audit.attack import run_audit, table

KEY = b"a public key for audits in tests"


@pytest.mark.long
@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_passes_a_short_audit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attack, "ROUNDS", 40)
    monkeypatch.setattr(attack, "RUNS", 1500)
    monkeypatch.setattr(attack, "FEW_RUNS", 100)
    report = run_audit(audits.mechanisms(name), KEY, among=50)
    assert report.ok, table(report)
