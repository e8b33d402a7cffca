"""Whether a mechanism's version must rise: what it computes, draws and charges is as it was
recorded."""

from __future__ import annotations

from pathlib import Path

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
def test_a_mechanism_does_what_its_version_did(case: Case) -> None:
    kept = record.load()["cases"][case.name]
    found = record.computed(case)
    differ = list(record.differences(kept, found))
    owners = ", ".join(f'VERSIONS["{owner}"]' for owner in case.owners)
    assert not differ, (
        f"{', '.join(case.owners)}: {', '.join(differ)} of case {case.name!r} differ from the "
        f"record. If this is meant, raise {owners} in plan/mechanisms.py, add a line to "
        "CHANGELOG.md, and run make golden; if it was a mistake, undo it."
    )


def test_every_case_and_version_is_recorded() -> None:
    known = record.load()
    assert set(known["cases"]) == set(known["recorded"]) == {case.name for case in CASES}
    owners = {owner for case in CASES for owner in (*case.owners, *case.through)}
    assert known["versions"] == {owner: record.version(owner) for owner in owners}, (
        "Run make golden."
    )


def _case(name: str, owner: str, value: float) -> Case:
    return Case(name, (owner,), lambda: {"value": [value]})


KNOWN = {
    "versions": {"dp_gd": 1, "hyfree_dp": 1},
    "recorded": ["a", "b"],
    "cases": {"a": {"value": [1.0]}, "b": {"value": [1.0]}},
}


@pytest.fixture
def risen(monkeypatch: pytest.MonkeyPatch) -> None:
    """hyfree_dp has a version above 1, dp_gd has not."""
    monkeypatch.setitem(record.VERSIONS, "hyfree_dp", 2)


def test_what_is_refused_stays_and_what_rose_is_renewed(risen: None) -> None:
    found, refused = renew.renewed(KNOWN, [_case("a", "dp_gd", 2.0), _case("b", "hyfree_dp", 2.0)])
    assert refused == ["a"]
    assert found["cases"] == {"a": {"value": [1.0]}, "b": {"value": [2.0]}}
    assert found["versions"] == {"dp_gd": 1, "hyfree_dp": record.version("hyfree_dp")}


def test_a_deleted_case_is_not_recorded_anew() -> None:
    known = KNOWN | {"cases": {"b": {"value": [1.0]}}}
    found, refused = renew.renewed(known, [_case("a", "dp_gd", 2.0), _case("b", "hyfree_dp", 1.0)])
    assert refused == ["a"]
    assert "a" not in found["cases"]
    assert "a" in found["recorded"]


def test_without_a_record_nothing_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "PATH", tmp_path / "golden.json")
    assert renew.main() == 1
    assert not (tmp_path / "golden.json").exists()


def test_what_runs_through_a_mechanism_may_change_with_it(risen: None) -> None:
    case = Case("a", ("dp_gd",), lambda: {"value": [2.0]}, through=("hyfree_dp",))
    assert not renew.renewed(KNOWN, [case])[1]
