"""What every script of the workflow runs inside: output goes to the log, and nothing private leaves with an error.

Snakemake's `log:` does not redirect a script's output, and prints tracebacks to the terminal; so this does both.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from dpladder.config.model import Resources, Section
from dpladder.errors import DpladderError
from dpladder.privacy.home import replace

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
    task = _unpack(snakemake)
    for path in task.output.values():
        path.parent.mkdir(parents=True, exist_ok=True)
    _redirect(Path(snakemake.log[0]))
    try:
        work(task)
    except DpladderError as error:
        _fail(task, str(error))
    except BaseException as error:
        _fail(task, f"{type(error).__name__}; {_keep_details(task)}")


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
            threads=snakemake.threads, mem_mb=snakemake.resources.get("mem_mb", Resources().mem_mb)
        ),
    )


def _redirect(log: Path) -> None:
    """Send this process's stdout and stderr, also from C code, to the rule's log."""
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    with log.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)


def _keep_details(task: Task) -> str:
    """Where the traceback of an unforeseen error is. It may quote private values, unless the rule reads none."""
    if "places" not in task.cfg:
        traceback.print_exc()
        return "the traceback is above"
    folder = Path(task.cfg["places"]["diagnostics"])
    path = folder / f"{task.rule}-{time.time_ns()}-{secrets.token_hex(4)}.txt"
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace(path, traceback.format_exc().encode())
    return f"details, which may be private, are in {folder}"


def _fail(task: Task, reason: str) -> NoReturn:
    which = ", ".join(f"{name} {value}" for name, value in task.wildcards.items())
    print(f"{task.rule} ({which}): {reason}", file=sys.stderr, flush=True)
    os._exit(1)
