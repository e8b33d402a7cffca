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
    params=SimpleNamespace(cfg={cfg}, code="c"),
    input=Named(), output=Named(score="results/score.json"), log=["logs/trial.log"], threads=1, resources=Named({resources}),
), work)
"""


PRIVATE = {"places": {"diagnostics": "private/lineage/diagnostics"}}
DETAILS = "private/lineage/diagnostics/run_trial-main-0.txt"


def job(
    body: str, folder: Path, cfg: object = PRIVATE, resources: str = "mem_mb=100"
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", SCRIPT.format(body=body, cfg=cfg, resources=resources)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(("resources", "gpus"), [("mem_mb=100, gpu=2", 2), ("mem_mb=100", 0)])
def test_a_job_is_told_how_many_gpus_it_has(tmp_path, resources, gpus):
    assert job(f"assert task.resources.gpu == {gpus}", tmp_path, resources=resources).returncode == 0


def everything_public(folder: Path) -> str:
    files = [
        path
        for path in folder.rglob("*")
        if path.is_file() and "private" not in path.relative_to(folder).parts
    ]
    return "".join(f"{path} {path.read_text()}" for path in files)


@pytest.mark.parametrize(
    ("cfg", "place"), [({}, "logs/trial.log"), (PRIVATE, DETAILS)], ids=["public", "private"]
)
def test_what_a_job_and_its_libraries_say_goes_to_one_place(tmp_path: Path, cfg: object, place: str) -> None:
    done = job("pass", tmp_path, cfg)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    said = (tmp_path / place).read_text()
    assert all(line in said for line in ("said on stdout", "said on stderr", "said by C code"))


def test_the_log_of_a_job_that_reads_private_files_holds_none_of_its_output(tmp_path: Path) -> None:
    assert job("pass", tmp_path).returncode == 0
    assert (tmp_path / "logs/trial.log").read_text() == ""


def test_the_folder_for_details_is_private_from_its_top(tmp_path: Path) -> None:
    assert job("pass", tmp_path).returncode == 0
    details = tmp_path / DETAILS
    assert details.stat().st_mode & 0o777 == 0o600
    modes = {
        folder.stat().st_mode & 0o777
        for folder in details.parents
        if folder.is_relative_to(tmp_path / "private")
    }
    assert modes == {0o700}


def test_an_unforeseen_error_of_a_job_that_reads_nothing_private_is_told_in_full(tmp_path: Path) -> None:
    assert job("raise ValueError('a public figure')", tmp_path, {}).returncode == 1
    assert "ValueError: a public figure" in (tmp_path / "logs/trial.log").read_text()


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


def test_a_job_that_spends_runs_only_the_code_that_was_planned(tmp_path: Path) -> None:
    done = job("print('ran')", tmp_path, cfg=PRIVATE | {"static": "s"})
    assert done.returncode == 1
    assert "the package's code changed" in everything_public(tmp_path)
    assert "ran" not in (tmp_path / DETAILS).read_text()
