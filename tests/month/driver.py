"""A project that runs in this process: Snakemake's own plan of what is due, and each due job called
in turn."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import yaml
from crash.processes import run
from crash.test_crash import die_at
from support import opened_workflow

from dpladder.cli import main
from dpladder.errors import DpladderError
from dpladder.jobs import task as tasks
from dpladder.jobs import write_report
from dpladder.jobs.run import run_rule
from dpladder.jobs.task import Task, read_json

DRAWN = "write_report"  # what costs seconds and follows from releases alone


@dataclass(frozen=True)
class Ended:
    """How a run ended: what it refused, if it did, and else all that it told."""

    refused: str = ""
    told: str = ""


def in_process(folder: Path, *force: str) -> Ended:
    """`dpladder run` on a folder's config, without a process for each job, and with blank
    figures."""
    told = io.StringIO()
    with _inside(folder), contextlib.redirect_stderr(told), contextlib.redirect_stdout(told):
        try:
            with _opened(force) as workflow:
                names = workflow.globals
                jobs = set(workflow.dag.needrun_jobs(exclude_finished=False))
                names["reserve"](names["PARSED"], names["due_jobs"](jobs), "local")
                for level in workflow.dag.toposorted(jobs):
                    for job in sorted(level, key=str):
                        _do(workflow, job)
                names["conclude"](names["PARSED"], names["WRITTEN"])
        except SystemExit:
            return Ended(_in_a_line(told.getvalue().split("dpladder: ")[-1]))
        except DpladderError as error:
            return Ended(_in_a_line(str(error)))
    return Ended(told=_in_a_line(told.getvalue()))


def by_command(folder: Path, *force: str) -> Ended:
    """The same as people run it."""
    ended = subprocess.run(
        _command(*force), cwd=folder, capture_output=True, text=True, check=False
    )
    if ended.returncode == 0:
        return Ended(told=_in_a_line(ended.stderr))
    return Ended(_in_a_line(ended.stderr.split("dpladder: ")[-1]) or "failed, and says nothing")


def killed_in_process(folder: Path, step: int, before: bool) -> int:
    """A run that is killed at its step-th change of what is on disk, or ends before; its exit
    code."""
    return run(die_at, step, before, in_process, folder)


def killed_by_time(folder: Path, step: int, before: bool) -> int:
    """The same as people run it, killed with all its jobs after twentieths of a second."""
    running = subprocess.Popen(
        _command(),
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        running.wait(step / 20)
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGKILL)
    return running.wait()


def _command(*force: str) -> list[str]:
    forced = ["--forcerun", *force] if force else []
    program = "import sys; from dpladder.cli import main; sys.exit(main())"
    return [sys.executable, "-c", program, "run", "config.yaml", "--cores", "2", *forced]


def _in_a_line(told: str) -> str:
    return " ".join(told.split())


def ask(folder: Path, *arguments: str) -> tuple[int, str]:
    """A command of dpladder: its exit code, and what it told."""
    told = io.StringIO()
    with _inside(folder), contextlib.redirect_stderr(told), contextlib.redirect_stdout(told):
        try:
            code = main([*arguments])
        except SystemExit as ended:
            code = int(ended.code or 0)
    return code, told.getvalue()


def verified(folder: Path) -> tuple[int, str]:
    """The same of `dpladder verify`, once whatever other configs left is away, as it says."""
    code, told = ask(folder, "verify", "results")
    for path in re.findall("^(results/.+): nothing vouches for it; if a run", told, re.MULTILINE):
        (folder / path).unlink()
        code, told = ask(folder, "verify", "results")
    return code, told


def configure(folder: Path, config: dict[str, Any]) -> None:
    (folder / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False), "utf-8")


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    """With the folder as the working one, and without Snakemake's own words."""
    before = Path.cwd()
    os.chdir(folder)
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
        os.chdir(before)


@contextlib.contextmanager
def _opened(force: tuple[str, ...]) -> Iterator[Any]:
    """The workflow as Snakemake parses it, which notes no job as begun."""
    options = {"force_incomplete": True, "max_checksum_file_size": 0}
    with opened_workflow(forcerun=frozenset(force), **options) as workflow:
        workflow.iocache.deactivate()
        workflow.persistence.deactivate_cache()
        yield workflow


def _do(workflow: Any, job: Any) -> None:
    """One job, between the same marks that Snakemake sets."""
    if job.is_norun:
        return
    workflow.persistence.started(job)
    for path in map(Path, job.output):
        path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
    as_given = {
        name: getattr(job, name)
        for name in ("wildcards", "output", "params", "threads", "resources")
    }
    told = SimpleNamespace(rule=job.rule.name, input=_plain(job.input), **as_given)
    try:
        _work(tasks._unpack(told))
    except Exception:
        for path in map(Path, job.output):
            path.unlink(missing_ok=True)
        raise
    workflow.async_run(workflow.persistence.finished(job))


def _plain(files: Any) -> dict[str, Any]:
    """Paths as a job's own process is given them."""
    return {name: str(it) if isinstance(it, str) else [*map(str, it)] for name, it in files.items()}


def _work(task: Task[Any]) -> None:
    if task.rule == DRAWN:
        drawn = [path for name, path in task.output.items() if name != "privacy"]
        files = (Path(picture.path) for picture in task.reads.pictures if picture.path)
        for path in (*drawn, *files):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("blank")
        write_report._vouch(task, read_json(task.input["statement"])["id"])
    else:
        run_rule(task)
