"""A run told in one line: what it says, what it leaves to the file, and when Snakemake speaks
itself."""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dpladder.commands.follow import WORDS, Progress, Screen, follow, follows
from dpladder.plan.installation import SAY

SAID = """print('rule extract_features:', flush=True)
print('1 of 3 steps (33%) done', flush=True)
import os; os.write(int(os.environ['DPLADDER_SAY']), b'told to a person\\n')
import sys; sys.exit({code})
"""


def test_it_tells_jobs_done_and_what_runs_and_guesses_the_time_that_is_left() -> None:
    now = Progress()
    assert now.line(0.0) == ""
    now = now.after("localrule plan_spend:", 10.0)
    assert now.line(11.0) == "the first jobs: plan_spend ..."
    now = now.after("2 of 6 steps (33%) done", 20.0).after("rule run_trial:", 20.0)
    assert now.line(20.0) == "2 of 6 jobs, about 20 s left: run_trial ..."
    assert now.line(310.0) == "2 of 6 jobs, about 10 min left: run_trial ..."
    assert now.after("6 of 6 steps (100%) done", 30.0).line(30.0) == ""


@pytest.mark.parametrize(
    ("arguments", "alone"),
    [
        ([], True),
        (["folder", "--cores", "2", "results/privacy.json"], True),
        (["-c4", "--forcerun", "evaluate"], True),
        (["--cores=2", "--slurm"], True),
        (["--verbose"], False),
        (["-n"], False),
        (["--dag"], False),
        (["--report", "report.html"], False),
        (["config.yaml", "--", "--cores", "2"], True),
        (["config.yaml", "--", "-n"], False),
    ],
)
def test_snakemake_speaks_itself_where_it_is_asked_something_else(
    arguments: list[str], alone: bool
) -> None:
    assert follows(arguments) == alone


