"""Backups of a home: whole, secret, consistent while runs go on, and never back in time."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from privacy.ledger.test_book import TERMS, item

from dpladder.cli import main
from dpladder.errors import BadInput, Refused
from dpladder.privacy.ledger import backup as backups
from dpladder.privacy.ledger.anchors import read, save_anchors
from dpladder.privacy.ledger.backup import BLOCK, MAGIC, backup, restore
from dpladder.privacy.ledger.book import Ledger, head, load, open_ledger, reserve, verify
from dpladder.privacy.ledger.home import Home, open_home

SECRET = "correct horse battery"


@pytest.fixture(name="home")
def _home(tmp_path: Path) -> Home:
    home = open_home(tmp_path / "home")
    reserve(open_ledger(home, TERMS), [item(0)])
    return home


def contents(home: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(home)): path.read_bytes()
        for path in sorted(home.rglob("*"))
        if path.is_file()
    }


def test_a_home_comes_back_as_it_was_for_its_owner_alone(home: Home, tmp_path: Path) -> None:
    (home.units / TERMS.lineage).mkdir()
    (home.units / TERMS.lineage / "units").write_bytes(bytes(3 * BLOCK + 1))
    backup(home, tmp_path / "b", SECRET)
    assert restore(tmp_path / "b", tmp_path / "again", SECRET, []) == [TERMS.lineage]
    assert contents(tmp_path / "again") == contents(home.path)
    assert {path.stat().st_mode & 0o077 for path in (tmp_path / "again").rglob("*")} == {0}
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o600
    reserve(Ledger(open_home(tmp_path / "again"), TERMS.lineage), [item(1)])


def test_a_backup_shows_nothing_of_what_it_holds(home: Home, tmp_path: Path) -> None:
    backup(home, tmp_path / "b", SECRET)
    told = (tmp_path / "b").read_bytes()
    assert told.startswith(MAGIC)
    assert not [word for word in (TERMS.lineage.encode(), home.key.read_bytes()) if word in told]


@pytest.mark.few(3)
@pytest.mark.parametrize("cut", [0, 10, 30, 60, 1000, -1, -17])
def test_a_backup_that_was_cut_or_changed_is_refused_and_leaves_nothing(
    cut: int, home: Home, tmp_path: Path
) -> None:
    (home.units / "big").write_bytes(bytes(2 * BLOCK))
    backup(home, tmp_path / "b", SECRET)
    whole = (tmp_path / "b").read_bytes()
    flipped = whole[:cut] + bytes([whole[cut] ^ 1]) + whole[cut + 1 or len(whole) :]
    blocks = whole[: len(MAGIC) + 16 + 2 * (BLOCK + 16)]  # two whole ones of three
    for damaged in (whole[:cut], flipped, blocks):
        (tmp_path / "c").write_bytes(damaged)
        with pytest.raises(BadInput, match=r"no backup|passphrase is another one"):
            restore(tmp_path / "c", tmp_path / "again", SECRET, [])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "c", "home"]


def test_another_passphrase_opens_nothing(home: Home, tmp_path: Path) -> None:
    backup(home, tmp_path / "b", SECRET)
    with pytest.raises(BadInput, match="passphrase is another one"):
        restore(tmp_path / "b", tmp_path / "again", SECRET + "!", [])
    with pytest.raises(BadInput, match="too short"):
        backup(home, tmp_path / "c", "short")
    assert not (tmp_path / "again").exists()
    assert not (tmp_path / "c").exists()


def test_a_backup_is_never_restored_over_a_home_nor_beside_later_results(
    home: Home, tmp_path: Path
) -> None:
    backup(home, tmp_path / "b", SECRET)
    before = contents(home.path)
    with pytest.raises(Refused, match="back in time"):
        restore(tmp_path / "b", home.path, SECRET, [])
    assert contents(home.path) == before
    ledger = Ledger(home, TERMS.lineage)
    reserve(ledger, [item(1)])
    save_anchors(tmp_path / "results", [head(ledger)])
    with pytest.raises(Refused, match="older than the results"):
        restore(tmp_path / "b", tmp_path / "again", SECRET, read(tmp_path / "results"))
    assert not (tmp_path / "again").exists()


def test_what_is_released_while_a_backup_is_made_is_in_it_whole_or_not_at_all(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release that comes after the ledger was read would stand there as one of a ledger that was
    cut short."""
    ledger = Ledger(home, TERMS.lineage)
    whole = backups._files

    def files(of: Home):
        found = whole(of)
        yield next(found)
        late = home.releases / TERMS.lineage / ("f" * 64) / ("e" * 64)
        late.mkdir(parents=True)
        (late / "score.json").write_text("1")
        yield from found

    monkeypatch.setattr(backups, "_files", files)
    backup(home, tmp_path / "b", SECRET)
    restore(tmp_path / "b", tmp_path / "again", SECRET, [])
    assert verify(Ledger(open_home(tmp_path / "again"), TERMS.lineage)) == []
    assert verify(ledger) != []


@pytest.mark.ci
def test_a_ledger_that_grows_meanwhile_is_in_a_backup_as_it_was_at_one_moment(
    home: Home, tmp_path: Path
) -> None:
    ledger, stop = Ledger(home, TERMS.lineage), threading.Event()

    def grow() -> None:
        for number in range(1, 10_000):
            if stop.is_set():
                return
            reserve(ledger, [item(number, mu=1e-6)])

    growing = threading.Thread(target=grow)
    growing.start()
    try:
        for number in range(5):
            backup(home, tmp_path / f"b{number}", SECRET)
    finally:
        stop.set()
        growing.join()
    for number in range(5):
        again = tmp_path / f"again{number}"
        restore(tmp_path / f"b{number}", again, SECRET, [])
        kept = load(Ledger(open_home(again), TERMS.lineage))
        assert 1 <= len(kept.charges) <= len(load(ledger).charges)


def test_the_commands_ask_for_a_file_with_the_passphrase(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret").write_text(SECRET + "\n")
    monkeypatch.setenv("DPLADDER_HOME", str(home.path))
    assert main(["home", "backup", "b", "--passphrase-file", "secret"]) == 0
    monkeypatch.setenv("DPLADDER_HOME", str(tmp_path / "again"))
    assert main(["home", "restore", "b", "--passphrase-file", "secret"]) == 0
    assert f"lineages {TERMS.lineage}" in capsys.readouterr().out
    assert contents(tmp_path / "again") == contents(home.path)
    save_anchors(tmp_path / "results", [head(Ledger(home, TERMS.lineage))])
    reserve(Ledger(home, TERMS.lineage), [item(1)])
    save_anchors(tmp_path / "results", [head(Ledger(home, TERMS.lineage))])
    monkeypatch.setenv("DPLADDER_HOME", str(tmp_path / "third"))
    assert main(["home", "restore", "b", "--passphrase-file", "secret"]) == 1
    assert "older than the results" in capsys.readouterr().err


@pytest.mark.parametrize("stdin", ["</dev/null", "<&-", "</etc/hostname"])
def test_a_backup_without_a_terminal_says_how_to_give_the_passphrase(
    home: Home, tmp_path: Path, stdin: str
) -> None:
    command = [sys.executable, "-m", "dpladder", "home", "backup", str(tmp_path / "b")]
    ended = subprocess.run(
        ["sh", "-c", f'"$@" {stdin}', "sh", *command],
        env=os.environ | {"DPLADDER_HOME": str(home.path)},
        start_new_session=True,  # a timer's job has no terminal to open, either
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == BadInput.exit_code
    assert "Give --passphrase-file FILE" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert not (tmp_path / "b").exists()
