"""Each planted bug is caught, and the tests that catch it pass without it.

A mutant is a copy of the package with one edit, put before the package itself; its tests run in a
process of their own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mutation.mutants import MUTANTS, Mutant
from mutation.planting import planted

ROOT = Path(__file__).parents[2]
# One bug for each thing that a guarantee rests on: the clip, the noise, its grid, its nonce, the
# charge, the limit, the sum.
IN_CI = {
    "gradients are not clipped",
    "a release is not rounded",
    "commit does not join draws and charges",
    "commit does not ask the lifetime",
    "what was used can be refunded",
    "a trial's score is not charged",
    "delta0 is forgotten where entries add",
    "sigma forgets the steps",
}
PLANTED = [
    pytest.param(mutant, id=mutant.name, marks=[pytest.mark.ci] if mutant.name in IN_CI else [])
    for mutant in MUTANTS
]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    made = tmp_path / "src"
    shutil.copytree(ROOT / "src", made, ignore=shutil.ignore_patterns("__pycache__"))
    return made


def run(copy: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """On the copy. What the package remembers on disk must not pass from one mutant to the next."""
    memory = {
        "DPLADDER_HOME": str(copy.parent / "home"),
        "XDG_CACHE_HOME": str(copy.parent / "cache"),
    }
    own = {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1", **memory}
    command = (sys.executable, *command)
    return subprocess.run(
        command, cwd=ROOT, env=os.environ | own, capture_output=True, text=True, check=False
    )


def run_tests(copy: Path, *tests: str) -> subprocess.CompletedProcess[str]:
    places = [str(ROOT / "tests" / test) for test in dict.fromkeys(tests)]
    plugins = ("-p", "no:cacheprovider", "-p", "no:xdist", "-p", "mutation.unshrunk")
    return run(copy, "-m", "pytest", "-x", *plugins, *places)


@pytest.mark.ci
def test_what_ci_plants_is_in_the_table() -> None:
    assert {mutant.name for mutant in MUTANTS} >= IN_CI


@pytest.mark.parametrize("mutant", PLANTED)
def test_a_planted_bug_is_caught(mutant: Mutant, copy: Path) -> None:
    edited = copy / mutant.path
    edited.write_text(
        planted(edited.read_text("utf-8"), mutant.at, mutant.old, mutant.new), "utf-8"
    )
    ended = run_tests(copy, *mutant.tests)
    assert ended.returncode == 1, ended.stdout + ended.stderr  # 1: tests ran, and some failed


def test_without_a_bug_the_same_tests_pass(copy: Path) -> None:
    whole = [test for mutant in MUTANTS for test in mutant.tests]
    files = {test for test in whole if "::" not in test}
    ended = run_tests(
        copy, *sorted(files), *(test for test in whole if test.partition("::")[0] not in files)
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.ci
def test_it_is_the_copy_that_is_tested(copy: Path) -> None:
    ended = run(copy, "-c", "import dpladder; print(dpladder.__file__)")
    assert ended.stdout.startswith(str(copy))
