"""The golden file: what each case came to. Read, compared, renewed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from golden.case import Case

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
    """What each case came to, by its name."""
    cases: dict[str, Any] = json.loads(PATH.read_text("utf-8"))
    return cases


def store(cases: Mapping[str, Any]) -> None:
    lines = [f'"{name}": {json.dumps(case)}' for name, case in sorted(cases.items())]
    text = ",\n".join(lines)
    PATH.write_text(f"{{\n{text}\n}}\n", "utf-8")


def computed(case: Case) -> dict[str, Any]:
    return {name: rounded(value) for name, value in case.compute().items()}
