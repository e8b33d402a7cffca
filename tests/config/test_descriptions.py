"""Each key says what it is, in short sentences, what empty means, and an example."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from types import NoneType
from typing import Any, get_args

import pytest
from documented import ROOT
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from dpladder.config.model import Config
from dpladder.section import described_fields

sys.path.insert(0, str(ROOT / "tools"))
from sentences import sentences, words

LONGEST = 25


def sections(kind: Any) -> Iterator[type[BaseModel]]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield kind
        for field in kind.model_fields.values():
            yield from sections(field.annotation)
    for argument in get_args(kind):
        yield from sections(argument)


FIELDS = {
    f"{section.__name__}.{name}": field
    for section in sections(Config)
    for name, field in described_fields(section).items()
}
KEYS = {
    key: field
    for key, field in FIELDS.items()
    if not list(sections(field.annotation)) and not key.endswith(".name")
}


def test_every_key_is_described() -> None:
    named = {
        key for key in FIELDS if key.endswith(".name")
    }  # of which class, once in the reference
    assert [
        key for key, field in FIELDS.items() if not field.description and key not in named
    ] == []


@pytest.mark.parametrize("field", FIELDS.values(), ids=FIELDS)
def test_a_description_has_short_sentences(field: FieldInfo) -> None:
    text = (field.description or "").partition("One of: ")[0]
    assert [each for each in sentences(text) if words(each) > LONGEST] == []


@pytest.mark.parametrize("field", KEYS.values(), ids=KEYS)
def test_a_key_that_may_be_empty_says_what_that_means(field: FieldInfo) -> None:
    if NoneType in get_args(field.annotation):
        assert "Empty: " in (field.description or "")


@pytest.mark.parametrize("field", KEYS.values(), ids=KEYS)
def test_a_key_without_a_default_has_an_example(field: FieldInfo) -> None:
    if field.is_required() or field.default is None:
        assert re.search("Example: |One of: ", field.description or "")
