"""A home of a group, by one user who is of it; tests/crash/test_team.py is two of them."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from dpladder.cli import main
from dpladder.errors import BadInput, Refused
from dpladder.privacy.accounting.events import Gaussian, Job, Partition, Spend
from dpladder.privacy.ledger.backup import backup, restore
from dpladder.privacy.ledger.book import load, open_ledger, reserve
from dpladder.privacy.ledger.home import Home, make_folder, open_home
from dpladder.privacy.ledger.state import Item, Terms
from dpladder.privacy.ledger.team import init, limits, user

TERMS = Terms("shared", "add_remove", "record", 1, 1e-5, "hash", 2.0)


def item(name: str, sigma: float) -> Item:
    job = Job(name, "estimate_mean", ())
    part = Partition("hash", ("train",))
    return Item(job, str(job), (Spend("shared", "add_remove", part, Gaussian(sigma)),))


@pytest.fixture(name="home")
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("DPLADDER_HOME", str(tmp_path / "home"))
    return init(str(os.getegid()))


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_the_group_reads_all_and_others_nothing_whatever_the_umask(home: Home, umask: int) -> None:
    before = os.umask(umask)
    try:
        reserve(open_ledger(home, TERMS), [item("one", 100.0)])
        make_folder(home.releases / "shared" / "query")
    finally:
        assert os.umask(before) == umask
    assert stat.S_IMODE(home.path.stat().st_mode) == 0o2750
    for path in home.path.rglob("*"):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o2770 if path.is_dir() else 0o640), path


def test_a_spend_says_who_asked_for_it(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    ledger = open_ledger(home, TERMS)
    reserve(ledger, [item("one", 100.0)])
    [held] = load(ledger).charges.values()
    assert held.by == user()
    last = json.loads(sorted(ledger.folder.iterdir())[-1].read_text())
    assert last["by"] == {"user": user(), "host": os.uname().nodename}
    assert main(["ledger", "show", "--by", "user"]) == 0
    assert f"  {user()}" in capsys.readouterr().out
    assert main(["ledger", "show", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)["shared"]
    assert shown["items"][0]["user"] == user()
    assert shown["users"] == {user(): shown["epsilon"]}


def test_a_limit_of_a_user_holds_within_the_lineages_own(home: Home) -> None:
    home.limits.write_text(f"users: {{{user()}: 0.3}}\n")
    ledger = open_ledger(home, TERMS)
    with pytest.raises(Refused, match=r"may spend epsilon = 0.3 of lineage shared.*Nothing was"):
        reserve(ledger, [item("one", 10.0)])
    assert not load(ledger).charges
    reserve(ledger, [item("one", 100.0)])
    home.limits.write_text("users: {somebody: 0.1}\nothers: null\n")
    reserve(ledger, [item("two", 10.0)])


@pytest.mark.parametrize("mode", [0o660, 0o644, 0o646])
def test_limits_that_others_could_have_changed_are_refused(home: Home, mode: int) -> None:
    home.limits.chmod(mode)
    with pytest.raises(BadInput, match="must be its home's owner's"):
        limits(home)
    home.limits.chmod(0o640)
    home.key.chmod(mode)
    with pytest.raises(BadInput, match="must be its home's owner's"):
        open_ledger(open_home(), TERMS)


@pytest.mark.parametrize("text", ["users: 3", "[1]", "users: {a: -1}", "limits: {}", "users: {"])
def test_limits_that_say_nothing_are_refused_in_one_sentence(home: Home, text: str) -> None:
    home.limits.write_text(text)
    with pytest.raises(BadInput, match=r"cannot be read\. It must say users"):
        limits(home)


def test_no_limits_at_all_are_refused_too(home: Home) -> None:
    home.limits.unlink()
    with pytest.raises(BadInput, match="is missing"):
        limits(home)


def test_a_home_that_was_opened_by_mistake_is_no_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPLADDER_HOME", str(tmp_path / "own"))
    home = open_home()
    assert home.format.read_text() == "7\n"
    home.path.chmod(0o2750)
    with pytest.raises(BadInput, match="is open to other users"):
        open_home()


def test_folders_of_a_users_own_home_are_that_users_alone(tmp_path: Path) -> None:
    home, before = open_home(tmp_path / "own"), os.umask(0)
    try:
        open_ledger(home, TERMS)
        make_folder(home.releases / "shared" / "query")
    finally:
        os.umask(before)
    assert {stat.S_IMODE(p.stat().st_mode) for p in home.path.rglob("*") if p.is_dir()} == {0o700}


def test_a_backup_of_a_groups_home_is_restored_as_ones_own(home: Home, tmp_path: Path) -> None:
    reserve(open_ledger(home, TERMS), [item("one", 100.0)])
    backup(home, tmp_path / "kept", "a passphrase")
    restore(tmp_path / "kept", tmp_path / "again", "a passphrase", [])
    again = open_home(tmp_path / "again")
    assert stat.S_IMODE(again.path.stat().st_mode) == 0o700
    assert limits(again).of(user()) is None
    init(str(os.getegid()), tmp_path / "again")
    assert stat.S_IMODE(again.path.stat().st_mode) == 0o2750


def test_making_a_home_again_keeps_its_limits_and_leaves_what_links_lead_to(
    home: Home, tmp_path: Path
) -> None:
    limits_of_group = "users: {somebody: 1.0}\nothers: 0.5\n"
    home.limits.write_text(limits_of_group, "utf-8")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.touch(0o600)
    (home.releases / "link").symlink_to(elsewhere)
    init(str(os.getegid()))
    assert home.limits.read_text("utf-8") == limits_of_group
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o600
