"""The two ways dpladder stops on purpose. Every message says what was given, what is allowed, what
to do next."""

from __future__ import annotations

import errno
import os
import re


class DpladderError(Exception):
    """Anything dpladder reports to the user in one readable message.

    Args:
        private: What a command shows beside the message on its owner's terminal. No log has it.
    """

    exit_code = 1

    def __init__(self, message: str = "", private: str = "") -> None:
        super().__init__(message)
        self.private = private


class Refused(DpladderError):
    """The request is well formed but would break a promise: a budget, a limit, the ledger, a
    contract line."""

    exit_code = 1


class BadInput(DpladderError):
    """The config, the data or a file is not what it must be."""

    exit_code = 2


UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
LIMITS = (errno.EFBIG, errno.EMFILE, errno.ENFILE)  # of the shell, the scheduler or the system
TWICE = "What is charged stays charged, and nothing is charged twice"


def os_error_text(error: OSError) -> str:
    """What the file system said, by its number. Libraries write a text of their own beside it, such
    as how much was written where. That tells how large a private file is."""
    return os.strerror(error.errno) if error.errno else "the file system refused"


def full_disk(error: BaseException) -> str | None:
    """What the file system said, where a disk without room, or mounted for reading, or a limit of
    the shell on files, is behind an error. Libraries wrap it in errors of their own; of their text,
    which may be private, nothing but the number is used."""
    wrapped = re.search(r"\b(?:os error|errno =) (\d+)", str(error))
    number = (
        error.errno if isinstance(error, OSError) and error.errno else wrapped and int(wrapped[1])
    )
    if number in LIMITS:
        return f"{os.strerror(number)}, which is a limit on files (ulimit -a)"
    return os.strerror(number) if number in UNWRITABLE else None
