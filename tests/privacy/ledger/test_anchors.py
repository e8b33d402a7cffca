"""Anchors: results remember how far their ledgers were, so that a home put back in time is found
out before it spends."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from dpladder.errors import BadInput, Refused
from dpladder.privacy.ledger.anchors import check, last_plans, read, save_anchors
from dpladder.privacy.ledger.book import Ledger, head, load, open_ledger, verify
from dpladder.privacy.ledger.home import open_home
from dpladder.privacy.ledger.state import Anchor, Terms

TERMS = Terms("toy", "add_remove", "record", 1, 1e-5, "hash", lifetime_epsilon=1.0)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return tmp_path / "results"


def opened(home: Path) -> Ledger:
    return open_ledger(open_home(home), TERMS)


def test_what_is_kept_is_read_and_nothing_is_without(results: Path) -> None:
    assert read(results) == []
    toy, other = Anchor("toy", 3, "a" * 64), Anchor("other", 1, "b" * 64)
    save_anchors(results, [toy])
    save_anchors(results, [other])
    assert sorted(read(results), key=str) == [other, toy]


def test_an_anchor_goes_on_and_never_back(results: Path) -> None:
    early, late = Anchor("toy", 2, "b" * 64), Anchor("toy", 3, "a" * 64)
    for anchor in (early, late, early):
        save_anchors(results, [anchor])
    assert read(results) == [late]


def test_the_last_plan_of_a_folder_is_known_until_the_next(results: Path) -> None:
    assert last_plans(results) == {}
    first, later = Anchor("toy", 2, "b" * 64), Anchor("toy", 3, "a" * 64)
    save_anchors(results, [first], {"toy": 2})
    save_anchors(results, [later])  # a job's
    save_anchors(results, [Anchor("other", 1, "c" * 64)])
    assert last_plans(results) == {"toy": 2, "other": 0}
    save_anchors(results, [later], {"toy": 1})  # back to what was planned before
    assert (last_plans(results)["toy"], read(results)[1]) == (1, later)


def test_a_ledger_that_holds_its_anchor_may_have_grown(tmp_path: Path, results: Path) -> None:
    ledger = opened(tmp_path / "home")
    save_anchors(results, [head(ledger)])
    check(ledger.home, read(results), {"toy": load(ledger)})
    check(ledger.home, read(results))


@pytest.mark.parametrize(
    ("anchor", "why"),
    [
        (Anchor("toy", 2, "a" * 64), "saw entry 2, the ledger ends at 1"),
        (Anchor("toy", 1, "a" * 64), "entry 1 is not the one"),
        (Anchor("other", 1, "a" * 64), "lineage other: no ledger in"),
    ],
)
def test_a_ledger_without_its_anchor_is_refused_and_nothing_is_called_free(
    tmp_path: Path, anchor: Anchor, why: str
) -> None:
    ledger = opened(tmp_path / "home")
    for states in ({}, {"toy": load(ledger)}):
        with pytest.raises(Refused, match=why) as refusal:
            check(ledger.home, [anchor], states)
        assert "DPLADDER_HOME" in str(refusal.value)
        assert "free" not in str(refusal.value)


def test_another_home_with_a_ledger_of_the_same_name_is_refused(
    tmp_path: Path, results: Path
) -> None:
    save_anchors(results, [head(opened(tmp_path / "first"))])
    with pytest.raises(Refused, match="another home"):
        check(opened(tmp_path / "second").home, read(results))


def test_a_home_restored_whole_is_refused(tmp_path: Path, results: Path) -> None:
    open_home(tmp_path / "home")
    shutil.copytree(tmp_path / "home", tmp_path / "backup")
    save_anchors(results, [head(opened(tmp_path / "home"))])
    shutil.rmtree(tmp_path / "home")
    shutil.copytree(tmp_path / "backup", tmp_path / "home")
    with pytest.raises(Refused, match="lineage toy: no ledger in"):
        check(open_home(tmp_path / "home"), read(results))


@pytest.mark.parametrize("text", ["", "[]", "{", '{"toy": 3}', json.dumps({"toy": {"seq": "3"}})])
def test_anchors_that_cannot_be_read_are_an_error(results: Path, text: str) -> None:
    results.mkdir()
    (results / "ledger.json").write_text(text)
    with pytest.raises(BadInput, match=r"ledger\.json"):
        read(results)


def test_anchors_that_cannot_be_written_are_an_error(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(Refused, match=r"No space left on device.*nothing is charged twice"):
        save_anchors(results, [Anchor("toy", 1, "a" * 64)])


def test_an_entry_that_was_whole_and_is_cut_short_has_to_be_restored_and_both_say_so(
    tmp_path: Path, results: Path
) -> None:
    """Nobody promises a repair that the next run refuses."""
    ledger = opened(tmp_path / "home")
    save_anchors(results, [head(ledger)])
    [entry] = ledger.folder.glob("*.json")
    whole = entry.read_bytes()
    entry.chmod(0o600)
    entry.write_bytes(whole[: len(whole) // 2])
    same = Ledger(open_home(tmp_path / "home"), "toy")
    assert verify(same) == ["entry 1 is half-written; the next run repairs it"]
    said = "entry 1 was whole when results saw it, and its file was cut short since"
    assert verify(same, read(results)) == [said]
    with pytest.raises(Refused, match=rf"{said}.*Restore .*{entry.name} from a backup"):
        check(same.home, read(results))
    entry.write_bytes(whole)
    again = Ledger(open_home(tmp_path / "home"), "toy")
    assert verify(again, read(results)) == []
    check(again.home, read(results))
