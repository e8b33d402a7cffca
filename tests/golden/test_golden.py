"""Whether what a mechanism computes, draws and charges is as it was recorded."""

from __future__ import annotations

import pytest
from golden import record, renew
from golden.cases import Case, cases

CASES = cases()


@pytest.fixture(autouse=True)
def _no_remembered_prices(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.name, marks=[pytest.mark.long] if case.long else [])
        for case in CASES
    ],
)
def test_a_mechanism_does_what_it_did(case: Case) -> None:
    kept = record.load()[case.name]
    found = record.computed(case)
    differ = list(record.differences(kept, found))
    assert not differ, (
        f"{', '.join(case.owners)}: {', '.join(differ)} of case {case.name!r} differ from the "
        "record. If this is meant, add a line to CHANGELOG.md, and run make golden; if it was a "
        "mistake, undo it."
    )


def test_every_case_is_recorded() -> None:
    assert set(record.load()) == {case.name for case in CASES}


def test_what_differs_is_renewed_and_what_is_the_same_stays_as_it_was_written() -> None:
    known = {"a": {"value": [1.0]}, "b": {"value": [1.0]}, "gone": {"value": [1.0]}}
    several = [
        Case(name, ("dp_gd",), lambda value=value: {"value": [value]})
        for name, value in (("a", 1.0 + 1e-9), ("b", 2.0), ("c", 3.0))
    ]
    assert renew.renewed(known, several) == {
        "a": {"value": [1.0]},
        "b": {"value": [2.0]},
        "c": {"value": [3.0]},
    }
