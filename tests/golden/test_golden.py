"""Whether a mechanism's version must rise: what it computes, draws and charges is as it was recorded."""

from __future__ import annotations

import pytest
from golden import record
from golden.cases import Case, cases

CASES = cases()


@pytest.fixture(autouse=True)
def _no_remembered_prices(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_mechanism_does_what_its_version_did(case: Case) -> None:
    kept = record.load()["cases"][case.name]
    found = {name: record.rounded(value) for name, value in case.compute().items()}
    differ = list(record.differences(kept, found))
    owners = ", ".join(f'VERSIONS["{owner}"]' for owner in case.owners)
    assert not differ, (
        f"{', '.join(case.owners)}: {', '.join(differ)} of case {case.name!r} differ from the record. If this is meant, raise "
        f"{owners} in plan/mechanisms.py, add a line to CHANGELOG.md, and run make golden; if it was a mistake, undo it."
    )


def test_every_case_and_version_is_recorded() -> None:
    known = record.load()
    assert set(known["cases"]) == {case.name for case in CASES}
    owners = {owner for case in CASES for owner in case.owners}
    assert known["versions"] == {owner: record.version(owner) for owner in owners}, "Run make golden."
