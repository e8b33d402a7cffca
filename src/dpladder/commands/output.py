"""Where a command writes what it is asked for."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from dpladder.errors import BadInput


def check_output(path: Path | None, suffixes: Collection[str]) -> None:
    """Refuse a file that cannot be written before it takes minutes to know what goes into it."""
    if path is None:
        return
    if path.suffix not in suffixes:
        raise BadInput(f"--output {path}: it must end in one of {', '.join(suffixes)}.")
    if not path.parent.is_dir():
        raise BadInput(f"--output {path}: {path.parent} is no folder. Make it, or name another.")
