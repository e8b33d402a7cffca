"""A home of a group, by two Unix users: one ledger, whatever their umasks and whoever is killed."""

from __future__ import annotations

import grp
import os
import shutil
import stat
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import IO, Any

import pytest
from support import release

# before a process becomes a user who reads no code
import dpladder.commands.home
import dpladder.commands.ledgers
import dpladder.privacy.ledger.team  # noqa: F401
from dpladder.cli import main
from dpladder.errors import DpladderError
from dpladder.formats import FORMATS
from dpladder.privacy.accounting.draws import Draw
from dpladder.privacy.accounting.events import Gaussian, Job, Partition, Spend
from dpladder.privacy.ledger.book import Ledger, load, open_ledger, reserve
from dpladder.privacy.ledger.home import ONE_USERS, open_home
from dpladder.privacy.ledger.state import Item, Terms
from dpladder.privacy.release.meter import Meter

pytestmark = [
    pytest.mark.ci,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be two users"),
]
OWNER, COLLEAGUE, STRANGER = 64001, 64002, 64003
GROUP = 64010  # numbers alone: no account is made
TERMS = Terms("shared", "add_remove", "record", 1, 1e-5, "hash", 2.0)


def item(name: str, sigma: float = 1e3) -> Item:
    job = Job(name, "estimate_mean", ())
    part = Partition("hash", ("train",))
    spend = Spend("shared", "add_remove", part, Gaussian(sigma), label="mean")
    return Item(job, str(job), (spend,))


def ask(*names: str, sigma: float = 1e3) -> None:
    ledger = open_ledger(open_home(), TERMS)
    for name in names:
        reserve(ledger, [item(name, sigma)])


def whole(*names: str) -> None:
    """Releases from reservation to results."""
    for name in names:
        ask(name)
        asked, ledger = item(name), Ledger(open_home(), "shared")
        draw = Draw("mean", "gaussian", 1e3, (1,), sensitivity=1.0)

        def produce(meter: Meter, folder: Path) -> None:
            noised = meter.publish("mean", [0.0])
            (folder / "mean.txt").write_text(str(float(noised[0])))

        outputs = {"mean.txt": Path("results", name, "mean.txt")}
        query = f"query-{name}"
        release(ledger, asked.job, asked.question, query, asked.spends, [draw], produce, outputs)


def endless() -> None:
    print("ready", flush=True)
    for number in range(10**6):
        whole(f"work-{number}")


def command(*arguments: str) -> None:
    sys.exit(main([*arguments]))


@dataclass
class Running:
    process: Any
    said: IO[bytes]

    def finish(self) -> tuple[int, str]:
        self.process.join(300)
        self.said.seek(0)
        return self.process.exitcode, self.said.read().decode()


@dataclass(frozen=True)
class Team:
    """`folder`: everybody's; each works in a folder of their own below."""

    folder: Path

    @property
    def home(self) -> Path:
        return self.folder / "shared" / "home"

    def start(
        self, user: int, work: Callable[..., None], *given: Any, umask: int = 0o077
    ) -> Running:
        """A process of this user, by fork: nobody else may read root's Python."""
        place = self.folder / str(user)
        if not place.is_dir():
            place.mkdir()
            os.chown(place, user, user)
        said = tempfile.TemporaryFile()  # noqa: SIM115, closed with the test

        def become() -> None:
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
            sys.stdout = sys.stderr = os.fdopen(1, "w")
            os.chdir(place)
            os.umask(umask)
            os.setgroups([] if user == STRANGER else [GROUP])
            os.setgid(user)
            os.setuid(user)
            os.environ["DPLADDER_HOME"] = str(self.home)
            try:
                work(*given)
            except DpladderError as error:
                print(error)
                sys.exit(3)
            except Exception:
                traceback.print_exc()
                sys.exit(4)
            finally:
                sys.stdout.flush()

        process = get_context("fork").Process(target=become)
        process.start()
        return Running(process, said)

    def run(self, user: int, work: Callable[..., None], *given: Any, umask: int = 0o077) -> str:
        code, said = self.start(user, work, *given, umask=umask).finish()
        assert code == 0, said
        return said

    def command(self, user: int, *arguments: str) -> tuple[int, str]:
        return self.start(user, command, *arguments).finish()


@pytest.fixture(name="team")
def _team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Team]:
    monkeypatch.setenv("DPLADDER_HOME", str(tmp_path / "none"))
    assert main(["ledger", "show"]) == 0  # which loads what commands load
    folder = Path(tempfile.mkdtemp(prefix="team-", dir="/tmp"))
    try:
        folder.chmod(0o755)
        (folder / "shared").mkdir()
        os.chown(folder / "shared", OWNER, GROUP)
        team = Team(folder)
        code, said = team.command(OWNER, "home", "init", "--group", str(GROUP))
        assert code == 0, said
        yield team
    finally:
        shutil.rmtree(folder)


