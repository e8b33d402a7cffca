"""Code digests: what counts as a change, and what is declared unable to make one."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dpladder.plan.digests import INERT, PACKAGE, digest_of
from dpladder.plan.rule_specs import rule_code

SRC = PACKAGE.parent


def trial_in(tree: Path) -> str:
    """The digest of a DP-GD trial as a fresh process sees it in a copy of the package."""
    run = subprocess.run(
        [
            sys.executable,
            "-c",
            "from dpladder.plan.rule_specs import rule_code; print(rule_code('run_trial', "
            "'dp_gd'))",
        ],
        env={"PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stdout.strip()


@pytest.fixture(scope="module")
def before() -> str:
    """The digest in a copy that nobody edited: it does not depend on where that lies."""
    return trial_in(SRC)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(
        SRC / "dpladder", tmp_path / "dpladder", ignore=shutil.ignore_patterns("__pycache__")
    )
    return tmp_path


@pytest.mark.ci
@pytest.mark.parametrize(
    ("file", "edit"),
    [
        ("privacy/accounting/gdp.py", lambda text: "# a comment\n" + text),
        ("privacy/accounting/gdp.py", lambda text: text.replace('"""', '"""Reworded. ', 1)),
        ("privacy/accounting/gdp.py", lambda text: text.replace("\n\n\ndef ", "\n\n\n\n\ndef ")),
        ("privacy/ledger/book.py", lambda text: text + "\nUNUSED = 1\n"),
        ("privacy/statement/build.py", lambda text: text + "\nUNUSED = 1\n"),
        ("report/ladder_figure.py", lambda text: text + "\nUNUSED = 1\n"),
        ("methods/dp_newton/queries.py", lambda text: text + "\nUNUSED = 1\n"),
        ("learn/trainings.py", lambda text: text + "\nUNUSED = 1\n"),
    ],
    ids=[
        "comment",
        "docstring",
        "blank lines",
        "ledger",
        "statement",
        "report",
        "another learner",
        "registry",
    ],
)
def test_what_cannot_change_a_trial_leaves_its_digest(
    copy: Path, file: str, edit, before: str
) -> None:
    path = copy / "dpladder" / file
    path.write_text(edit(path.read_text()))
    assert trial_in(copy) == before


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "file",
    [
        "privacy/accounting/gdp.py",
        "privacy/release/noise.py",
        "privacy/release/meter.py",
        "methods/dp_gd/queries.py",
        "learn/linear.py",
        "learn/descent.py",
        "search/space.py",
    ],
)
def test_what_computes_a_trial_changes_its_digest(copy: Path, file: str, before: str) -> None:
    path = copy / "dpladder" / file
    path.write_text(path.read_text() + "\nUNUSED = 1\n")
    assert trial_in(copy) != before


def test_the_fit_does_not_depend_on_the_engine() -> None:
    engine = "dpladder.learn.linear"
    assert digest_of("dpladder.jobs.fit_radius", engine) != digest_of("dpladder.jobs.fit_radius")


@pytest.mark.ci
def test_a_digest_does_not_depend_on_where_the_clone_lies(copy: Path) -> None:
    assert trial_in(copy) == rule_code("run_trial", "dp_gd")


@pytest.mark.parametrize("name", sorted(INERT))
def test_inert_modules_compute_no_arrays(name: str) -> None:
    """What is left out of every digest may move bytes, parse, plan and refuse: it never holds the
    numbers of a release."""
    base = PACKAGE.joinpath(*name.split(".")[1:])
    path = base.with_suffix(".py") if base.with_suffix(".py").is_file() else base / "__init__.py"
    imported = {
        module.split(".")[0]
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        for module in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert not imported & {"numpy", "torch", "scipy", "pandas", "random"} - (
        {"random"} if name.endswith("journal") else set()
    )
