"""Where a command writes what it is asked for, and the statement that it may speak by."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from pathlib import Path

from dpladder.errors import BadInput, Refused
from dpladder.privacy.statement.check import check, key_of_seal, read_statement
from dpladder.privacy.statement.records import Document
from dpladder.wording import printable


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
        print(printable(problem), file=sys.stderr)
    if not problems:
        print(printable(fine))
    return not problems


def checked_statement(results: Path, undone: str) -> Document:
    """The statement of a finished run, which follows from the records beside it. Where home knows
    its lineages, home sealed it; elsewhere a line says that the seal was not checked.

    Args:
        results: its folder.
        undone: what the caller did not do, for the refusal.

    Raises:
        Refused: something disagrees.
        BadInput: there is no statement, or it cannot be read.
    """
    statement, key = read_statement(results), key_of_seal(results)
    if problems := check(statement, results, key):
        raise Refused(f"{'; '.join(problems)}. {undone}")
    if key is None:
        print(
            f"{results}: no home here has a ledger of its lineages, so its seal was not checked, "
            "only its records"
        )
    return statement
