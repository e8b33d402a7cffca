"""Learners and searches of other packages, by their entry points (docs/extend.md).

An entry point's name is the method's, with a dot in it, which dpladder's own names never have. A
learner's value is one module with its `METHOD` (config/learners.py); a search's is a package with
the modules `section`, `cost`, `search` and `audit`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar, get_args, get_origin

from dpladder.config.section import Section
from dpladder.errors import BadInput

Entry = TypeVar("Entry")


@dataclass(frozen=True)
class OtherSearch:
    """A search that another package brings. `version` rises, as those in plan/mechanisms.py do,
    when what it computes, draws or charges changes in meaning."""

    name: str
    room: str
    package: str
    section: type[Section]

    @property
    def version(self) -> int:
        return int(getattr(self.section, "version", 1))


def entries(
    group: str, read: Callable[[EntryPoint, str], Entry], taken: Iterable[str] = ()
) -> dict[str, Entry]:
    """The methods of a group (`dpladder.learners`, `dpladder.searches`) by their names. One that
    cannot be used is left out with a warning, and stands in nobody's way.

    Args:
        read: from an entry point and its package's name to the method.
        taken: names that are somebody else's.
    """
    methods: dict[str, Entry] = {}
    for entry in sorted(installed_entry_points().select(group=group), key=lambda entry: entry.name):
        package = "?" if entry.dist is None else entry.dist.name
        try:
            if "." not in entry.name or entry.name in {*taken, *methods}:
                raise BadInput("its name must have a dot in it, and be nobody else's.")
            methods[entry.name] = read(entry, package)
        except Exception as error:  # whatever their code may raise
            warnings.warn(f"{group} of {package}: {entry.name} is left out: {error}", stacklevel=2)
    return methods


@cache
def installed_entry_points() -> Any:
    """Of all groups at once, for looking takes 15 ms."""
    return entry_points()


def other_search(entry: EntryPoint, package: str) -> OtherSearch:
    module: Any = import_module(f"{entry.value}.section")
    check_section(module.SECTION, entry.name, Section)
    return OtherSearch(entry.name, entry.value, package, module.SECTION)


def check_section(section: Any, name: str, base: type[Section]) -> None:
    """Refuse a section that a config cannot hold, or whose fields hide what `base` says of it."""
    if not (isinstance(section, type) and issubclass(section, base)):
        raise BadInput(f"its section must be a class that extends {base.__name__}.")
    fields = section.model_fields
    if get_args(fields["name"].annotation) != (name,):
        raise BadInput(f"{section.__name__} must have name: Literal[{name!r}].")
    traits = {*vars(base)} - {*base.model_fields}
    if hidden := sorted(traits & fields.keys()):
        raise BadInput(
            f"{', '.join(hidden)}: traits of {base.__name__} have these names. Choose other names "
            "for its fields."
        )
    unhashable = [
        name for name, field in fields.items() if {list, dict, set} & {*_types_in(field.annotation)}
    ]
    if unhashable:
        raise BadInput(
            f"{', '.join(unhashable)}: a section is compared and remembered, so its fields hold no "
            "list, dict or set. Write tuple[...] in place of list[...]."
        )


def _types_in(annotation: Any) -> Iterator[Any]:
    """A type, and all that stand inside its brackets."""
    yield get_origin(annotation) or annotation
    for inside in get_args(annotation):
        yield from _types_in(inside)
