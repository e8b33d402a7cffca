"""Which keys were edited since the last plan was carried out: what a refusal that an edit causes
has to name."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from dpladder import formats
from dpladder.config import Project
from dpladder.errors import Refused
from dpladder.plan import dag, stages

PLAN = stages.RESULTS / "plan.json"
ABSENT = "nothing"


def keys_of(project: Project) -> dict[str, dict[str, Any]]:
    """All keys behind each experiment's results, where an edit may cost: sources are not among
    them. Research costs nothing."""
    if project.main.mode == "research":
        return {}
    return {
        name: dag.identity(config, rule, {"experiment": name, "target": stages.target_name(target)})
        for name, config in project.experiments.items()
        for rule in ["evaluate" if config.models == "own" else "evaluate_of"]
        for target in config.totals[:1]
    }


@contextlib.contextmanager
def named(project: Project) -> Iterator[None]:
    """A refusal inside ends with the edits, where there are any and the plan before them is still
    there."""
    before = _planned_keys()
    try:
        yield
    except Refused as refused:
        now = json.loads(json.dumps(keys_of(project)))
        told = [
            f"{name}: {edit}"
            for name in now
            if name in before
            for edit in _edits(before[name], now[name])
        ]
        raise Refused(
            f"{refused} Edited since {PLAN}: {'; '.join(told)}." if told else str(refused)
        ) from None


def _planned_keys() -> Mapping[str, Any]:
    """The keys that the last run in this folder planned with, by experiment; empty where there is
    nothing to read."""
    try:
        found = json.loads(PLAN.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(found, dict):
        return {}
    formats.check("plan", PLAN, found.get(formats.KEY))
    keys = found.get("keys")
    return keys if isinstance(keys, dict) else {}


def _edits(before: Mapping[str, Any], now: Mapping[str, Any], within: str = "") -> Iterator[str]:
    for key in sorted(before.keys() | now.keys()):
        old, new = before.get(key, ABSENT), now.get(key, ABSENT)
        if isinstance(old, dict) and isinstance(new, dict):
            yield from _edits(old, new, f"{within}{key}.")
        elif old != new:
            yield f"{within}{key} was {_shown(old)}, is {_shown(new)}"


def _shown(value: Any) -> str:
    return ABSENT if value == ABSENT else json.dumps(value)
