"""Home: a private place with one key, made once, and refused whenever something about it is off."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from dpladder.errors import BadInput
from dpladder.privacy.ledger import home as homes
from dpladder.privacy.ledger.home import Home, Purpose, create_once, open_home, replace, subkey


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return open_home(tmp_path / "home")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_everything_in_a_new_home_is_private_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        home = open_home(tmp_path / "home")
    finally:
        os.umask(before)
    assert mode(home.key) == 0o600
    assert home.key.stat().st_size == 32
    assert {
        mode(path) for path in (home.path, home.ledgers, home.releases, home.staging, home.units)
    } == {0o700}


def test_a_home_keeps_its_key(home: Home) -> None:
    key = home.key.read_bytes()
    open_home(home.path)
    assert home.key.read_bytes() == key


def test_the_variable_names_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPLADDER_HOME", str(tmp_path / "elsewhere"))
    assert open_home().path == tmp_path / "elsewhere"


def test_looking_creates_nothing(tmp_path: Path) -> None:
    open_home(tmp_path / "home", create=False)
    assert not list(tmp_path.iterdir())


def test_subkeys_are_hkdf_of_the_key(home: Home) -> None:
    for purpose in get_args(Purpose):
        oracle = HKDFExpand(hashes.SHA256(), 32, b"dpladder " + purpose.encode())
        assert subkey(home, purpose) == oracle.derive(home.key.read_bytes())


def test_subkeys_differ_by_purpose_and_home(tmp_path: Path) -> None:
    one, two = open_home(tmp_path / "one"), open_home(tmp_path / "two")
    keys = {subkey(home, purpose) for home in (one, two) for purpose in get_args(Purpose)}
    assert len(keys) == 2 * len(get_args(Purpose))
    with pytest.raises(ValueError, match="purpose"):
        subkey(one, "nosie")  # type: ignore[arg-type]


CREATOR = """
import sys
from pathlib import Path
from dpladder.privacy.ledger.home import open_home, subkey

print("ready", flush=True)
sys.stdin.readline()  # all of them begin at once
for name in "abcdefgh":
    print(subkey(open_home(Path(sys.argv[1], name)), "noise").hex())
