"""Renew golden cases, of mechanisms whose version rose alone: python tests/golden/renew.py."""

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
    if not record.PATH.is_file():
        print(
            f"{record.PATH} is gone. Restore it from version control: nothing is recorded anew "
            "without it."
        )
        return 1
    with tempfile.TemporaryDirectory() as empty:  # no price is remembered from other code
        os.environ["XDG_CACHE_HOME"] = empty
        known, refused = renewed(record.load(), cases())
    record.store(known)
    if refused:
        print(
            "Refused, as their versions in plan/mechanisms.py did not rise (or, for what is new to "
            "the record, as it was recorded before; restore "
            "tests/golden/golden.json): " + "; ".join(refused)
        )
    return 1 if refused else 0


def renewed(known: Mapping[str, Any], among: Iterable[Case]) -> tuple[dict[str, Any], list[str]]:
    """The record with every case that may differ as it is now, and the names of those that may not,
    as they were."""
    chosen = list(among)
    kept, versions = dict(known["cases"]), dict(known["versions"])
    refused: list[Case] = []
    for case in chosen:
        found = record.computed(case)
        old = kept.get(case.name)
        if old is not None and not list(record.differences(old, found)):
            continue
        new = old is None and case.name not in known["recorded"]
        print(f"{case.name}: {'new' if new else 'differs'}, of {', '.join(case.owners)}")
        if new or record.rose(case, versions):
            kept[case.name] = found
        else:
            refused.append(case)
    # A version counts as seen when nothing of its mechanism is refused: until then it still
    # explains what differs.
    waiting = {name for case in refused for name in (*case.owners, *case.through)}
    for case in chosen:
        seen = (owner for owner in (*case.owners, *case.through) if owner not in waiting)
        versions |= {owner: record.version(owner) for owner in seen}
    owners = {owner for case in chosen for owner in (*case.owners, *case.through)}
    versions = {owner: number for owner, number in versions.items() if owner in owners}
    names = {case.name for case in chosen}
    cases_ = {name: found for name, found in kept.items() if name in names}
    recorded = sorted(cases_.keys() | (names & set(known["recorded"])))
    return {"versions": versions, "recorded": recorded, "cases": cases_}, [
        case.name for case in refused
    ]


if __name__ == "__main__":
    sys.exit(main())
