"""What the tools read from their command lines, and the tables and curves that they put out."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from types import GenericAlias
from typing import Any

from arena import DATA
from matplotlib.axes import Axes

from dpladder.report.style import CYCLE, log_axis

POSITIONAL = ("table", "problem", "problems", "surfaces")
HELP = {
    "cache": "where extracted features stay between runs",
    "figure": "where a picture goes",
}


def read_options(
    doc: str | None, choices: Mapping[str, Collection[str]] | None = None, **defaults: Any
) -> argparse.Namespace:
    """Each keyword is an option, and its default says what the option takes.

    Args:
        doc: The tool's docstring, which `--help` prints.
        choices: What an option's words may be, by its name.
        **defaults: Several values of one type, a switch (`True` or `False`), or one value. A type,
            or `list` of a type, stands for an option that is empty by default. What POSITIONAL
            names stands without dashes; `problem` and `problems` are data sets of arena.py.
    """
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    allowed = {"problem": DATA, "problems": DATA, **(choices or {})}
    for name, default in defaults.items():
        words: dict[str, Any] = {"default": default, "help": HELP.get(name)}
        many = "*" if name in POSITIONAL else "+"
        if isinstance(default, bool):
            words["action"] = argparse.BooleanOptionalAction
        elif isinstance(default, GenericAlias):
            words |= {"default": [], "type": default.__args__[0], "nargs": many}
        elif isinstance(default, list | tuple):
            words |= {"type": type(default[0]), "nargs": many}
        elif callable(default):
            words |= {"default": None, "type": default}
        else:
            words |= {"type": type(default)} | ({"nargs": "?"} if name in POSITIONAL else {})
        if name in allowed:  # no `choices`: argparse would hold a list's default to them as one
            words["type"] = partial(_one_of, allowed[name])
        option = name if name in POSITIONAL else f"--{name.replace('_', '-')}"
        parser.add_argument(option, **words)
    return parser.parse_args()


def _one_of(allowed: Collection[str], word: str) -> str:
    if word not in allowed:
        raise argparse.ArgumentTypeError(f"{word} is not one of {', '.join(allowed)}")
    return word


def print_head(*columns: object) -> None:
    print_row(*columns)
    print("|" + "---|" * len(columns), flush=True)


def print_row(*cells: object) -> None:
    """A row of a table; numbers that are not whole have three places."""
    texts = [f"{cell:.3f}" if isinstance(cell, float) else f"{cell}" for cell in cells]
    print(f"| {' | '.join(texts)} |", flush=True)


def totals(epsilons: Sequence[float]) -> list[str]:
    """The heads of columns that are a total each."""
    return [f"ε = {epsilon:g}" for epsilon in epsilons]


def plot_lines(
    axes: Axes,
    lines: Mapping[str, tuple[Iterable[float], Iterable[float], str]],
    xlabel: str,
    ylabel: str,
    logarithmic: str = "x",
    legend: bool = True,
) -> None:
    """Lines of x, y and a style each, by their labels. Those alike up to a comma share a colour."""
    colours = dict(zip(dict.fromkeys(one.split(",")[0] for one in lines), CYCLE, strict=False))
    for label, (x, y, style) in lines.items():
        axes.plot([*x], [*y], style, color=colours[label.split(",")[0]], label=label)
    for which in logarithmic:
        log_axis(axes, which)  # type: ignore[arg-type]
    axes.set(xlabel=xlabel, ylabel=ylabel)
    if legend:
        axes.legend(fontsize=8)
