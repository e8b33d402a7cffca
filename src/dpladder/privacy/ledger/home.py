"""Home: the private folder with the key, the ledgers and the releases. It outlives clones and is
shared by nodes.

It is one user's, mode 0700, or a group's (privacy/ledger/team.py). A group's is its owner's and
open to the group for reading, mode 2750. The rooms below are open for writing, mode 2770. So nobody
but the owner changes the key and `home.yaml`, and whatever is made in a room is the group's,
whatever the umask.
"""

from __future__ import annotations

import hmac
import os
import secrets
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from dpladder import formats
from dpladder.errors import BadInput
from dpladder.public_files import PUBLIC_FOLDERS

VARIABLE = "DPLADDER_HOME"
KEY_BYTES = 32
ONE_USERS, A_GROUPS = 7, 8  # formats; those before knew people or jobs by other digests
ROOM = 0o2770  # of a group's home

Purpose = Literal["noise", "commitment", "audit", "ledger", "cache", "units"]


@dataclass(frozen=True)
class Home:
    """The folder that holds what outlives a project: the key, a ledger for each lineage, and the
    releases themselves."""

    path: Path

    @property
    def key(self) -> Path:
        """The secret key, 32 bytes. All noise rests on it, and so does every seal."""
        return self.path / "key"

    @property
    def format(self) -> Path:
        """The number of the home's format, which says whether it is a group's."""
        return self.path / formats.KEY

    @property
    def ledgers(self) -> Path:
        """A folder of entries for each lineage."""
        return self.path / "ledger"

    @property
    def releases(self) -> Path:
        """The released bytes, by lineage and query: what is DONE is restored from here."""
        return self.path / "releases"

    @property
    def staging(self) -> Path:
        """Where answers are made, before anything of them is kept."""
        return self.path / "staging"

    @property
    def units(self) -> Path:
        """Whose data each lineage holds, as keyed ids. Private."""
        return self.path / "units"

    @property
    def limits(self) -> Path:
        """How much each member of a group may spend."""
        return self.path / "home.yaml"

    @property
    def rooms(self) -> tuple[Path, ...]:
        """The folders that a group's members write to."""
        return self.ledgers, self.releases, self.staging, self.units

    @property
    def features(self) -> Path:
        """Which features releases stand on (jobs/features.py)."""
        return self.path / "features"


def open_home(path: Path | None = None, create: bool = True) -> Home:
    """The home at `path`, else at DPLADDER_HOME, else at ~/.dpladder.

    Args:
        path: of the folder.
        create: whether a new one is made, with its key; without, one that does not exist is empty.

    Raises:
        BadInput: the path is relative or a file, may be published, is open to others, or the key is
            missing beside a ledger.
        Newer: a later dpladder made it.
    """
    chosen = Path(path or os.environ.get(VARIABLE) or Path.home() / ".dpladder").expanduser()
    if not chosen.is_absolute():
        raise BadInput(
            f"{VARIABLE} is {chosen}, which names another folder wherever a command is started: "
            f"one ledger would become several. Give a path from the root, as {chosen.absolute()}."
        )
    if chosen.exists() and not chosen.is_dir():
        raise BadInput(
            f"{VARIABLE} is {chosen}, which is a file. Name a folder, or one that is yet to be "
            "made."
        )
    home = Home(chosen)
    refuse_home_inside(home, PUBLIC_FOLDERS)
    _check_format(home)
    if home.path.exists():
        _check_open_to(home, home.path, home.path.stat(), "700")
    if create:
        try:
            for folder in (home.path, *home.rooms):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(
                f"home {home.path} cannot be made: {error.strerror}. Set {VARIABLE} to a folder "
                "that you can write to."
            ) from None
        _check_open_to(home, home.path, home.path.stat(), "700")
        _ensure_key(home)
    return home