def test_two_users_share_one_ledger_and_its_releases_whatever_their_umasks(team: Team) -> None:
    team.run(OWNER, whole, "one", umask=0o077)
    team.run(COLLEAGUE, whole, "other", umask=0o022)
    team.run(COLLEAGUE, whole, "one")  # the owner's answer, restored
    results = [team.folder / str(user) / "results/one/mean.txt" for user in (OWNER, COLLEAGUE)]
    assert results[0].read_bytes() == results[1].read_bytes()
    for user in (OWNER, COLLEAGUE):
        code, said = team.command(user, "ledger", "show", "--by", "user")
        assert code == 0, said
        assert said.count("epsilon by itself") == 2
        assert str(OWNER) in said
        assert str(COLLEAGUE) in said
    assert stat.S_IMODE(team.home.stat().st_mode) == 0o2750
    for path in team.home.rglob("*"):
        mode, top = path.stat(), path.parent == team.home
        assert mode.st_gid == GROUP, path
        if "staging" in path.parts[:-1]:
            continue
        assert stat.S_IMODE(mode.st_mode) == (0o2770 if path.is_dir() else 0o640), path
        assert not (top and mode.st_uid != OWNER), path


def test_both_at_once_are_charged_once_each_and_by_name(team: Team) -> None:
    working = [
        team.start(user, ask, *(f"{user}-{number}" for number in range(15)))
        for user in (OWNER, COLLEAGUE)
    ]
    for running in working:
        code, said = running.finish()
        assert code == 0, said
    said = team.run(OWNER, told_users)
    assert said.split() == [str(OWNER)] * 15 + [str(COLLEAGUE)] * 15


def told_users() -> None:
    state = load(Ledger(open_home(), "shared"))
    print(*sorted(held.by for held in state.charges.values()))


def test_a_kill_of_one_at_any_moment_leaves_the_other_able_to_go_on(team: Team) -> None:
    for delay in (0.0, 0.05, 0.1, 0.2, 0.4):
        killed = team.start(OWNER, endless)
        time.sleep(0.2 + delay)
        killed.process.kill()
        killed.finish()
        team.run(COLLEAGUE, whole, f"after-{delay}")
        code_of, said = team.command(COLLEAGUE, "ledger", "verify")
        assert code_of == 0, said
        folders = [path for path in team.home.rglob("*") if path.is_dir()]
        closed = [path for path in folders if path.stat().st_mode & 0o070 != 0o070]
        assert [path for path in closed if path.parent.name != "staging"] == []


def test_a_stranger_and_an_older_dpladder_are_kept_out_in_one_sentence(team: Team) -> None:
    code, said = team.command(STRANGER, "ledger", "show")
    assert code == 2
    assert "is the home of a group that you are not of" in said
    assert len(said.strip().splitlines()) == 1
    code, said = team.start(COLLEAGUE, as_older, "ledger", "show").finish()
    assert code == 2
    assert "was written by a newer dpladder (format 8; this one reads up to 7): upgrade." in said


def as_older(*arguments: str) -> None:
    FORMATS["home"] = ONE_USERS
    command(*arguments)


def test_the_owner_alone_limits_what_each_may_spend(team: Team) -> None:
    limits = team.home / "home.yaml"
    limits.write_text(f"users: {{'{OWNER}': 1.9}}\nothers: 0.3\n")
    team.run(OWNER, lambda: ask("one", sigma=10.0))
    code, said = team.start(COLLEAGUE, lambda: ask("other", sigma=10.0)).finish()
    assert code == 3
    assert f"{COLLEAGUE} may spend epsilon = 0.3 of lineage shared" in said
    assert "Nothing was charged" in said
    team.run(COLLEAGUE, lambda: ask("other", sigma=100.0))
    changes: list[Callable[[], Any]] = [
        lambda: limits.write_text("others: null"),
        limits.unlink,
        lambda: limits.rename(limits.with_name("old")),
    ]
    for change in changes:
        assert "PermissionError" in team.start(COLLEAGUE, change).finish()[1]
    limits.chmod(0o660)
    assert team.command(COLLEAGUE, "ledger", "show")[0] == 0  # asks for nothing
    said = team.start(COLLEAGUE, lambda: ask("third")).finish()[1]
    assert "must be its home's owner's" in said


def test_a_users_own_home_becomes_the_groups_with_all_that_it_holds(team: Team) -> None:
    own = Team(team.folder / "own")
    own.folder.mkdir()
    (own.folder / "shared").mkdir()
    os.chown(own.folder / "shared", OWNER, OWNER)
    own.run(OWNER, whole, "before")
    assert (own.home / "format").read_text() == f"{ONE_USERS}\n"
    (own.folder / "shared").chmod(0o755)
    code, said = own.command(COLLEAGUE, "ledger", "show")
    assert code == 2
    assert "belongs to another user" in said
    for _ in range(2):  # and again, which changes nothing
        code, said = own.command(OWNER, "home", "init", "--group", str(GROUP))
        assert code == 0, said
    own.run(COLLEAGUE, whole, "before", "after")
    code, said = own.command(COLLEAGUE, "home", "init", "--group", str(GROUP))
    assert code == 2
    assert "is another user's, who alone may give it to a group" in said


def test_a_group_that_is_none_of_yours_is_refused(team: Team) -> None:
    code, said = team.command(STRANGER, "home", "init", "--group", str(GROUP))
    assert code == 2
    code, said = team.command(OWNER, "home", "init", "--group", "no-such-group")
    assert code == 2
    assert "there is no group no-such-group. Yours are" in said
    other = grp.getgrgid(0).gr_name
    code, said = team.command(OWNER, "home", "init", "--group", other)
    assert code == 2
    assert f"you are not of the group {other}" in said
