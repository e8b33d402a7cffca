"""What a private job asks: every file that its answer hangs on is a part of the question."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from dpladder.jobs.private import shared


@pytest.mark.parametrize("name", ["mean", "covariance", "statistics", "start"])
def test_another_file_behind_a_training_is_another_question(name: str, tmp_path: Path) -> None:
    """Asked alike, the two trainings would have the same noise, and their difference none."""
    path = tmp_path / f"{name}.safetensors"
    task = SimpleNamespace(input={name: str(path)})
    found = []
    for content in (b"one", b"another"):
        path.write_bytes(content)
        found.append(shared(task))
    assert found[0] != found[1]
    assert shared(SimpleNamespace(input={})) not in found