def refuse_home_inside(home: Home, public: Iterable[Path]) -> None:
    """Refuse a home in a folder that may be published, wherever links lead: its key would lie among
    what others read.

    Raises:
        BadInput: it lies in one of them.
    """
    for folder in public:
        if home.path.resolve().is_relative_to(folder.resolve()):
            raise BadInput(
                f"home {home.path} lies in {folder}, which may be published, and its key must "
                f"never be. Set {VARIABLE} to a folder elsewhere; move the home there, if it holds "
                "a ledger."
            )


def subkey(home: Home, purpose: Purpose) -> bytes:
    """An independent 256-bit key for each purpose: HKDF-Expand with one block (RFC 5869, section
    2.3)."""
    if purpose not in get_args(Purpose):
        raise ValueError(f"no key purpose {purpose!r}")
    return hmac.digest(_read_key(home), f"dpladder {purpose}".encode() + b"\x01", "sha256")


def create_once(path: Path, data: bytes | memoryview) -> bool:
    """Create `path`, whole and durable, or return False because it exists.

    A hard link either makes the name or fails, on local and network file systems alike. So no
    reader ever meets half a file, and of several creators exactly one wins. A lost reply can make a
    network file system report the name as taken by our own link; the link count tells.
    """
    temporary = _write_beside(path, data, 0o600)
    try:
        os.link(temporary, path)
    except FileExistsError:
        if os.stat(temporary).st_nlink != 2:
            return False
    finally:
        os.unlink(temporary)
    sync_folder(path.parent)
    return True


