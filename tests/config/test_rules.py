"""Tables of rules: none of them is lost, and a mark is seen where it stands."""

from __future__ import annotations

from typing import Annotated

import pytest

from dpladder.config.rules import rule_if, rules_of_marks, union
from dpladder.section import OnlyFor, Section

NEVER = OnlyFor("nothing", lambda _: False)
RULE = rule_if(lambda _: False, "never said")


class Marked(Section):
    inner: Annotated[int, NEVER] = 0


class AlwaysThere(Section):
    section: Marked = Marked()


class SometimesThere(Section):
    section: Marked | None = None


def test_tables_with_two_rules_for_one_key_are_refused() -> None:
    assert [*union({"a": RULE}, {"b": RULE})] == ["a", "b"]
    with pytest.raises(ValueError, match="two rules for b"):
        union({"a": RULE, "b": RULE}, {"b": RULE})


def test_a_mark_has_a_rule_or_is_refused() -> None:
    table = rules_of_marks(AlwaysThere)
    assert [*table] == ["section.inner"]
    assert [*table["section.inner"](AlwaysThere())] == []
    [says] = table["section.inner"](AlwaysThere(section=Marked(inner=1)))
    assert says == "this key is only for nothing; leave it out"
    with pytest.raises(ValueError, match=r"section\.inner"):
        rules_of_marks(SometimesThere)
