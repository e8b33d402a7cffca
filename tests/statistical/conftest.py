"""Audits of planted bugs that need no statistics."""

from __future__ import annotations

import pytest

from dpladder_audit.engine import attack


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """What moves sums, or repeats noise to the last bit, shows in few runs too: more would be
    sharper still."""
    monkeypatch.setattr(attack, "ROUNDS", 60)
    monkeypatch.setattr(attack, "RUNS", 100)
    monkeypatch.setattr(attack, "FEW_RUNS", 100)
