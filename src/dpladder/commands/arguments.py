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
    help: str
    takes: tuple[Argument, ...]
    run: Run


def takes(*names: str, **options: Any) -> Argument:
    return Argument(names, options)
