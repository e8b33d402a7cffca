"""Learners and searches of other packages, by their entry points (docs/extend.md).

An entry point's name is the method's, with a dot in it, which dpladder's own names never have. A
learner's value is one module with its `SECTION`, `queries` and `train`; a search's is a package
with the modules `section`, `cost`, `search` and `audit`.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, get_args, get_origin

from dpladder.config.section import Section
from dpladder.errors import BadInput

LEARNERS = "dpladder.learners"
RESERVED = frozenset(
    ("augment", "covariance", "head", "init", "link", "look", "public", "statistics", "steering")
)
"""Keys of learners by which a plan finds purchases, guides and views, or leaves them out of what a
job is known by at dpladder's own defaults."""


@dataclass(frozen=True)
class Other:
    """A method that another package brings. `version` rises, as those in plan/mechanisms.py do,
    when what it computes, draws or charges changes in meaning."""

    name: str
    room: str
    package: str
    section: type[Section]

    @property
    def version(self) -> int:
        return int(getattr(self.section, "version", 1))


def others(group: str, taken: Iterable[str] = ()) -> dict[str, Other]:
    """The methods of a group (`dpladder.learners`, `dpladder.searches`) by their names. One that
    cannot be used is left out with a warning, and stands in nobody's way."""
    found: dict[str, Other] = {}
    for entry in sorted(installed().select(group=group), key=lambda entry: entry.name):
        package = "?" if entry.dist is None else entry.dist.name
        try:
            found[entry.name] = _other(entry, group, package, {*taken, *found})
        except Exception as error:  # whatever their code may raise
            warnings.warn(f"{group} of {package}: {entry.name} is left out: {error}", stacklevel=2)
    return found


@cache
def installed() -> Any:
    """Of all groups at once, for looking takes 15 ms."""
    return entry_points()


def _other(entry: EntryPoint, group: str, package: str, taken: Collection[str]) -> Other:
    if "." not in entry.name or entry.name in taken:
        raise BadInput("its name must have a dot in it, and be nobody else's.")
    module: Any = import_module(entry.value if group == LEARNERS else f"{entry.value}.section")
    section = module.SECTION
    if not (isinstance(section, type) and issubclass(section, Section)):
        raise BadInput(f"{module.__name__}.SECTION must be a class that extends Section.")
    if get_args(section.model_fields["name"].annotation) != (entry.name,):
        raise BadInput(f"{module.__name__}.SECTION must have name: Literal[{entry.name!r}].")
    own = (cls for cls in section.__mro__ if cls.__module__.partition(".")[0] != "dpladder")
    if taken_fields := RESERVED & {
        name for cls in own for name in vars(cls).get("__annotations__", ())
    }:
        raise BadInput(
            f"{', '.join(sorted(taken_fields))}: dpladder gives fields of this name a meaning. "
            "Choose other names, or extend the section of dpladder's that has them."
        )
    unhashable = [
        name
        for name, field in section.model_fields.items()
        if {list, dict, set} & {*_types_in(field.annotation)}
    ]
    if unhashable:
        raise BadInput(
            f"{', '.join(unhashable)}: a section is compared and remembered, so its fields hold no "
            "list, dict or set. Write tuple[...] in place of list[...]."
        )
    return Other(entry.name, entry.value, package, section)


def _types_in(annotation: Any) -> Iterator[Any]:
    """A type, and all that stand inside its brackets."""
    yield get_origin(annotation) or annotation
    for inside in get_args(annotation):
        yield from _types_in(inside)
