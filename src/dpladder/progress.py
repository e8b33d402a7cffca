"""A progress bar for whoever sits at the terminal. It tells the data's size, so it never reaches a file."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import TextIO


@contextlib.contextmanager
def progress(title: str, total: int, unit: str = "records") -> Iterator[Callable[[int], None]]:
    """A function to call with the number of units just done; it does nothing where there is no terminal."""
    with contextlib.ExitStack() as stack:
        terminal = _terminal(stack)
        if terminal is None:
            yield lambda done: None
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn(title),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn(unit),
            TimeRemainingColumn(),
        )
        bar = stack.enter_context(Progress(*columns, console=Console(file=terminal), transient=True))
        task = bar.add_task(title, total=total)
        yield lambda done: bar.advance(task, done)


def _terminal(stack: contextlib.ExitStack) -> TextIO | None:
    """The terminal itself, also when stderr has been sent to a log."""
    if sys.stderr.isatty():
        return sys.stderr
    try:
        return stack.enter_context(open("/dev/tty", "w"))
    except OSError:
        return None
