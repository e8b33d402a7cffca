"""Renew the golden record of what differs, and say of what: python tests/golden/renew.py."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from golden import record
from golden.case import Case
from golden.cases import cases


def main() -> int:
    with tempfile.TemporaryDirectory() as empty:  # no price is remembered from other code
        os.environ["XDG_CACHE_HOME"] = empty
        record.store(renewed(record.load() if record.PATH.is_file() else {}, cases()))
    return 0


def renewed(known: Mapping[str, Any], chosen: Iterable[Case]) -> dict[str, Any]:
    """The record with every case that differs as it is now, and without cases that are gone."""
    renewed_cases = {}
    for case in chosen:
        now, old = record.computed(case), known.get(case.name)
        same = old is not None and not list(record.differences(old, now))
        if not same:
            print(
                f"{case.name}: {'new' if old is None else 'differs'}, of {', '.join(case.owners)}"
            )
        renewed_cases[case.name] = old if same else now
    return renewed_cases


if __name__ == "__main__":
    sys.exit(main())
