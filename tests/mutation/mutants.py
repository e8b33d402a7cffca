"""The table of planted bugs, mutants.txt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Mutant:
    """One bug.

    Args:
        file: Below src/dpladder; of a package beside it below src, as dpladder_papers/rules.py
        at: The function or class that is edited, by its dotted name; empty for the module.
        old: An expression or statements of it, compared as trees.
        new: What takes their place.
        tests: Below tests/, as pytest names them. One of them, at least, has to fail.
    """

    name: str
    file: str
    at: str
    old: str
    new: str
    tests: tuple[str, ...]

    @property
    def path(self) -> Path:
        """The edited file, below src."""
        return Path(self.file if self.file.startswith("dpladder_") else f"dpladder/{self.file}")


def mutants(text: str) -> Iterator[Mutant]:
    lines = [line for line in text.splitlines() if line.strip() and line.strip()[0] != "#"]
    names = [place for place, line in enumerate(lines) if not line.startswith(" ")]
    for start, end in zip(names, [*names[1:], len(lines)], strict=True):
        place, *rest = (line[2:] for line in lines[start + 1 : end])
        file, _, at = place.partition(" ")
        old, new = ("\n".join(line[2:] for line in rest if line[0] == sign) for sign in "-+")
        tests = tuple(line for line in rest if line[0] not in "-+")
        yield Mutant(lines[start], file, at, old, new, tests)


MUTANTS = tuple(mutants(Path(__file__).with_name("mutants.txt").read_text("utf-8")))
