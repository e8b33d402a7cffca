"""A run in one line: jobs done and seconds left. Snakemake's own words go to a file.

A run may take days, and a terminal may close. So Snakemake writes to a file of its own, and this
process only reads along. Nothing of what Snakemake says is private (contract: no-tell).
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import gettempdir
from typing import Any, TextIO

from dpladder.commands.arguments import SLURM
from dpladder.errors import TWICE
from dpladder.plan.installation import SAY, STANDS

REASON = "dpladder: "  # begins a line that says why a run stops
WORDS = Path("logs") / "snakemake.txt"
SMALLEST_FREE_DISK = 2**16  # bytes of a disk without which nothing can be written
POLL = 0.2  # seconds between looks at what Snakemake says
STEPS = re.compile(r"^(\d+) of (\d+) steps")
BEGUN = re.compile(r"^(?:local)?rule (\w+):$")
NOTHING_TO_DO = "Nothing to be done"
REFUSAL = re.compile(r"^\w+(?:Exception|Error):\n(.+)", re.MULTILINE)
OS_ERROR = re.compile(r"^\w*Error: \[Errno \d+\] (.+): '(.+)'$", re.MULTILINE)
KILLED = re.compile(r"died with <Signals\.(\w+): \d+>\.\n(?:.*\n)??Error in rule (\w+):")
INTERRUPTED = f"interrupted. {TWICE}: run again, and the run goes on."
LOCKED = (
    "another run goes on in this folder. Where no run goes on, one was killed: dpladder run "
    "--unlock, and run again; nothing is charged twice"
)
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
ALIKE = {
    "--",
    "-c",
    "--cores",
    "-j",
    "--jobs",
    "-k",
    "--keep-going",
    "-R",
    "--forcerun",
    "-F",
    "--forceall",
    SLURM,
}


def follows(arguments: Sequence[str]) -> bool:
    """Whether a run can be told in one line: with other options Snakemake may have something else
    to say.

    Args:
        arguments: of `dpladder run`, configs and Snakemake's options.

    Returns:
        False where an option is there that ALIKE does not list, such as a report or a dry run.
    """
    options = {word.partition("=")[0] for word in arguments if word.startswith("-")}
    return {re.sub(r"^(-[cj])\d+$", r"\1", option) for option in options} <= ALIKE


@dataclass(frozen=True)
class Progress:
    """Where a run stands, as far as Snakemake's lines tell.

    Attributes:
        done: jobs that ended.
        total: jobs of the run; 0 before the first one ended.
        running: the rule that began last.
        began: when the first job began, in seconds of a monotonic clock; None before.
    """

    done: int = 0
    total: int = 0
    running: str = ""
    began: float | None = None

    def after(self, line: str, now: float) -> Progress:
        """The progress once Snakemake has said one more line.

        Args:
            line: without its newline; most lines change nothing.
            now: in seconds of the same clock as `began`.
        """
        if match := STEPS.match(line):
            return replace(self, done=int(match[1]), total=int(match[2]))
        if match := BEGUN.match(line):
            return replace(self, running=match[1], began=now if self.began is None else self.began)
        return self

    def line(self, now: float) -> str:
        """What a person reads. Jobs differ, so the time that is left is a guess from those that are
        done.

        Returns:
            Empty before the first job begins and after the last one ends.
        """
        if self.began is None or self.done == self.total > 0:
            return ""
        if not self.done:
            return f"the first jobs: {self.running} ..."
        left = (now - self.began) / self.done * (self.total - self.done)
        return (
            f"{self.done} of {self.total} jobs, about {format_duration(left)} left: {self.running} "
            f"..."
        )


def format_duration(seconds: float) -> str:
    """Seconds as a person says them: `45 s`, `12 min`, `1.5 h`."""
    # Each unit goes on a little beyond its end: "89 s" says more than "1 min".
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@dataclass
class Screen:
    """One line of a terminal, which whatever else is said writes over.

    Attributes:
        out: a terminal, or a file, which gets a line for each change instead.
        current_line: what stands there now; empty where nothing was shown.
    """

    out: TextIO
    current_line: str = field(default="", init=False)

    def show(self, text: str) -> None:
        """In a file the time that is left makes no line of its own: it would at every look."""
        news = text if self.out.isatty() else re.sub(r", about .* left", "", text)
        if not text or news == self.current_line:
            return
        self.current_line = news
        if self.out.isatty():
            self.out.write(f"\r\033[K{text}\r")
        else:
            self.out.write(f"{text}\n")
        self.out.flush()

    def clear(self) -> None:
        """Leave the terminal's line empty; a file keeps what it has."""
        if self.current_line and self.out.isatty():
            self.out.write("\r\033[K")
            self.out.flush()


