"""Approved texts are compared, renewed by hand alone, and each belongs to a test."""

from __future__ import annotations

import re
from pathlib import Path

import approval
import pytest

NAMES = [path.stem for path in sorted(approval.FOLDER.glob("*.txt"))]


@pytest.mark.parametrize("name", [name for name in NAMES if name != "bad_configs"])
def test_each_approved_text_belongs_to_a_test(name: str) -> None:
    """Those of bad_configs are the cases themselves."""
    tests = "\n".join(path.read_text("utf-8") for path in Path(__file__).parent.rglob("test_*.py"))
    wanted = {heading.partition("[")[0].partition(" ")[0] for heading in approval.read(name)}
    assert [test for test in sorted(wanted) if f"def {test}(" not in tests] == []


def test_a_text_that_nobody_approved_fails_and_renewing_approves_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approval, "FOLDER", tmp_path)
    approval.write("room", {"b": "old\n", "c": "same\n"})
    for heading, text in (("b", "new"), ("a", "first"), ("b", "old and more")):
        with pytest.raises(AssertionError, match="make approve"):
            approval.compare("room", heading, text, renew=False)
    approval.compare("room", "b", "new", renew=True)
    approval.compare("room", "a", "two\nlines", renew=True)
    assert approval.read("room") == {"a": "two\nlines\n", "b": "new\n", "c": "same\n"}
    assert re.match(r"=== a\n", (tmp_path / "room.txt").read_text("utf-8"))
