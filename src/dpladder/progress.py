"""A progress bar for whoever sits at the terminal. It tells the data's size, so it never reaches a
file."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress

LONG = 5.0  # seconds after which somebody begins to wonder


@contextlib.contextmanager
def progress(
    title: str, total: int, unit: str = "records", after: float = 0.0
) -> Iterator[Callable[[int], None]]:
    """A function to call with the number of units just done. It does nothing where there is no
    terminal, nor for work that ends within `after` seconds.

    How many records there are is private (contract: no-tell). So the bar goes to the terminal
    itself, is wiped at its end, and is never written where stderr is sent.

    Args:
        title: what is done, before the bar.
        total: of all units.
        unit: what is counted, in the plural.
        after: seconds before the bar appears; 0 shows it at once.

    Yields:
        A function of the number of units done since its last call.
    """
    with contextlib.ExitStack() as stack:
        terminal, began, done, bar = _terminal(stack), time.monotonic(), 0, None

        def advance(more: int) -> None:
            nonlocal done, bar
            done += more
            if bar is None and terminal is not None and time.monotonic() - began >= after:
                bar = stack.enter_context(_bar(title, unit, terminal))
                bar.add_task(title, total=total)
            if bar is not None:
                bar.update(bar.task_ids[0], completed=done)

        advance(0)
        yield advance


def _bar(title: str, unit: str, terminal: TextIO) -> Progress:
    """The bar on the terminal; rich is imported only once something is shown."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn(title),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=Console(file=terminal), transient=True)


def _terminal(stack: contextlib.ExitStack) -> TextIO | None:
    """The terminal itself, also when stderr has been sent to a log."""
    if sys.stderr.isatty():
        return sys.stderr
    try:
        return stack.enter_context(open("/dev/tty", "w"))
    except OSError:
        return None