def follow(command: Sequence[str], folder: Path) -> int:
    """Run Snakemake in a folder to its end; its exit code. A file holds what it says, so that it
    goes on where this process is killed.

    Args:
        command: Snakemake's, with its options.
        folder: of the project. What Snakemake says lies in its logs/snakemake.txt.

    Returns:
        Snakemake's exit code; 128 and the signal's number where a signal ended it. 0 is a finished
        run.
    """
    file = folder / WORDS
    file.parent.mkdir(exist_ok=True)
    file.unlink(missing_ok=True)  # another run in this folder may write to it
    screen, progress, unread = Screen(sys.stderr), Progress(), ""
    with (
        file.open("w", encoding="utf-8") as words,
        file.open(encoding="utf-8", errors="replace") as said,
        contextlib.ExitStack() as running,
    ):
        # What dpladder itself says at the parse goes to the terminal by this descriptor, past the
        # file.
        ours = os.dup(sys.stderr.fileno())
        streams: dict[str, Any] = {"cwd": folder, "stdout": words, "stderr": words}
        streams |= {"pass_fds": [ours], "env": os.environ | {SAY: str(ours)}}
        run, signals = running.enter_context(interruptible(command, **streams))
        os.close(ours)
        ended = None
        while ended is None:
            ended = _wait(run)
            # The last piece may be half a line; it waits for its other half.
            *lines, unread = (unread + said.read()).split("\n")
            for line in lines:
                progress = progress.after(line, time.monotonic())
                if line.startswith(NOTHING_TO_DO):
                    print(f"{NOTHING_TO_DO}: all results are there. {STANDS}.", file=sys.stderr)
            screen.show(progress.line(time.monotonic()))
        said.seek(0)
        all_said = said.read()
    screen.clear()
    if ended:
        # Once a job has begun, jobs tell their own reasons; Snakemake's would only say that one
        # failed.
        refusal = "" if progress.began else _refusal(all_said) or _unusable_folder(all_said)
        reason = _full(all_said, folder) or refusal or _advice_after_kill(all_said)
        if signals or reason:
            line = f"{REASON}{INTERRUPTED if signals else reason}"
            print(line, file=sys.stderr)
            with contextlib.suppress(OSError), file.open("a", encoding="utf-8") as words:
                words.write(f"{line}\n")
        print(
            f"Stopped with exit code {ended}. All that Snakemake said: {file.absolute()}",
            file=sys.stderr,
        )
    end_as_asked(signals)
    return ended


def reasons_in(folder: Path) -> str:
    """Why the last run in a folder stopped, in the words that people were told; empty where nothing
    was."""
    with contextlib.suppress(OSError):
        words = (folder / WORDS).read_text("utf-8", "replace").splitlines()
        return " ".join(line.removeprefix(REASON) for line in words if line.startswith(REASON))
    return ""


@contextlib.contextmanager
def interruptible(
    command: Sequence[str], **options: Any
) -> Iterator[tuple[subprocess.Popen[bytes], list[int]]]:
    """Snakemake and its jobs as a group of processes, which an interrupt ends in order: whatever
    would end this process alone, or a terminal that closes, is one. Else they would go on, and
    spend.

    Args:
        command: Snakemake's, with its options.
        **options: of `subprocess.Popen`.

    Yields:
        Snakemake, and the signals that came; `end_as_asked` takes them.
    """
    run: subprocess.Popen[bytes] | None = None
    signals: list[int] = []

    def interrupt(number: int, _: object) -> None:
        signals.append(number)
        if run is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(run.pid, signal.SIGINT)

    before = {}
    if threading.current_thread() is threading.main_thread():  # Python hands signals to it alone
        before = {number: signal.getsignal(number) for number in ENDS}
    for number, handler in before.items():
        if handler not in (None, signal.SIG_IGN):  # nohup lets a closed terminal end nothing
            signal.signal(number, interrupt)
        elif number == signal.SIGINT:  # a job of a shell in the background; Snakemake heeds it
            signal.signal(number, lambda *_: None)
    try:
        run = subprocess.Popen(command, process_group=0, **options)
        if signals:
            os.killpg(run.pid, signal.SIGINT)
        yield run, signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)


def end_as_asked(signals: Sequence[int]) -> None:
    """End this process by the first signal that asked for it, now that its run has ended. An
    interrupt asks for the end of a run alone."""
    for number in signals:
        if number != signal.SIGINT:
            signal.raise_signal(number)


def _refusal(said: str) -> str:
    """Why Snakemake itself began no job, where that is so. Jobs tell their own reasons."""
    match = REFUSAL.search(said)
    if match is None:
        return ""
    return LOCKED if "cannot be locked" in match[1] else f"Snakemake refuses: {match[1]}"


def _full(said: str, folder: Path) -> str:
    """What to do where Snakemake had no room to write, its own words perhaps. Jobs look after
    themselves."""
    words = os.strerror(errno.ENOSPC)  # Snakemake's, or a job's that could not write its log
    says_so = any(words in line and not line.startswith(REASON) for line in said.splitlines())
    if not says_so and shutil.disk_usage(folder).free >= SMALLEST_FREE_DISK:
        return ""
    return (
        f"no space is left on the disk of {Path.cwd()}, or of {gettempdir()}. {TWICE}: free space, "
        "and run again."
    )


def _unusable_folder(said: str) -> str:
    """What to do where Snakemake ended in a folder that it could not make or write, such as its
    cache."""
    match = OS_ERROR.search(said)
    if match is None:
        return ""
    return (
        f"Snakemake could not use {match[2]}: {match[1]}. Make that folder, or name another, by "
        "XDG_CACHE_HOME where it is the cache; nothing was lost."
    )


def _advice_after_kill(said: str) -> str:
    """What to do where a signal ended a job, which then had no time to tell its reason."""
    match = KILLED.search(said)
    if match is None:
        return ""
    why = ", as systems do that run out of memory" if match[1] == "SIGKILL" else ""
    return f"{match[2]} was ended by {match[1]}{why}. {TWICE}: run again, and the run goes on."


def wait(command: Sequence[str]) -> int:
    """Run Snakemake to its end where it speaks itself; its exit code, as `follow` returns it."""
    with interruptible(command) as (run, signals):
        while (ended := _wait(run)) is None:
            pass
    end_as_asked(signals)
    return ended


def _wait(run: subprocess.Popen[bytes]) -> int | None:
    """The exit code once it has ended; as shells have it, where a signal did that."""
    try:
        ended = run.wait(POLL)
    except subprocess.TimeoutExpired:
        return None
    return 128 - ended if ended < 0 else ended
