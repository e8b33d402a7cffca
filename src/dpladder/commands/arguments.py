"""What a command of `dpladder` takes, as a row of a table.

The table itself stands in cli.py, which imports a command's module only when it is called. So
`dpladder --help` starts neither torch nor Snakemake.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SLURM, VERBOSE = "--slurm", "--verbose"
DRY = {"-n", "--dry-run", "--dryrun"}


@dataclass(frozen=True)
class Argument:
    """What `argparse` is told of one argument.

    Attributes:
        names: of an option all its names, with dashes; of a positional its one name.
        options: keywords of `add_argument`, such as `type` and `help`.
    """

    names: tuple[str, ...]
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Command:
    """A command of `dpladder`.

    Attributes:
        help: a line.
        function: what runs it, a module and its function. It is called by the names of
            the arguments, prints what it has to say, and returns False where something is wrong.
        takes: its arguments. A command on configs is called in the folder of their project, and
            has their paths first.
    """

    help: str
    function: str
    takes: tuple[Argument, ...]


def command(help: str, function: str, *taken: Argument) -> Command:
    """A row of the table.

    Args:
        help: a line, which `argparse` shows.
        function: `module:function`.
        *taken: its arguments, positional ones in their order.
    """
    return Command(help, function, taken)


def takes(*names: str, **options: Any) -> Argument:
    """An argument, as `argparse` takes it: its names, and the options of `add_argument`."""
    return Argument(names, options)
