"""The one door to files that others may have made or edited: results of a run, models, statements.

Whatever lies in a file's place is read as an ordinary file of a size that fits, or is one error in
a sentence. A pipe would wait for ever, a device never ends, and JSON has forms that break whoever
reads it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
from collections.abc import Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any, Final, NoReturn

from dpladder.errors import BadInput, os_error_text

PUBLIC_FOLDERS: Final = (Path("results"), Path("logs"), Path("benchmarks"))
LARGEST_FILE: Final = 2**36  # bytes; weights of the largest networks that are released
LARGEST_TEXT: Final = 2**28  # bytes; documents and pages, which are held in memory
DEEPEST: Final = 40  # lists and mappings inside each other; a statement has 10


def open_file(path: Path, largest: int = LARGEST_FILE) -> BufferedReader:
    """An ordinary file, open for reading.

    Args:
        path: of the file; a link is followed.
        largest: bytes that it may have.

    Raises:
        FileNotFoundError: nothing is there.
        BadInput: something else than an ordinary file is there, it is too large, or the file system
            refuses.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the path
        why = os_error_text(error) if isinstance(error, OSError) else str(error)
        raise BadInput(f"{path} cannot be read: {why}. Restore it") from None
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and status.st_size <= largest:
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISREG(status.st_mode):
        raise BadInput(
            f"{path} has {status.st_size:,} bytes, and {largest:,} are allowed. Restore it"
        )
    raise BadInput(
        f"{path} is a folder, a pipe or a device, and an ordinary file belongs there. Restore it"
    )


def read_bytes(path: Path) -> bytes:
    """The bytes of a document or a page; errors as `open_file` has them."""
    with open_file(path, LARGEST_TEXT) as file:
        data = file.read(LARGEST_TEXT + 1)
    if len(data) > LARGEST_TEXT:  # it grew while it was read
        raise BadInput(f"{path} grows while it is read. Restore it")
    return data


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes, as hex digits; errors as `open_file` has them."""
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_json(path: Path) -> Any:
    """The document in a JSON file.

    Raises:
        FileNotFoundError: nothing is there.
        BadInput: it is no ordinary file, or not JSON as `parse_json` has it.
    """
    data = read_bytes(path)
    try:
        return parse_json(data)
    except ValueError as error:
        raise BadInput(f"{path} cannot be read as JSON: {error}. Restore it") from None


def parse_json(text: str | bytes) -> Any:
    """A document of finite numbers, of names that stand once and of a bounded depth, as everything
    that dpladder writes.

    Raises:
        ValueError: it is something else; the reason is a clause.
    """
    try:
        document = json.loads(
            text if isinstance(text, str) else text.decode("utf-8"),
            parse_constant=_refuse_number,
            parse_float=_finite,
            object_pairs_hook=object_of,
        )
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    level = [document]
    for _ in range(DEEPEST):
        level = [one for outer in level for one in _inside(outer)]
    if level:
        raise ValueError("it is nested too deeply")
    return document


def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON. One reader takes the first of two values of a name, and another the last.

    Raises:
        ValueError: a name stands there twice.
    """
    if len(document := dict(pairs)) < len(pairs):
        raise ValueError("a name stands twice in an object")
    return document


def _inside(value: Any) -> Any:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list) else ()


def _finite(text: str) -> float:
    return float(text) if math.isfinite(float(text)) else _refuse_number(text)


def _refuse_number(text: str) -> NoReturn:
    raise ValueError(f"{text[:20]} is no finite number")
