"""Keys that retired, and choices that came later: what old questions and ledgers say of them.

A question is a digest of the config's values by key (plan/node.py). If a key left it, every
question would be another, and all that was ever released would be asked and paid for anew. So
whoever removes a key, or takes it out of a question, names it here. It stays in each question, in
content and in a plan's note at the value that most projects had.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

# by full name, below a section that jobs read whole
RETIRED: Mapping[str, Any] = {}
# what ledgers mean that remember an experiment's choices without these (plan/resolve.py)
CHOSEN_BEFORE: Mapping[str, Any] = {"calibrate": None}


def with_retired(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values as questions name them: each retired key stands at its value.

    Args:
        values: by the full names of keys, of which some are sections. A retired key is set below
            its section; where that is not among them, it plays no part.
    """
    return _set_retired(values, lambda section, name: True)


def without_retired(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values as jobs read them: what a config says by a key that others still read changes
    nothing here, and a key that is gone stays away."""
    return _set_retired(values, lambda section, name: name in section)


def _set_retired(
    values: Mapping[str, Any], sets: Callable[[Mapping[str, Any], str], bool]
) -> dict[str, Any]:
    result = dict(values)
    for full_name, value in RETIRED.items():
        for key in result:
            if full_name.startswith(f"{key}."):
                path = full_name.removeprefix(f"{key}.").split(".")
                result[key] = _with_value(result[key], path, value, sets)
    return result


def _with_value(
    section: Any,
    path: Sequence[str],
    value: Any,
    sets: Callable[[Mapping[str, Any], str], bool],
) -> Any:
    """A section with a value at a path below it; as it is where an inner section is none."""
    if not isinstance(section, dict):
        return section
    name, *below = path
    if below:
        inner = {name: _with_value(section[name], below, value, sets)} if name in section else {}
    else:
        inner = {name: value} if sets(section, name) else {}
    return section | inner
