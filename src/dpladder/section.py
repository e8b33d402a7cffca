"""What every section of the config is made of.

A section is frozen and strict: it can be compared and remembered, and no text passes for a number.
Its description for users stands beside its keys, and the schema, the reference and messages are
made of it.
"""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from functools import cache, reduce
from itertools import pairwise
from operator import or_
from typing import Annotated, Any, Self, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator
from pydantic.fields import FieldInfo

NAME_PATTERN = r"^[a-z0-9][a-z0-9_-]*$"
Name = Annotated[str, Field(pattern=NAME_PATTERN, max_length=64)]
Words = Annotated[str, Field(min_length=1)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
# an epsilon above this protects nobody, and far above it figures overflow
Epsilon = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Fraction = Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]


@dataclass(frozen=True)
class NeutralAt:
    """Marks a key that came after 1.0, in the annotation of its field. At this value it asks
    nothing new, and is left out of what a job is known by. So it must be the field's default, or do
    what the default does. Sections of other packages mark theirs in the same way."""

    value: Any


@dataclass(frozen=True)
class OnlyFor:
    """Marks a key that means something in some configs alone, in the annotation of its field.
    Elsewhere it is refused, but at its default (config/rules.py), and its description says so.

    Attributes:
        words: those configs, in a clause after "only for".
        fits: whether a config is one of them, as it was given.
    """

    words: str
    fits: Callable[[Any], object]


def _describe_properties(schema: dict[str, Any], section: type[BaseModel]) -> None:
    """Give each key of a JSON schema its description; one that is a section has the section's
    own."""
    for name, field in described_fields(section).items():
        if field.description and "$ref" not in schema["properties"][name]:
            schema["properties"][name]["description"] = field.description


class Section(BaseModel):
    """Keys of one part of the config. The docstring of a section is its description for users, and
    the text below a key says what that means."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        json_schema_extra=_describe_properties,
    )

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # One line in the reference, the schema and the example, however the docstring is wrapped.
        cls.__doc__ = " ".join((cls.__doc__ or "").split()) or None

    def _problems(self) -> Iterator[str]:
        """What is wrong between the keys of this section. A message begins with its key."""
        yield from ()

    @model_validator(mode="after")
    def _refuse_problems(self) -> Self:
        for says in self._problems():
            raise ValueError(says)
        return self


def chosen_by_name(sections: Sequence[type[Section]]) -> Any:
    """The type of a key that holds one of several sections, told apart by their `name`."""
    if len(sections) == 1:
        return sections[0]
    return Annotated[reduce(or_, sections), Field(discriminator="name")]


def described_fields(section: type[BaseModel]) -> dict[str, FieldInfo]:
    """The fields of a section, each with its description: its own, the text below it, or that of
    the section that it holds.

    Texts are looked up here and not by pydantic (`use_attribute_docstrings`): that reads sources
    whenever a section is made, and so at each start."""
    for name, field in section.model_fields.items():
        if field.description is None:
            below = [_texts_below_fields(kind).get(name) for kind in section.__mro__]
            inner = [section.__doc__ for section, _ in nested_sections(field.annotation)]
            text = next(filter(None, below + inner), None)
            field.description = _with_marks(text, marks_of(field))
    return section.model_fields


def _with_marks(text: str | None, marks: Sequence[OnlyFor]) -> str | None:
    """A key's description, with the configs that it is for before its example."""
    if text is None or not marks:
        return text
    meaning, example, value = text.partition(" Example: ")
    return f"{meaning} Only for {' and '.join(mark.words for mark in marks)}.{example}{value}"


def marks_of(field: FieldInfo) -> list[OnlyFor]:
    """The configs that a key is for; none where it is for all of them."""
    return [mark for mark in field.metadata if isinstance(mark, OnlyFor)]


def nested_sections(kind: Any, listed: bool = False) -> Iterator[tuple[type[BaseModel], bool]]:
    """The sections that may stand in a place, and whether as entries of a list.

    Args:
        kind: a type or an annotation, unions and tuples among them.
        listed: whether the place is already inside a list.

    Yields:
        Each section's class once for each way in which it may stand there.
    """
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield kind, listed
    for argument in get_args(kind):
        yield from nested_sections(argument, listed or get_origin(kind) is tuple)


@cache
def _texts_below_fields(kind: type) -> dict[str, str]:
    """The text below each field of a class, by the field's name, read off its source."""
    if kind in Section.__mro__ or not issubclass(kind, Section):
        return {}
    try:
        source = inspect.getsource(kind)
    except (OSError, TypeError):  # a class of another package, made without a file
        return {}
    texts: dict[str, str] = {}
    [definition] = ast.parse(textwrap.dedent(source)).body
    assert isinstance(definition, ast.ClassDef)
    for pair in pairwise(definition.body):
        match pair:
            case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(text))):
                texts[name] = " ".join(text.split())
    return texts


def values_of(section: BaseModel) -> dict[str, Any]:
    """A section as plain JSON values, without keys at their neutral values.

    A question is known by these values (plan/dag.py). A new key at its neutral value
    leaves every old question as it was. So what was released for it is restored (contract:
    write-ahead).
    """
    fields = type(section).model_fields
    return {
        name: _to_plain(getattr(section, name), value)
        for name, value in section.model_dump(mode="json").items()
        if NeutralAt(getattr(section, name)) not in fields[name].metadata
    }


def _to_plain(value: Any, dumped: Any) -> Any:
    """A dumped value, with sections inside it dumped by `values_of` too."""
    if isinstance(value, BaseModel):
        return values_of(value)
    if isinstance(value, tuple | list) and isinstance(dumped, list):
        return [_to_plain(*both) for both in zip(value, dumped, strict=True)]
    return dumped


def from_document(kind: Any, values: Mapping[str, Any]) -> Any:
    """A section, or a dataclass of plain values and sections, from its JSON document. What does not
    fit is an error that says where.

    Args:
        kind: the class, or a union of sections that a key tells apart.
        values: plain JSON values.

    Raises:
        pydantic.ValidationError: a key is missing, unknown, or of another type.
    """
    if not is_dataclass(kind):
        return _adapter(kind).validate_json(json.dumps(values))
    [value] = _adapter(tuple[kind]).validate_json(json.dumps([values]))
    return value


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    # pydantic takes no config for a dataclass alone, and lets one in a tuple inherit it
    config = ConfigDict(extra="forbid") if get_origin(kind) is tuple else None
    return TypeAdapter(kind, config=config)
