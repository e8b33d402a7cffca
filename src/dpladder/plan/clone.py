"""The clone that dpladder runs from, if it runs from one."""

from __future__ import annotations

import subprocess

from dpladder.plan.installation import SOURCE
from dpladder.privacy.statement.build import MODIFIED


def commit() -> str | None:
    """The clone's commit, and whether its files are still those.

    A statement names it, so that others can read the code that made a release.

    Returns:
        40 hexadecimal digits, with MODIFIED behind them where tracked files were edited. None where
        this is no clone, or git cannot say.
    """
    if not (SOURCE.parent / ".git").exists():
        return None
    answers = [_git("rev-parse", "HEAD"), _git("status", "--porcelain", "--untracked-files=no")]
    if None in answers:
        return None
    return f"{answers[0]}{MODIFIED if answers[1] else ''}"


def _git(*arguments: str) -> str | None:
    command = ["git", "-C", str(SOURCE.parent), *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):  # no git here, or a clone of somebody else's
        return None
