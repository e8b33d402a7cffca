"""Where a command writes what it is asked for."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from pathlib import Path

from dpladder.errors import BadInput


def check_output(path: Path | None, suffixes: Collection[str]) -> None:
    """Refuse a file that cannot be written before it takes minutes to know what goes into it.

    Args:
        path: of `--output`; None, which prints, is always fine.
        suffixes: that the command can write, with their dots.

    Raises:
        BadInput: the suffix is another one, or the folder is not there.
    """
    if path is None:
        return
    if path.suffix not in suffixes:
        raise BadInput(f"--output {path}: it must end in one of {', '.join(suffixes)}.")
    if not path.parent.is_dir():
        raise BadInput(f"--output {path}: {path.parent} is no folder. Make it, or name another.")


def report(problems: Sequence[str], fine: str) -> bool:
    """Print what is wrong, or else that all is fine; whether it is.

    Args:
        problems: each on a line of its own, on stderr.
        fine: what to print, on stdout, where there is none.

    Returns:
        Whether there is none: a command returns that, and exits with 1 where it is False.
    """
    for problem in problems:
        print(problem, file=sys.stderr)
    if not problems:
        print(fine)
    return not problems
