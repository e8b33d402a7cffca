"""What a command of `dpladder` takes, as a row of a table."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Run = Callable[[argparse.Namespace], int]
SLURM, VERBOSE = "--slurm", "--verbose"


@dataclass(frozen=True)
class Argument:
    """What `argparse` is told of one argument."""

    names: tuple[str, ...]
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Command:
    """A command of `dpladder`: a line of help, its arguments, and what runs it."""

    help: str
    takes: tuple[Argument, ...]
    run: Run


def takes(*names: str, **options: Any) -> Argument:
    """An argument, as `argparse` takes it: its names, and the options of `add_argument`."""
    return Argument(names, options)
