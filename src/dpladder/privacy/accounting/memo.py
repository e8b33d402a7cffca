"""Figures that take seconds to compute, remembered on disk by all that they follow from. They are
public."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any


def memoized_figure(name: str, arguments: Mapping[str, Any], compute: Callable[[], float]) -> float:
    """The figure, computed once for each set of arguments and version of the formulas.

    A file that cannot be read, or is about something else, is computed anew. Whoever can write one
    could lower a price. So a figure is believed only from a file that is this user's own and that
    nobody else can write, which is how home's key and ledgers are protected: who can change the one
    can change the other. The figures are neither keyed nor recomputed.

    Args:
        name: of the figure.
        arguments: all that it follows from, as JSON holds it.
        compute: makes it, in seconds.
    """
    question = json.dumps([name, arguments, _formulas()], sort_keys=True)
    path = _folder() / f"{hashlib.sha256(question.encode()).hexdigest()}.json"
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        known = json.loads(_read_own(path))
        if known["question"] == question:
            return float(known["answer"])
    answer = compute()
    with contextlib.suppress(OSError):  # a cache that cannot be written is no reason to stop
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", dir=path.parent, delete=False, encoding="utf-8"
        ) as file:
            json.dump({"question": question, "answer": answer}, file)
        os.replace(file.name, path)
    return answer


def _read_own(path: Path) -> bytes:
    """The bytes of a file that nobody but this user could have written; else an OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        others_write = stat.S_IMODE(status.st_mode) & 0o022
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or others_write:
            raise PermissionError(f"{path} is not this user's alone")
        return file.read()


@cache
def _formulas() -> str:
    """A digest of this folder's code, so that no figure outlives the formula that it came from."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def _folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dpladder" / "prices"
