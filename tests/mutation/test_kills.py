"""Generated bugs: what is made of a module, and that what a test catches is told from what none
does."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
from mutation.operators import bugs

ROOT = Path(__file__).parents[2]

EDITS = {
    "return a < b": {"a <= b"},
    "return a == b": {"a != b"},
    "return a + 2": {"a - 2", "3"},
    "return max(a, b)": {"min(a, b)"},
    "return sqrt(a)": {"a"},
    "return not a": {"a"},
    "return a or b": {"a", "b"},
    "return 2.0": {"2.2"},
    "return [x for x in a if x]": {" for x in a"},
    "return b if a else c": {"b if True else c", "b if False else c"},
    "with a:\n  return b": {"if True:\n    return b"},
    "a.b = c": {"nothing"},
    "f(a)": {"nothing"},
    "raise E(1 + 1)": set(),
    "return f'{a}' + 'b'": set(),
}


@pytest.mark.ci
@pytest.mark.parametrize("body", EDITS)
def test_a_function_is_edited_in_each_place_once(body: str) -> None:
    lines = "\n".join(f"  {line}" for line in body.splitlines())
    source = f"def f(a: int = 1) -> int:\n{lines}\n"
    made = list(bugs(source))
    assert {bug.new for bug in made} == EDITS[body]
    assert len({ast.dump(bug.tree) for bug in made} | {ast.dump(ast.parse(source))}) == 1 + len(
        made
    )


@pytest.mark.ci
def test_bugs_that_tests_catch_are_told_from_those_that_none_sees(tmp_path: Path) -> None:
    """Of the two directions of one rounding, a test that looks at one alone."""
    out = tmp_path / "bugs.jsonl"
    tests = "tests/privacy/accounting/test_remaining.py"
    plugins = ("-p", "mutation.kills", "-p", "no:xdist", "-p", "no:cacheprovider")
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", *plugins, tests, "-k", "shown_epsilon"),
            *("--killers", "2", "--bugs-out", out, "--bugs-in", "privacy/accounting/rounding.py"),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    rows = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    killers = {(old, new): (entering, found) for _, _, old, new, entering, found in rows}
    entering, found = killers["value == math.inf", "value != math.inf"]
    assert entering == len(found) == 1
    assert killers["1.0 - inside", "1.0 + inside"] == (0, [])
    assert "| test | catches | alone |" in out.with_suffix(".md").read_text("utf-8")
