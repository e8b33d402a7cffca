"""Learners, searches and rules of packages, by their entry points (docs/extend.md).

An entry point's name is the method's. Its value is a module with its `METHOD` (config/method.py).
Names without a dot are kept for the distribution that dpladder itself comes in.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from importlib import import_module
from importlib.metadata import Distribution, EntryPoint, entry_points
from typing import Any, TypeVar, get_args, get_origin

from dpladder.config.method import DISTRIBUTION, Method
from dpladder.errors import BadInput
from dpladder.section import Section

OneMethod = TypeVar("OneMethod", bound=Method)


def methods_of_packages(
    group: str, kind: type[OneMethod], base: type[Section], taken: Iterable[str] = ()
) -> dict[str, OneMethod]:
    """The methods of a group (`dpladder.learners`, `dpladder.searches`) by their names. One that
    cannot be used is left out with a warning, and stands in nobody's way.

    The price of another distribution's method rests on its authors' word, and statements say so
    (contract: one-door).

    Args:
        group: of entry points.
        kind: of their `METHOD`.
        base: that their sections extend.
        taken: names that are somebody else's.
    """
    methods: dict[str, OneMethod] = {}
    for entry in sorted(installed_entry_points().select(group=group), key=lambda entry: entry.name):
        package = _name_of(entry.dist)
        try:
            needs_dot = package != DISTRIBUTION
            if (needs_dot and "." not in entry.name) or entry.name in {*taken, *methods}:
                # a dot keeps names apart for good: a later dpladder may have any name without one
                raise BadInput("its name must have a dot in it, and be nobody else's.")
            methods[entry.name] = replace(_method(entry, kind, base), package=package)
        except Exception as error:  # whatever their code may raise
            warnings.warn(f"{group} of {package}: {entry.name} is left out: {error}", stacklevel=2)
    return methods


def rules_of_packages() -> list[Any]:
    """Modules with what other packages of dpladder's own distribution add to the workflow: `RULES`
    (plan/rules.py), and `OF_EXPERIMENT` and `OF_ALL` of pictures (plan/pictures.py). So nobody
    else's entry points are looked at."""
    entries = installed_entry_points().select(group="dpladder.rules")
    return [import_module(entry.value) for entry in entries if _name_of(entry.dist) == DISTRIBUTION]


def load_command(name: str) -> Any:
    """The function behind a command that another package brings (`dpladder.commands`).

    Raises:
        BadInput: none does.
    """
    for entry in installed_entry_points().select(group="dpladder.commands", name=name):
        return entry.load()
    raise BadInput(
        f"dpladder {name} comes in a package beside dpladder, which is not installed. Install "
        "dpladder whole, or run `make env` in a clone."
    )


def _method(entry: EntryPoint, kind: type[OneMethod], base: type[Section]) -> OneMethod:
    """A module's METHOD; its `package` is set by who calls, so that no plug-in can pass for
    dpladder's own."""
    method = import_module(entry.value).METHOD
    if not isinstance(method, kind):
        raise BadInput(f"{entry.value}.METHOD must be a {kind.__module__}.{kind.__name__}.")
    check_section(method.section, entry.name, base)
    return method


@cache  # for each look parses the whole description of a package
def _name_of(distribution: Distribution | None) -> str:
    """The name of the distribution that an entry point comes in."""
    return "?" if distribution is None else distribution.name


@cache
def installed_entry_points() -> Any:
    """The entry points of all groups, found at once, for looking takes 15 ms."""
    return entry_points()


def check_section(section: Any, name: str, base: type[Section]) -> None:
    """Refuse a plug-in's section that a config cannot hold, before any of its code is asked.

    Args:
        section: what stands as its METHOD's section, whatever that is.
        name: that the plug-in is installed under, which its `name` field must be alone.
        base: the class that it has to extend. A field may not hide what that says of it.

    Raises:
        BadInput: it is no such class, or its name or a field's is wrong. A field must hold no list,
            dict or set either, which cannot be compared and remembered.
    """
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
