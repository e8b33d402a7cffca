"""How every job of the workflow runs: its output and its errors go where nothing private leaves
with them.

Snakemake's `log:` does not redirect a script's output, and prints tracebacks to the terminal; so
this does both.

Snakemake itself shows only the name of a rule and whether it failed. What a job says to people is a
public reason in its log; whatever else it writes goes where the operator alone may look.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF
from typing import Any, Generic, NoReturn, TypeVar

from dpladder.config.model import Resources
from dpladder.errors import TWICE, DpladderError, full_disk
from dpladder.plan.node import what_counts
from dpladder.plan.outer import inner_rule_name
from dpladder.plan.reads import Private
from dpladder.plan.rules import RULES, rung_of
from dpladder.privacy.accounting.events import Job
from dpladder.section import from_document

Reads = TypeVar("Reads", covariant=True)

# of the private folder's diagnostics: a line for each private job that ended, with its name, its
# seconds, and its megabytes of memory at most, those included that it shares with a worker
COSTS = "time-and-memory.tsv"


@dataclass(frozen=True)
class Task(Generic[Reads]):
    """One job of the workflow, unpacked from Snakemake. A job looks things up in `reads`.

    Attributes:
        rule, wildcards: of the job.
        cfg: the config keys that it reads, which Snakemake compares.
        code: a digest of the package where it is free; else empty.
        input, output: paths by name.
        resources: threads, memory in MB, and whether there is a GPU.
        trials: of a rung's job, those that it runs.
    """

    rule: str
    wildcards: dict[str, str]
    cfg: dict[str, Any]
    code: str
    input: dict[str, Any]
    output: dict[str, Path]
    resources: Resources
    trials: tuple[str, ...] = ()

    @property
    def experiment(self) -> str:
        """Whose job it is; empty for a job of the whole project."""
        return self.wildcards.get("experiment", "")

    @property
    def job(self) -> Job:
        """As the ledger and messages name it."""
        return Job.of(self.experiment, self.rule, self.wildcards)

    @cached_property
    def reads(self) -> Reads:
        """What its rule reads (plan/reads.py), each value of its own type.

        Raises:
            BadInput: a value is not what the rule's class says. The workflow's params and the class
                disagree.
        """
        parsed: Reads = from_document(RULES[self.rule].reads, self.cfg)
        return parsed

    @property
    def public_cfg(self) -> dict[str, Any]:
        """What its output depends on."""
        return what_counts(RULES[self.rule].reads, self.cfg)


def run(snakemake: Any, work: Callable[[Task[Any]], None]) -> NoReturn:
    """Do `work` for this job, and end its process.

    On failure there is one exit code, 1, whatever went wrong: a code for each reason would tell
    about the data. A public reason stands in the log, and the details of what nobody foresaw in the
    private folder.

    Args:
        snakemake: the object that Snakemake gives to a script.
        work: the job, which raises DpladderError with a message that may be published.

    The process ends at once, without finalisers: to free what torch and its like have loaded takes
    longer than many a job, and those of a job that failed might still write.
    """
    task, log, terminal = _unpack(snakemake), Path(snakemake.log[0]), os.dup(2)
    try:
        for path in (log, *task.output.values()):
            path.parent.mkdir(parents=True, exist_ok=True)
        log.write_bytes(b"")
        details = _details(task, log)
        _redirect(details)
        with _noting_cost(task, details):
            work(task)
        _end(0)
    except DpladderError as error:
        _fail(task, log, str(error), terminal)
    except BaseException as error:
        with contextlib.suppress(OSError):
            traceback.print_exc()
        _fail(task, log, _reason(error, task, log), terminal)


def write_json(path: Path, document: Mapping[str, Any] | None) -> None:
    """Write a document of plain JSON values; what is no finite number is refused.

    Raises:
        ValueError: a number is infinite or NaN, which JSON has no word for.
    """
    path.write_text(json.dumps(document, indent=2, allow_nan=False) + "\n", "utf-8")


def read_json(path: Path | str) -> Any:
    """The document in a JSON file; no more is known of its form."""
    return json.loads(Path(path).read_text("utf-8"))


def _unpack(snakemake: Any) -> Task[Any]:
    """A job as Snakemake's object has it. A rung's own rule becomes `run_trial` with its trials:
    nothing behind this function needs to know that each rung has a rule by its own name."""
    rule = inner_rule_name(snakemake.rule)
    rung = rung_of(rule)
    names = [name for name, _ in snakemake.output.items()]
    return Task(
        rule=rule if rung is None else "run_trial",
        wildcards=dict(snakemake.wildcards.items()) if rung is None else rung,
        cfg=dict(snakemake.params.cfg),
        code=snakemake.params.code,
        input={
            name: value if isinstance(value, str) else list(value)
            for name, value in snakemake.input.items()
        },
        output={name: Path(value) for name, value in snakemake.output.items()},
        resources=Resources(
            threads=snakemake.threads,
            mem_mb=snakemake.resources.get("mem_mb", Resources().mem_mb),
            gpu=snakemake.resources.get("gpu", 0),
        ),
        trials=tuple(name.removeprefix("score_") for name in names if name.startswith("score_")),
    )


def _details(task: Task[Any], log: Path) -> Path:
    """Where a job's output and tracebacks go: its log, unless it reads private files. Then even a
    library's warning may be private: libtiff writes what is wrong with an image straight to stderr.
    """
    # Rules that open no private file have nothing to hide, and people look into their logs.
    if not isinstance(task.reads, Private):
        return log
    return (
        Path(task.reads.places.diagnostics)
        / f"{'-'.join([task.rule, *task.wildcards.values()])}.txt"
    )


@contextlib.contextmanager
def _noting_cost(task: Task[Any], details: Path) -> Iterator[None]:
    """Keep a private job's time and memory for the operator, in the private folder alone: they hang
    on the records (contract: no-tell).

    A line that cannot be written is left out: it is worth no failed job.
    """
    began = time.monotonic()
    try:
        yield
    finally:
        if isinstance(task.reads, Private):
            usage = [resource.getrusage(who) for who in (RUSAGE_SELF, RUSAGE_CHILDREN)]
            seconds = time.monotonic() - began
            megabytes = max(one.ru_maxrss for one in usage) / 1024
            line = f"{details.stem}\t{seconds:.1f}\t{megabytes:.0f}\n"
            with contextlib.suppress(OSError):
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
                descriptor = os.open(details.parent / COSTS, flags, 0o600)
                with open(descriptor, "a", encoding="utf-8") as file:
                    file.write(line)


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


def _reason(error: BaseException, task: Task[Any], log: Path) -> str:
    """What may be told of an error that nobody foresaw. Which one a private job met may hang on
    what it read, so its log does not name the kind (contract: no-tell)."""
    if _was_interrupted(error):  # by who stops the run, and never by a record
        return f"interrupted. {TWICE}: run again, and the job goes on."
    if trouble := full_disk(error):
        return (
            f"a file cannot be written: {trouble}. {TWICE}: free space, mount the disk for "
            "writing or raise the limit, and run again."
        )
    what = "an error" if isinstance(task.reads, Private) else type(error).__name__
    return f"{what} that nobody foresaw; details are in {_details(task, log)}"


def _was_interrupted(error: BaseException | None) -> bool:
    """Whether an interrupt began this error. NumPy raises a TypeError from one that comes while it
    compares rows."""
    if error is None or isinstance(error, KeyboardInterrupt):
        return error is not None
    return _was_interrupted(error.__cause__ or error.__context__)


def _fail(task: Task[Any], log: Path, reason: str, terminal: int) -> NoReturn:
    """Tell the reason in the log; on the terminal, where even that cannot be written."""
    which = ", ".join(f"{name} {value}" for name, value in task.wildcards.items())
    text = f"{task.rule} ({which}): {reason}\n"
    try:
        with log.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError:
        os.write(terminal, text.encode())
    _end(1)


def _end(code: int) -> NoReturn:
    """End this process. An ordinary exit runs handlers, and threads of libraries may print to a
    terminal there."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    os._exit(code)