def replace(path: Path, data: bytes | memoryview, mode: int = 0o600) -> None:
    """Write `path` so that a reader sees the old content or the new, never a mixture. It is on the
    disk when this returns.

    Args:
        path: the file.
        data: all of its bytes.
        mode: who may read it; what is public passes 0o666, and the umask decides.
    """
    temporary = _write_beside(path, data, mode)
    try:
        os.replace(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise
    sync_folder(path.parent)


def is_shared(folder: Path) -> bool:
    """Whether a folder is a room of a group's home, or below one."""
    return stat.S_IMODE(folder.stat().st_mode) & ROOM == ROOM


def share(room: Path, *path: Path | int) -> None:
    """Let the group read what was made in a room of its home, whatever the umask."""
    if is_shared(room):
        for one in path:
            os.chmod(one, ROOM if stat.S_ISDIR(os.stat(one).st_mode) else 0o640)


def make_folder(path: Path) -> None:
    """Make a folder in home, and what is missing above it.

    In a room of a group's home it is the group's from its first moment on. So whoever is killed
    here leaves no folder that others cannot enter.
    """
    for folder in (*reversed(path.parents), path):
        if not folder.is_dir():
            shared = is_shared(folder.parent)
            before = os.umask(0o007 if shared else 0o077)
            try:
                folder.mkdir(mode=0o770, exist_ok=True)
            finally:
                os.umask(before)


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_beside(path: Path, data: bytes | memoryview, mode: int) -> Path:
    """A durable new file with `data`, under a temporary name in the folder of `path`."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        if mode == 0o600:
            share(path.parent, descriptor)
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
    except OSError:
        os.unlink(temporary)
        raise
    return temporary


def _ensure_key(home: Home) -> None:
    """Make the key of a new home; where a ledger or a key is, it must be readable."""
    # The order matters: whoever made a ledger had made the key before, so a key looked for later
    # must be there.
    used = any(home.ledgers.iterdir())
    if used or os.path.lexists(home.key):
        _read_key(home)
        return
    try:
        create_once(home.format, f"{ONE_USERS}\n".encode())
        create_once(home.key, secrets.token_bytes(KEY_BYTES))
    except OSError as error:
        raise BadInput(
            f"key {home.key} cannot be made: {error.strerror}. Home needs hard links and free "
            "space."
        ) from None


def _check_format(home: Home) -> int:
    """The number of a home's format; refused where a later dpladder made it, or one before 1.0: its
    people would be strangers, so their data would count as nothing."""
    try:
        text = home.format.read_text("utf-8")
    except OSError:  # there is no home yet
        return ONE_USERS
    if not text.strip().isdigit():
        raise BadInput(
            f"{home.format} says {text.strip()[:20]!r}, and not which format this home has. "
            "Restore it."
        )
    formats.check("home", home.path, int(text))
    if int(text) < ONE_USERS:
        raise BadInput(
            f"home {home.path} was made by a dpladder before 1.0 (format {int(text)}), which knew "
            "people and jobs by other digests. Nothing was written. Move it aside, or set "
            "DPLADDER_HOME to a new folder, and keep it: what it spent on your data counts on."
        )
    return int(text)


def _read_key(home: Home) -> bytes:
    """The secret key, from a plain file that nobody else can read.

    Every way of lacking it has a message of its own. A new key beside an old ledger would give out
    the same answers with other noise.
    """
    try:
        descriptor = os.open(home.key, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise BadInput(
            f"key {home.key} is missing. A ledger without its key cannot be trusted and a new key "
            f"would not fit it: check that {VARIABLE} is right and that the disk holding "
            f"{home.path} is mounted, on a cluster that it is mounted on this node; or restore the "
            "key."
        ) from None
    except OSError as error:
        raise BadInput(
            f"key {home.key} cannot be read: {error.strerror}. It must be a plain file of yours."
        ) from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise BadInput(f"key {home.key} is not a plain file. Restore the key.")
        _check_open_to(home, home.key, status, "600")
        key = os.read(descriptor, KEY_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(key) != KEY_BYTES:
        raise BadInput(f"key {home.key} is not {KEY_BYTES} bytes long. It is damaged: restore it.")
    return key


def is_groups(home: Home) -> bool:
    """Whether a home says, and is open, as a group's: a folder that somebody opened by mistake is
    none."""
    return _is_group_shared(home.path.stat()) and _check_format(home) >= A_GROUPS


def _is_group_shared(status: os.stat_result) -> bool:
    """Whether a folder's mode is that of a group's home."""
    return stat.S_IMODE(status.st_mode) & 0o2050 == 0o2050


def check_owners(home: Home, path: Path, status: os.stat_result) -> None:
    """Refuse a file of a group's home that anybody but its owner could have written, or that others
    can read.

    Args:
        home: the group's.
        path: the file.
        status: of the file that was opened, so that it cannot be swapped in between.
    """
    top = home.path.stat()
    if (status.st_uid, status.st_gid) != (top.st_uid, top.st_gid) or status.st_mode & 0o027:
        raise BadInput(
            f"{path} must be its home's owner's, and open to the group for reading alone. The "
            "owner runs `dpladder home init` again, once it is clear who changed it."
        )


def _check_open_to(home: Home, path: Path, status: os.stat_result, mode: str) -> None:
    """Refuse a home or key that more people can open than it is meant for."""
    top = home.path.stat()
    mine = top.st_uid == os.geteuid() or top.st_gid in {os.getegid(), *os.getgroups()}
    if _is_group_shared(top) and not mine:
        raise BadInput(
            f"{home.path} is the home of a group that you are not of. Ask its administrator to "
            "take you in, and log in again."
        )
    if is_groups(home):
        check_owners(home, path, status)
    else:
        _check_private(path, status, mode)


def _check_private(path: Path, status: os.stat_result, mode: str) -> None:
    """Refuse a file that is another user's, or open to others."""
    if status.st_uid != os.geteuid():
        raise BadInput(
            f"{path} belongs to another user. Home and key must be your own: set {VARIABLE} to "
            "your folder."
        )
    if stat.S_IMODE(status.st_mode) & 0o077:
        raise BadInput(
            f"{path} is open to other users. Close it (chmod {mode} {path}) and find out who read "
            "it."
        )