@pytest.mark.parametrize("code", [0, 3])
def test_people_are_told_and_the_file_holds_the_rest(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert follow([sys.executable, "-c", SAID.format(code=code)], Path()) == code
    told = capfd.readouterr().err
    assert "told to a person\n" in told
    assert "steps" not in told
    assert (f"exit code {code}. All that Snakemake said: {WORDS.absolute()}" in told) == bool(code)
    assert WORDS.read_text("utf-8").splitlines()[-1] == "1 of 3 steps (33%) done"


def told_of(words: str, capfd: pytest.CaptureFixture[str]) -> str:
    """What a person is told where Snakemake says this and fails."""
    assert follow([sys.executable, "-c", f"import sys; print({words!r}); sys.exit(1)"], Path()) == 1
    return capfd.readouterr().err


KILLED = """rule run_trial:
RuleException:
CalledProcessError in file "sweep.smk", line 46:
Command 'set -euo pipefail;  python tmp.job.py' died with <Signals.{signal}>.
[Wed Nov 25 21:22:17 2026]
Error in rule run_trial:
    message: None
"""


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            "Building DAG of jobs...\nLockException:\nError: Directory cannot be locked. Please "
            "make sure\n/home/me/chest\n",
            "Where no run goes on, one was killed: dpladder run --unlock",
        ),
        (
            "MissingRuleException:\nNo rule to produce results/nope.json (if you\n",
            "dpladder: Snakemake refuses: No rule to produce results/nope.json (if you\n",
        ),
        (
            KILLED.format(signal="SIGKILL: 9"),
            "dpladder: run_trial was ended by SIGKILL, as systems do that run out of memory.",
        ),
        (
            KILLED.format(signal="SIGTERM: 15"),
            "dpladder: run_trial was ended by SIGTERM. What is charged",
        ),
    ],
    ids=["locked", "no such rule", "out of memory", "ended"],
)
def test_what_snakemake_refuses_and_what_a_signal_ended_is_told(
    words: str,
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Nobody else says why the run ended."""
    monkeypatch.chdir(tmp_path)
    assert told in told_of(words, capfd)


@pytest.mark.parametrize(
    "said",
    [
        "rule fit_radius:\n[Errno 28] No space left on device\n",
        "rule fit_radius:\nfit_radius (): a file cannot be written: No space left on device.\n",
        "",
    ],
    ids=["Snakemake", "a job without a log", "nobody"],
)
def test_a_full_disk_is_told_also_where_snakemake_cannot_say_so(
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    free = shutil.disk_usage(tmp_path)._replace(free=2**30 if said else 0)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: free)
    assert f"no space is left on the disk of {tmp_path}, or" in told_of(said, capfd)


def test_a_job_that_failed_tells_its_own_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = "rule run_trial:\nWorkflowError:\nAt least one job did not complete successfully.\n"
    assert "At least one job" not in told_of(words, capfd)


def test_an_exit_code_tells_a_signal_as_shells_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert follow([sys.executable, "-c", "import os; os.kill(os.getpid(), 15)"], Path()) == 143


def test_no_job_inherits_where_people_are_told() -> None:
    """Its files have other numbers: words would end up in one of them."""
    code = "import os, dpladder.plan.startup as one; one.say('told'); print(one.SAY in os.environ)"
    said = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {SAY: "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (said.stdout, said.stderr) == ("told\nFalse\n", "told\n")  # to people, and the file


CHILD = """
import signal, sys, time
if {job!r}:
    import subprocess
    subprocess.Popen([sys.executable, "-c", {job!r}])
signal.signal(signal.SIGINT, lambda *_: (time.sleep(1), print("{name} ended in order", flush=True),
              sys.exit(1)))
print("{name} is up", flush=True)
time.sleep(600)
"""
FOLLOWED = """
import signal, sys
from pathlib import Path
from dpladder.commands.follow import follow
signal.signal(signal.SIGINT, signal.{handler})
sys.exit(follow([sys.executable, "-c", {child!r}], Path()))
"""


@pytest.mark.ci
@pytest.mark.parametrize(
    ("number", "handler", "code"),
    [
        (signal.SIGINT, "default_int_handler", 1),
        (signal.SIGTERM, "default_int_handler", -signal.SIGTERM),
        (signal.SIGHUP, "default_int_handler", -signal.SIGHUP),
        (signal.SIGTERM, "SIG_IGN", -signal.SIGTERM),  # as shells begin jobs in the background
    ],
)
def test_what_ends_a_run_lets_snakemake_end_its_jobs_in_order(
    number: signal.Signals, handler: str, code: int, tmp_path: Path
) -> None:
    """`kill` reached this process alone, and the workflow went on and spent."""
    job = CHILD.format(name="a job", job="")
    child = CHILD.format(name="Snakemake", job=job)
    run = subprocess.Popen(
        [sys.executable, "-c", FOLLOWED.format(handler=handler, child=child)],
        cwd=tmp_path,
        process_group=0,
        stderr=subprocess.PIPE,
    )
    words = tmp_path / WORDS
    while not (words.is_file() and words.read_text().count("is up") == 2):
        time.sleep(0.05)
    run.send_signal(number)
    assert b"dpladder: interrupted. What is charged" in run.communicate(timeout=100)[1]
    assert run.returncode == code
    while words.read_text().count("ended in order") < 2:  # or the test's own limit
        time.sleep(0.05)


def test_in_a_file_each_change_is_a_line_of_its_own() -> None:
    out = io.StringIO()
    screen = Screen(out)
    for text in ("1 of 3 jobs, about 9 s left: a ...", "1 of 3 jobs, about 8 s left: a ...", ""):
        screen.show(text)
    screen.show("2 of 3 jobs, about 4 s left: a ...")
    screen.clear()
    assert out.getvalue() == (
        "1 of 3 jobs, about 9 s left: a ...\n2 of 3 jobs, about 4 s left: a ...\n"
    )


def test_a_folder_that_snakemake_cannot_make_is_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code = "import os; os.makedirs('/proc/nowhere/snakemake')"
    assert follow([sys.executable, "-c", code], tmp_path) == 1
    told = capfd.readouterr().err
    assert "could not use /proc/nowhere: No such file or directory. Make that folder" in told