"""


@pytest.mark.ci
def test_creators_at_the_same_time_agree_on_one_key(tmp_path: Path) -> None:
    """Each of them is a process of its own: one that is forked may inherit a lock that is held."""
    command, pipe = [sys.executable, "-c", CREATOR, str(tmp_path)], subprocess.PIPE
    creators = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(6)]
    for creator in creators:
        assert creator.stdout is not None
        assert creator.stdout.readline() == "ready\n"
    for creator in creators:
        assert creator.stdin is not None
        creator.stdin.write("go\n")
        creator.stdin.flush()
    keys = {creator.communicate()[0] for creator in creators}
    assert len(keys) == 1
    assert len({*keys.pop().split()}) == 8
    for home in tmp_path.iterdir():
        assert sorted(path.name for path in home.iterdir()) == [
            "format",
            "key",
            "ledger",
            "releases",
            "staging",
            "units",
        ]


def missing_beside_a_ledger(home: Home) -> None:
    (home.ledgers / "toy").mkdir()
    home.key.unlink()


def readable_by_the_group(home: Home) -> None:
    home.key.chmod(0o640)


def readable_by_the_world(home: Home) -> None:
    home.key.chmod(0o604)


def too_short(home: Home) -> None:
    home.key.write_bytes(home.key.read_bytes()[:31])


def too_long(home: Home) -> None:
    home.key.write_bytes(home.key.read_bytes() + b"\n")


def empty(home: Home) -> None:
    home.key.write_bytes(b"")


def a_link(home: Home) -> None:
    home.key.rename(home.path / "real")
    home.key.symlink_to(home.path / "real")


def a_folder(home: Home) -> None:
    home.key.unlink()
    home.key.mkdir()


def in_a_home_open_to_others(home: Home) -> None:
    home.path.chmod(0o755)


@pytest.mark.parametrize(
    "damage",
    [
        missing_beside_a_ledger,
        readable_by_the_group,
        readable_by_the_world,
        too_short,
        too_long,
        empty,
        a_link,
        a_folder,
        in_a_home_open_to_others,
    ],
)
def test_a_key_that_is(home: Home, damage) -> None:  # type: ignore[no-untyped-def]
    secret = home.key.read_bytes().hex()
    damage(home)
    with pytest.raises(BadInput) as refusal:
        open_home(home.path)
    assert str(home.path) in str(refusal.value)
    assert secret[:8] not in str(refusal.value)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_key_of_another_user_is_refused(home: Home) -> None:
    os.chown(home.key, 12345, -1)
    with pytest.raises(BadInput, match="another user"):
        subkey(home, "noise")


@pytest.mark.parametrize("number", [1, 2])
def test_a_home_from_before_1_0_is_refused_and_stays_as_it_was(home: Home, number: int) -> None:
    home.format.write_text(f"{number}\n")
    before = {path: path.read_bytes() for path in home.path.rglob("*") if path.is_file()}
    for create in (False, True):
        with pytest.raises(BadInput, match=r"made by a dpladder before 1\.0 .* counts on"):
            open_home(home.path, create=create)
    assert {path: path.read_bytes() for path in home.path.rglob("*") if path.is_file()} == before


def test_a_missing_key_is_never_replaced_by_a_subkey(home: Home) -> None:
    home.key.unlink()
    with pytest.raises(BadInput, match=r"missing.*mounted"):
        subkey(home, "noise")


def test_a_file_where_home_should_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match=r"cannot be made.*DPLADDER_HOME"):
        open_home(tmp_path / "file" / "home")


def test_a_name_is_created_once(tmp_path: Path) -> None:
    assert create_once(tmp_path / "a", b"first")
    assert not create_once(tmp_path / "a", b"second")
    assert (tmp_path / "a").read_bytes() == b"first"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_lost_reply_about_our_own_link_counts_as_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def link_but_say_taken(source: Path, target: Path) -> None:
        link(source, target)
        raise FileExistsError

    monkeypatch.setattr(homes.os, "link", link_but_say_taken)
    assert create_once(tmp_path / "a", b"ours")
    assert (tmp_path / "a").read_bytes() == b"ours"


def test_a_replacement_that_fails_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_bytes(b"old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(homes.os, "fsync", full)
    with pytest.raises(OSError, match="space"):
        replace(tmp_path / "a", b"new")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a": b"old"}


@pytest.mark.parametrize("public", ["results", "logs", "benchmarks"])
@pytest.mark.parametrize("way", ["by its path", "by a link", "where results are a link", "itself"])
def test_a_home_among_what_may_be_published_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, public: str, way: str
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    home = project / public / "team/home"
    if way == "by a link":
        (tmp_path / "homes").symlink_to(project / public)
        home = tmp_path / "homes/home"
    elif way == "where results are a link":
        (tmp_path / "shared").mkdir()
        (project / public).symlink_to(tmp_path / "shared")
        home = tmp_path / "shared/home"
    elif way == "itself":
        home = project / public
    for create in (True, False):
        with pytest.raises(BadInput, match=f"lies in {public}, which may be published"):
            open_home(home, create)
    assert not any(tmp_path.rglob("key"))
    assert open_home(project / f"{public}-home").key.is_file()


def test_a_home_that_moves_with_the_working_directory_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DPLADDER_HOME", "home")
    with pytest.raises(BadInput, match="names another folder wherever a command is started"):
        open_home(create=False)


@pytest.mark.parametrize("create", [False, True])
def test_a_home_that_is_a_file_is_refused(tmp_path: Path, create: bool) -> None:
    (tmp_path / "home").touch()
    with pytest.raises(BadInput, match="which is a file"):
        open_home(tmp_path / "home", create=create)


def test_a_home_that_others_can_open_is_not_read_either(tmp_path: Path) -> None:
    """Also where nothing is to be made in it, as by a command that only shows."""
    home = open_home(tmp_path / "home")
    home.path.chmod(0o755)
    for create in (True, False):
        with pytest.raises(BadInput, match="is open to other users"):
            open_home(home.path, create=create)
