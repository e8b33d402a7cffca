"""The golden file: what each case came to, and under which versions. Read, compared, renewed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from golden.case import Case

from dpladder.plan.mechanisms import VERSIONS

PATH = Path(__file__).with_name("golden.json")
CLOSE, EXACT = 1e-5, 1e-9  # of an array's largest number; of a price, an event or a draw
RELEASED = "document"  # ends the names of released texts: float32 sums hang on the processor
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[+-]?\d+)?")


def rounded(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [rounded(one) for one in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


def differences(kept: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[str]:
    """What of a case is not as it was recorded."""
    for name in dict.fromkeys((*kept, *found)):
        digits = CLOSE if name.endswith(RELEASED) else EXACT
        if name not in kept or name not in found or not _same(kept[name], found[name], digits):
            yield name


def _same(kept: Any, found: Any, digits: float) -> bool:
    if isinstance(kept, str) and isinstance(found, str):
        mine, theirs = (list(map(float, NUMBER.findall(text))) for text in (kept, found))
        return NUMBER.sub("", kept) == NUMBER.sub("", found) and np.allclose(
            mine, theirs, digits, 0.0
        )
    if (
        isinstance(kept, list)
        and isinstance(found, list)
        and kept
        and isinstance(kept[0], list | str)
    ):
        return len(kept) == len(found) and all(map(_same, kept, found, repeat(digits)))
    a, b = np.asarray(kept), np.asarray(found)
    return a.shape == b.shape and bool(
        np.all(np.abs(a - b) <= CLOSE * max(np.abs(a).max(initial=0), 1e-300))
    )


def load() -> dict[str, Any]:
    """`recorded` names the cases that there are: one that vanished is not new."""
    found: dict[str, Any] = json.loads(PATH.read_text("utf-8"))
    return found


def store(known: Mapping[str, Any]) -> None:
    lines = [f'"{name}": {json.dumps(case)}' for name, case in sorted(known["cases"].items())]
    versions, recorded = (
        json.dumps(known[key], sort_keys=True) for key in ("versions", "recorded")
    )
    cases = ",\n".join(lines)
    PATH.write_text(
        f'{{"versions": {versions},\n"recorded": {recorded},\n"cases": {{\n{cases}\n}}}}\n', "utf-8"
    )


def computed(case: Case) -> dict[str, Any]:
    return {name: rounded(value) for name, value in case.compute().items()}


def version(mechanism: str) -> int:
    return VERSIONS.get(mechanism, 1)


def rose(case: Case, versions: Mapping[str, int]) -> bool:
    """Whether versions explain that a case differs: all of its owners', or one that it runs
    through."""
    up = {name for name in (*case.owners, *case.through) if version(name) > versions.get(name, 1)}
    return up.issuperset(case.owners) or not up.isdisjoint(case.through)
