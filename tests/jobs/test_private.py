"""What a private job asks: every file that its answer hangs on is a part of the question."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dpladder.jobs import private
from dpladder.jobs.private import shared


def job(given: dict[str, str], features: dict[str, str] | None = None) -> Any:
    places = SimpleNamespace(features=features or {})
    return SimpleNamespace(input=given, reads=SimpleNamespace(places=places))


@pytest.mark.parametrize("name", ["mean", "covariance", "statistics", "start"])
def test_another_file_behind_a_training_is_another_question(name: str, tmp_path: Path) -> None:
    """Asked alike, the two trainings would have the same noise, and their difference none."""
    path = tmp_path / f"{name}.safetensors"
    task = job({name: str(path)})
    found = []
    for content in (b"one", b"another"):
        path.write_bytes(content)
        found.append(shared(task))
    assert found[0] != found[1]
    assert shared(job({})) not in found


def test_a_sample_that_guides_is_a_part_of_the_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So that the same noise is never drawn beside other public records."""
    seals = iter(("one", "another"))
    monkeypatch.setattr(private, "part_of", lambda task, part: SimpleNamespace(seal=next(seals)))
    found = [shared(job({}, {"train": "t", "sample": "s"})) for _ in range(2)]
    assert found[0] != found[1]
    assert "sample" not in shared(job({}, {"train": "t"}))
