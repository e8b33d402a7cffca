"""Keys that retired, and choices that came later: what old questions and ledgers say of them.

A question is a digest of the config's values by key (plan/node.py). If a key left it, every
question would be another, and all that was ever released would be asked and paid for anew. So
whoever removes a key, or takes it out of a question, names it here. It stays in each question, in
content and in a plan's note at the value that most projects had.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

NEVER = object()  # the value of a key that was part of no question, and is of none
# by full name, below a section that jobs read whole
RETIRED: Mapping[str, Any] = {
    "dataset.columns.monotone": NEVER,  # of each; final trainings read it by themselves
    "dataset.target.error": None,  # tests read it by itself
    "dataset.target.unit": NEVER,
}
# what ledgers mean that remember an experiment's choices without these (plan/resolve.py)
CHOSEN_BEFORE: Mapping[str, Any] = {"calibrate": None, "curves": 0, "learner": None}


def with_retired(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values as questions name them: each retired key stands at its value.

    Args:
        values: by the full names of keys, of which some are sections. A retired key is set below
            its section; where that is not among them, it plays no part.
    """
    return _set(values, RETIRED)


def without_retired(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values as jobs read them, without retired keys: what a config says by one that others still
    read changes nothing here."""
    return _set(values, dict.fromkeys(RETIRED, NEVER))


def _set(values: Mapping[str, Any], retired: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(values)
    for full_name, value in retired.items():
        for key in result:
            if full_name.startswith(f"{key}."):
                path = full_name.removeprefix(f"{key}.").split(".")
                result[key] = _with_value(result[key], path, value)
    return result


def _with_value(section: Any, path: Sequence[str], value: Any) -> Any:
    """A section with a value at a path below it, or each section of a list; as it is where an inner
    section is none."""
    if isinstance(section, list):
        return [_with_value(one, path, value) for one in section]
    if not isinstance(section, dict):
        return section
    name, *below = path
    if below:
        inner = {name: _with_value(section[name], below, value)} if name in section else {}
        return section | inner
    rest = {key: one for key, one in section.items() if key != name}
    return rest if value is NEVER else rest | {name: value}
