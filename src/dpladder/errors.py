"""The two ways dpladder stops on purpose. Every message says what was given, what is allowed, what to do next."""

from __future__ import annotations


class DpladderError(Exception):
    """Anything dpladder reports to the user in one readable message."""

    exit_code = 1


class Refused(DpladderError):
    """The request is well formed but would break a promise: a budget, a limit, the ledger, a contract line."""

    exit_code = 1


class BadInput(DpladderError):
    """The config, the data or a file is not what it must be."""

    exit_code = 2
