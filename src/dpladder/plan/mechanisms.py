"""Mechanisms and their versions: what a private job is known by, in place of its code.

A mechanism is a rule, a learner, a search or what guides a descent, by its name. Its version rises
when what it computes, draws or charges changes in meaning, and only then: tests/golden decides
that. What was released under an earlier version is kept, restored and built upon, so code may be
renamed, moved and made faster without anybody paying twice.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from dpladder.config import learner_sections, search_sections

Versions = Mapping[str, int]
"""Of mechanisms by their names; a name that is absent has version 1."""

VERSIONS: dict[str, int] = {
    "estimate_mean": 2,
    "hyfree_dp": 2,
    "hyfree_finetune": 2,
    "propose_test": 2,
    "public_gradient": 2,
}
"""What this dpladder runs. Each line here has one in CHANGELOG.md."""
BROUGHT = {**learner_sections.OTHERS, **search_sections.OTHERS}
"""Those of other packages."""
WORD = (
    "its noise is held to what it declares; that nothing leaves it beside that noise, and that one "
    "record moves its sums no further than declared, is its authors' word"
)
VERSIONS |= {other.name: other.version for other in BROUGHT.values() if other.version > 1}

FIRST = Path(__file__).with_name("first_versions.json")


GUIDE = "public_gradient"


def behind(rule: str, *others: str | None) -> tuple[str, ...]:
    """The mechanisms of one rule's job: its learner, its search, what guides it."""
    return tuple(name for name in (rule, *others) if name)


def raised(names: Iterable[str], among: Versions | None = None) -> dict[str, int]:
    """Of these mechanisms, those that are beyond their first version."""
    known = VERSIONS if among is None else among
    return {name: known[name] for name in sorted(set(names)) if known.get(name, 1) > 1}


def token(
    rule: str, learner: str | None, search: str | None, at: Versions, guide: str | None = None
) -> str:
    """What stands for a rule's mechanisms in the identity of its jobs.

    First versions have tokens of their own, fixed in a table: they are what ledgers, records and
    Snakemake's memory held before versions were, and so those keep their meaning.
    """
    names = behind(rule, learner, search)
    first = _first().get(rule, {}).get(" ".join(names[1:])) or _digest([*names, 1])
    above = raised(behind(*names, guide), at)
    return _digest([first, above]) if above else first


@cache
def _first() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = json.loads(FIRST.read_text("utf-8"))
    return found


def _digest(parts: list[object]) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
