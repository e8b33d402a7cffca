"""The wrapper around every script: what it lets out, and what it keeps."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from pydantic import ValidationError

from dpladder.config.model import Resources
from dpladder.jobs.run import module_of_rule
from dpladder.jobs.task import COSTS, Task
from dpladder.plan import package
from dpladder.plan.rules import RULES

CANARY = "canary-4711"
SCRIPT = """
import sys
from types import SimpleNamespace
from dpladder.errors import Refused
from dpladder.jobs.task import run

class Named(dict):
    pass

def work(task):
    print("said on stdout")
    print("said on stderr", file=sys.stderr)
    import os
    os.write(2, b"said by C code\\n")
    {body}

run(SimpleNamespace(
    rule="{rule}", wildcards=Named(experiment="main", part="test"),
    params=SimpleNamespace(cfg={cfg}, code="{code}"),
    input=Named(), output=Named(score="results/score.json"), log=["logs/trial.log"], threads=1,
    resources=Named({resources}),
), work)
"""


# rules that read private files, and that read none
PRIVATE, PUBLIC = "merge_features", "write_report"
DIAGNOSTICS = "private/lineage/diagnostics"
DETAILS = f"{DIAGNOSTICS}/{PRIVATE}-main-test.txt"
CFG: dict[str, dict[str, object]] = {
    PRIVATE: {
        "places": {
            "diagnostics": DIAGNOSTICS,
            "features": {"test": "private/features"},
            "cache": "private",
        },
        "question_id": "s",
        "public_parts": [],
        "stops": "lost or lopsided",
    },
    PUBLIC: {"contests": {}, "about": {}, "cells": {}, "pictures": [], "left_behind": []},
}


def job(
    body: str, folder: Path, rule: str = PRIVATE, resources: str = "mem_mb=100", **other: object
) -> subprocess.CompletedProcess[str]:
    said = {"rule": rule, "cfg": CFG[rule], "code": package.digest()} | other
    return subprocess.run(
        [sys.executable, "-c", SCRIPT.format(body=body, resources=resources, **said)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.few(1)
@pytest.mark.parametrize(("resources", "gpus"), [("mem_mb=100, gpu=2", 2), ("mem_mb=100", 0)])
def test_a_job_is_told_how_many_gpus_it_has(tmp_path, resources, gpus):
    assert (
        job(f"assert task.resources.gpu == {gpus}", tmp_path, resources=resources).returncode == 0
    )


def everything_public(folder: Path) -> str:
    files = [
        path
        for path in folder.rglob("*")
        if path.is_file() and "private" not in path.relative_to(folder).parts
    ]
    return "".join(f"{path} {path.read_text()}" for path in files)


@pytest.mark.few(1)
@pytest.mark.parametrize(("rule", "place"), [(PUBLIC, "logs/trial.log"), (PRIVATE, DETAILS)])
def test_what_a_job_and_its_libraries_say_goes_to_one_place(
    tmp_path: Path, rule: str, place: str
) -> None:
    done = job("pass", tmp_path, rule)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    said = (tmp_path / place).read_text()
    assert all(line in said for line in ("said on stdout", "said on stderr", "said by C code"))


def test_the_log_of_a_job_that_reads_private_files_holds_none_of_its_output(tmp_path: Path) -> None:
    assert job("pass", tmp_path).returncode == 0
    assert (tmp_path / "logs/trial.log").read_text() == ""


@pytest.mark.ci
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


@pytest.mark.ci
def test_an_unforeseen_error_of_a_job_that_reads_nothing_private_is_told_in_full(
    tmp_path: Path,
) -> None:
    assert job("raise ValueError('a public figure')", tmp_path, PUBLIC).returncode == 1
    assert "ValueError: a public figure" in (tmp_path / "logs/trial.log").read_text()


@pytest.mark.few(3)
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
    (details,) = (tmp_path / DIAGNOSTICS).glob("*.txt")
    assert CANARY in details.read_text()
    assert details.stat().st_mode & 0o777 == 0o600


@pytest.mark.ci
def test_a_refusal_is_said_in_full(tmp_path: Path) -> None:
    done = job("raise Refused('the budget is spent')", tmp_path)
    assert done.returncode == 1
    assert (
        "merge_features (experiment main, part test): the budget is spent"
        in (tmp_path / "logs/trial.log").read_text()
    )


FULL = "No space left on device"


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "body",
    [
        "open('/dev/full', 'wb', 0).write(b'-')",
        # as safetensors puts it
        f"raise RuntimeError('{CANARY}: I/O error: {FULL} (os error 28)')",
        # as HDF5 does
        f"raise RuntimeError('write failed, {CANARY}, errno = 28, error message = {FULL}')",
    ],
)
def test_a_full_disk_is_called_one(tmp_path: Path, body: str) -> None:
    assert job(body, tmp_path).returncode == 1
    said = (tmp_path / "logs/trial.log").read_text()
    assert FULL in said
    assert "nothing is charged twice: free space" in said
    assert CANARY not in everything_public(tmp_path)


def test_an_interrupt_is_called_one_whatever_a_library_makes_of_it(tmp_path: Path) -> None:
    body = """
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt as interrupt:
        raise TypeError("no common dtype") from interrupt
    """
    assert job(body, tmp_path).returncode == 1
    said = (tmp_path / "logs/trial.log").read_text()
    assert ": interrupted. What is charged stays charged" in said


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("limit", "body", "told"),
    [
        ("RLIMIT_NOFILE", "many = [open('/dev/null') for _ in range(99)]", "Too many open files"),
        ("RLIMIT_FSIZE", "open('large', 'wb').write(b'-' * 99_999)", "File too large"),
    ],
)
def test_a_limit_of_the_shell_is_named(tmp_path: Path, limit: str, body: str, told: str) -> None:
    limited = f"import resource; resource.setrlimit(resource.{limit}, (90, 90)); {body}"
    done = job(limited, tmp_path)
    assert done.returncode == 1
    said = done.stderr + (tmp_path / "logs/trial.log").read_text()
    assert f"{told}, which is a limit on files (ulimit -a)" in said


@pytest.mark.few(1)
@pytest.mark.parametrize("place", ["logs/trial.log", DIAGNOSTICS], ids=["log", "details"])
def test_a_reason_is_told_even_where_nothing_can_be_written_any_more(
    tmp_path: Path, place: str
) -> None:
    """To the log; to the terminal where the log itself lies on the full disk."""
    full = tmp_path / (place if place.startswith("logs") else DETAILS)
    full.parent.mkdir(parents=True)
    full.symlink_to("/dev/full")
    done = job("open('/dev/full', 'wb', 0).write(b'-')", tmp_path)
    assert done.returncode == 1
    told = done.stderr if place.startswith("logs") else (tmp_path / "logs/trial.log").read_text()
    assert told.startswith("merge_features (experiment main, part test): ")
    assert FULL in told


@pytest.mark.ci
def test_every_failure_has_the_same_exit_code(tmp_path: Path) -> None:
    assert {
        job(body, tmp_path).returncode
        for body in ("sys.exit(7)", "raise ValueError", "raise MemoryError")
    } == {1}


@pytest.mark.parametrize("rule", RULES)
def test_a_rules_function_names_its_class_or_one_that_it_extends(rule: str) -> None:
    module = module_of_rule(rule)
    function = getattr(module, module.__name__.rpartition(".")[2], None) or module.release_of
    [named] = get_args(get_type_hints(function)["task"])
    assert issubclass(RULES[rule].reads, named)


def test_a_key_that_a_rule_does_not_read_is_no_part_of_what_it_is_given() -> None:
    task = Task(PRIVATE, {}, CFG[PRIVATE] | {"few_useable": True}, "", {}, {}, Resources())
    with pytest.raises(ValidationError, match="few_useable"):
        task.reads  # noqa: B018, looked up for its error


def test_the_operator_alone_is_told_what_time_and_memory_a_private_job_took(tmp_path: Path) -> None:
    costs = tmp_path / DIAGNOSTICS / COSTS
    assert job("bytearray(2**20)", tmp_path).returncode == 0
    assert job("raise Refused('no')", tmp_path).returncode == 1
    for line in costs.read_text().splitlines():
        name, seconds, megabytes = line.split("\t")
        assert name == f"{PRIVATE}-main-test"
        assert 0 <= float(seconds) < 60
        assert 10 < int(megabytes) < 10_000
    assert len(costs.read_text().splitlines()) == 2
    assert COSTS not in everything_public(tmp_path)
    before = costs.read_text()
    assert job("pass", tmp_path, PUBLIC).returncode == 0
    assert costs.read_text() == before
