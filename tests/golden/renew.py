"""Renew golden cases, of mechanisms whose version rose alone: python tests/golden/renew.py."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from golden import record
from golden.cases import cases


def main() -> int:
    known, refused, seen = record.load(), [], set()
    for case in cases():
        seen.add(case.name)
        found = {name: record.rounded(value) for name, value in case.compute().items()}
        kept = known["cases"].get(case.name)
        if kept is not None and not list(record.differences(kept, found)):
            continue
        print(f"{case.name}: {'differs' if kept else 'new'}, of {', '.join(case.owners)}")
        rose = all(record.version(owner) > known["versions"].get(owner, 0) for owner in case.owners)
        if kept is None or rose:
            known["cases"][case.name] = found
        else:
            refused.append(case.name)
    if refused:
        print("Refused, as not all versions rose in plan/mechanisms.py: " + "; ".join(refused))
        return 1
    known["cases"] = {name: found for name, found in known["cases"].items() if name in seen}
    known["versions"] = {owner: record.version(owner) for case in cases() for owner in case.owners}
    record.store(known)
    return 0


if __name__ == "__main__":
    sys.exit(main())
