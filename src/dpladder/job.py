"""What every script of the workflow runs inside: its output and its errors go where nothing private leaves with them.

Snakemake's `log:` does not redirect a script's output, and prints tracebacks to the terminal; so this does both.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from dpladder import stages
from dpladder.config.model import Resources
from dpladder.config.searches import search_of
from dpladder.config.section import Section
from dpladder.errors import DpladderError, Refused

Model = TypeVar("Model", bound=Section)


@dataclass(frozen=True)
class Task:
    """One job of the workflow, unpacked from Snakemake into plain values."""

    rule: str
    wildcards: dict[str, str]
    cfg: dict[str, Any]
    code: str
    input: dict[str, Any]
    output: dict[str, Path]
    resources: Resources

    @property
    def experiment(self) -> str:
        return self.wildcards.get("experiment", "")


def run(snakemake: Any, work: Callable[[Task], None]) -> None:
    """Do `work` for this job. On failure: exit code 1, a public reason in the log, the details in the private folder."""
    task, log = _unpack(snakemake), Path(snakemake.log[0])
    for path in (log, *task.output.values()):
        path.parent.mkdir(parents=True, exist_ok=True)
    log.write_bytes(b"")
    details = _details(task, log)
    try:
        _redirect(details)
        _check_code(task)
        work(task)
    except DpladderError as error:
        _fail(task, log, str(error))
    except BaseException as error:
        traceback.print_exc()
        _fail(task, log, f"{type(error).__name__}; details are in {details}")


def section(task: Task, name: str, model: type[Model]) -> Model:
    """A section of the config as the job was given it."""
    return model.model_validate_json(json.dumps(task.cfg[name]))


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(document, indent=2, allow_nan=False) + "\n", "utf-8")


def read_json(path: Path | str) -> Any:
    return json.loads(Path(path).read_text("utf-8"))


def _unpack(snakemake: Any) -> Task:
    return Task(
        rule=snakemake.rule,
        wildcards=dict(snakemake.wildcards.items()),
        cfg=dict(snakemake.params.cfg),
        code=snakemake.params.code,
        input={
            name: value if isinstance(value, str) else list(value) for name, value in snakemake.input.items()
        },
        output={name: Path(value) for name, value in snakemake.output.items()},
        resources=Resources(
            threads=snakemake.threads,
            mem_mb=snakemake.resources.get("mem_mb", Resources().mem_mb),
            gpu=snakemake.resources.get("gpu", 0),
        ),
    )


def _details(task: Task, log: Path) -> Path:
    """Where a job's output and tracebacks go: its log, unless it reads private files. Then even a library's warning may
    be private: libtiff writes what is wrong with an image straight to stderr."""
    if "places" not in task.cfg:
        return log
    return Path(task.cfg["places"]["diagnostics"]) / f"{'-'.join([task.rule, *task.wildcards.values()])}.txt"


def _check_code(task: Task) -> None:
    """A job that spends does so under a digest of its code. What runs must be that code, also when files are edited, or
    another node has others, after the workflow was parsed."""
    learner = task.cfg.get("learner", {}).get("name")
    search = search_of(task.cfg["hpo"]).module if "hpo" in task.cfg else None
    if "static" in task.cfg and stages.rule_code(task.rule, learner, search) != task.code:
        raise Refused(
            "the package's code changed after the workflow was started, or this node has another version of it. "
            "Nothing was read or spent: start the workflow again."
        )


def _redirect(path: Path) -> None:
    """Send this process's stdout and stderr, also from C code, to a file."""
    for folder in reversed(path.parents):
        folder.mkdir(mode=0o700, exist_ok=True)
    # A log exists already, with its own mode.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    sys.stdout.flush()
    sys.stderr.flush()
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)


def _fail(task: Task, log: Path, reason: str) -> NoReturn:
    which = ", ".join(f"{name} {value}" for name, value in task.wildcards.items())
    sys.stdout.flush()
    sys.stderr.flush()
    with log.open("a", encoding="utf-8") as file:
        file.write(f"{task.rule} ({which}): {reason}\n")
    os._exit(1)
