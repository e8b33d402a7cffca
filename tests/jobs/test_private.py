"""What a private job asks: every file that its answer hangs on is a part of the question."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dpladder.config.learner_sections import FineTune, Head
from dpladder.errors import Refused
from dpladder.jobs import private
from dpladder.jobs.private import shared
from dpladder.privacy.ledger.home import Home


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


def test_a_head_that_was_bought_must_be_the_one_that_was_released(tmp_path: Path) -> None:
    """One that public records trained for nothing is known by its bytes alone (`shared`)."""
    ledger: Any = SimpleNamespace(home=Home(tmp_path), lineage="tiny")
    head = tmp_path / "head.safetensors"
    head.write_bytes(b"another")
    task = job({"start": str(head)})
    task.reads.mean, task.reads.learner = None, FineTune(init="public")
    private._check_releases(task, ledger)
    task.reads.learner = FineTune(head=Head(epsilon=1.0))
    with pytest.raises(Refused, match="is not what was released under lineage tiny"):
        private._check_releases(task, ledger)
