"""Mechanisms and their versions: what a private job is known by, in place of its code.

A mechanism is a rule, a learner, a search or what guides a descent, by its name. Its version rises
when what it computes, draws or charges changes in meaning, and only then: tests/golden decides
that. What was released under an earlier version is kept, restored and built upon. So code may be
renamed, moved and made faster without anybody paying twice.

A version is a promise about meaning, not about bytes of code. A mechanism that is not named in
VERSIONS has version 1, so that a new mechanism changes no job that does not use it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dpladder.config import learners, searches
from dpladder.config.method import Method

Versions = Mapping[str, int]
"""Of mechanisms by their names; a name that is absent has version 1."""

VERSIONS: dict[str, int] = {}
"""What this dpladder runs, beyond first versions. Each line here has one in CHANGELOG.md."""
METHODS: Mapping[str, Method] = {**learners.METHODS, **searches.METHODS}
BROUGHT = {name: method for name, method in METHODS.items() if not method.built_in}
"""Those of other packages."""
WORD = (
    "its noise is held to what it declares, and a learner's sums are made and kept within their "
    "bounds by dpladder; that it reaches for nothing else, that a search looks at no more than it "
    "declares, and how far a unit moves what a search adds noise to, is its authors' word"
)
VERSIONS |= {name: method.version for name, method in METHODS.items() if method.version > 1}

GUIDE = "public_gradient"


def mechanism_names(rule: str, *further: str | None) -> tuple[str, ...]:
    """The mechanisms of one rule's job: its learner, its search, what guides it.

    Args:
        rule: whose job it is.
        *further: learners, a search and a guide; None for what the job does not have.
    """
    return tuple(name for name in (rule, *further) if name)


def raised_versions(names: Iterable[str], among: Versions | None = None) -> dict[str, int]:
    """Of these mechanisms, those that are beyond their first version.

    Args:
        names: of mechanisms, in any order; doubles count once.
        among: versions to look them up in; None takes this dpladder's.

    Returns:
        By name, in alphabetical order, for its digest is part of a job's identity.
    """
    known = VERSIONS if among is None else among
    return {name: known[name] for name in sorted(set(names)) if known.get(name, 1) > 1}
