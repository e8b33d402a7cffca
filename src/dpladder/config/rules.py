"""Rules between keys: what a rule is, and how a table of them is applied to a config.

**Where a rule stands.** A key that some configs alone have is marked (`OnlyFor`). What lies between
keys of one section is that section's `_problems`. All else is in a table: what a task decides in
task_rules.py, the data's in dataset_rules.py, those of learners, searches and findings in their
modules, others in check.py. Marks and tasks see the config as it was given, the tables what
`apply_task` makes of it.

Types and ranges of a single key are pydantic's. A rule is about one key beside others: it yields
what is allowed and what to do, and never raises. Each rule sees the config through `Traced`, which
notes the keys that it reads. So a message that rests on a stand-in is left out, and a user sees a
mistake once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from pydantic import BaseModel

from dpladder.section import OnlyFor, Section, marks_of, nested_sections
from dpladder.wording import KeyPath, value_as_text

Problem = tuple[KeyPath, str]
Messages = Iterator[str]
Rule = Callable[..., Messages]
"""What is wrong with one key beside the others: what is allowed, and what to do next. What was
given is put before it, unless the message begins with that by itself."""
Table = Mapping[str, Rule]
"""Rules by their keys, with dots; an empty key is the place where the table begins."""


def rule_if(broken: Callable[..., object], says: str | Callable[..., str]) -> Rule:
    """The rule that says one thing of every config for which `broken` is true.

    Args:
        broken: sees the config, and what the table gives its rules beside it. Any true value breaks
            it.
        says: what is allowed and what to do, in a clause that begins small; or a function of the
            same.
    """

    def rule(*seen: object) -> Messages:
        if broken(*seen):
            yield says if isinstance(says, str) else says(*seen)

    return rule


def union(*tables: Table) -> Table:
    """Several tables as one, in their order.

    Raises:
        ValueError: two have a rule for one key, and one of them would be lost.
    """
    joined: dict[str, Rule] = {}
    for table in tables:
        if both := joined.keys() & table.keys():
            raise ValueError(f"two rules for {', '.join(sorted(both))}")
        joined |= table
    return joined


def rules_of_marks(section: type[BaseModel], at: tuple[str, ...] = ()) -> Table:
    """A rule for each key that is marked as meant for some configs alone (`OnlyFor`), of a section
    and of those that always stand in it.

    Raises:
        ValueError: a key of another section is marked, of which nothing here would see.
    """
    table: dict[str, Rule] = {}
    for name, field in section.model_fields.items():
        key = (*at, name)
        if marks := marks_of(field):
            default = field.get_default(call_default_factory=True)
            table[".".join(key)] = partial(_check_marks, key, default, marks)
        for inner, _ in nested_sections(field.annotation):
            rules = rules_of_marks(inner, key)
            if rules and field.annotation is not inner:
                raise ValueError(f"{', '.join(rules)}: OnlyFor is for sections that always stand")
            table |= rules
    return table


def _check_marks(key: Sequence[str], default: Any, marks: Sequence[OnlyFor], c: Any) -> Messages:
    """A key that means nothing beside the others."""
    value = c
    for name in key:
        value = getattr(value, name)
    unfit = [mark.words for mark in marks if not mark.fits(c)]
    if unfit and value != default:
        yield f"this key is only for {unfit[0]}; leave it out"


def problems(
    table: Table,
    config: Section,
    doubtful: Collection[KeyPath] = (),
    at: KeyPath = (),
    beside: tuple[Any, ...] = (),
) -> Iterator[Problem]:
    """What is wrong by the rules.

    Args:
        table: rules by their keys, in the order in which they are told.
        config: a section, whose keys the rules read.
        doubtful: Keys whose values are stand-ins. A message that follows from what was read there
            is the echo of a mistake that was told already.
        at: Where the table begins.
        beside: What these rules look at besides the config.

    Yields:
        The whole path of a key, and a message with what was given.
    """
    for name, rule in table.items():
        key = (*at, *name.split(".")) if name else at
        read = {key}
        # `read` fills while the rule runs: ask it after each message, and not before
        for says in rule(Traced(config, (), read), *beside):
            if not any(_overlap(one, other) for one in read for other in doubtful):
                yield key, _given_text(config, key, says)


class Traced:
    """A section as rules see it, which remembers the keys that they read.

    Args:
        section: the section itself, or one inside it.
        at: its path in the config.
        read: grows with each key; sections inside share it.
    """

    def __init__(self, section: Section, at: KeyPath, read: set[KeyPath]) -> None:
        self._section, self._at, self._read = section, at, read
        if "name" in type(section).model_fields:  # the kind, which tells what keys there are
            read.add((*at, "name"))

    def __getattr__(self, name: str) -> Any:
        value, field = getattr(self._section, name), type(self._section).model_fields.get(name)
        at = self._at if field is None else (*self._at, name)  # a property may read any key
        # A section that is always there is noted by the keys that are read in it. Whether an
        # optional one is there is a fact by itself.
        if field is None or field.default is None or not isinstance(value, Section):
            self._read.add(at)
        return Traced(value, at, self._read) if isinstance(value, Section) else value

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The section's own class, for isinstance."""
        return type(self._section)


def _overlap(one: KeyPath, other: KeyPath) -> bool:
    """Whether one key is the other or lies above it."""
    return all(a == b for a, b in zip(one, other, strict=False))


def _given_text(config: Section, key: KeyPath, says: str) -> str:
    """The message after what was given, but where nothing was written, or the message says it
    itself."""
    value: Any = config
    as_written: Any = config.model_dump()
    chosen = True
    for part in key:
        chosen = not isinstance(value, Section) or part in value.model_fields_set
        value = value[part] if isinstance(part, int) else getattr(value, part)
        as_written = as_written[part]
    listed = list(value) if isinstance(value, tuple) else [value]
    written = listed and not any(one is None or isinstance(one, Section) for one in listed)
    if not written or says.startswith(("given", "required")):
        return says
    text = value_as_text(as_written)
    return f"given {text}; {says}" if chosen else f"left out, which means {text}; {says}"
