"""The wrapper around every script: what it lets out, and what it keeps."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CANARY = "canary-4711"
SCRIPT = """
import sys
from types import SimpleNamespace
from dpladder.errors import Refused
from dpladder.job import run

class Named(dict):
    pass

def work(task):
    print("said on stdout")
    print("said on stderr", file=sys.stderr)
    import os
    os.write(2, b"said by C code\\n")
    {body}

run(SimpleNamespace(
    rule="run_trial", wildcards=Named(experiment="main", trial="0"),
    params=SimpleNamespace(cfg={{"places": {{"diagnostics": "private/lineage/diagnostics"}}}}, code="c"),
    input=Named(), output=Named(score="results/score.json"), log=["logs/trial.log"], threads=1, resources=Named(mem_mb=100),
), work)
"""


def job(body: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", SCRIPT.format(body=body)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )


def everything_public(folder: Path) -> str:
    files = [
        path
        for path in folder.rglob("*")
        if path.is_file() and "private" not in path.relative_to(folder).parts
    ]
    return "".join(f"{path} {path.read_text()}" for path in files)


def test_all_output_goes_to_the_log(tmp_path: Path) -> None:
    done = job("pass", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    log = (tmp_path / "logs/trial.log").read_text()
    assert all(said in log for said in ("said on stdout", "said on stderr", "said by C code"))


@pytest.mark.parametrize(
    "body",
    [
        f"raise ValueError('{CANARY}')",
        f"raise KeyboardInterrupt('{CANARY}')",
        f"sys.exit('{CANARY}')",
        f"raise RuntimeError from ValueError('{CANARY}')",
        f"{{}}['{CANARY}']",
    ],
)
def test_an_unforeseen_error_leaves_only_its_type(tmp_path: Path, body: str) -> None:
    done = job(body, tmp_path)
    assert done.returncode == 1
    assert CANARY not in everything_public(tmp_path) + done.stdout + done.stderr
    (details,) = (tmp_path / "private/lineage/diagnostics").iterdir()
    assert CANARY in details.read_text()
    assert details.stat().st_mode & 0o777 == 0o600


def test_a_refusal_is_said_in_full(tmp_path: Path) -> None:
    done = job("raise Refused('the budget is spent')", tmp_path)
    assert done.returncode == 1
    assert (
        "run_trial (experiment main, trial 0): the budget is spent"
        in (tmp_path / "logs/trial.log").read_text()
    )


def test_every_failure_has_the_same_exit_code(tmp_path: Path) -> None:
    assert {
        job(body, tmp_path).returncode for body in ("sys.exit(7)", "raise ValueError", "raise MemoryError")
    } == {1}
