"""A place for attacks on the rules, and audits short enough for a fast test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dpladder_audit.engine import attack
from dpladder_audit.scene import SceneFolder, scene_folder

KEY = b"another public key of test audit"


@pytest.fixture
def made() -> Iterator[SceneFolder]:
    with scene_folder(KEY) as found:
        yield found


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer runs widen every bound by as much; what makes no noise (sensitivity, refusals) is as
    sharp as ever."""
    monkeypatch.setattr(attack, "ROUNDS", 120)
    monkeypatch.setattr(attack, "RUNS", 1200)
    monkeypatch.setattr(attack, "FEW_RUNS", 100)
