"""Backups of a home: encrypted, consistent while runs go on, and restored only where no ledger is.

**Consistent without a lock.** A ledger's entries are files that are made once and never changed. So
those that are there at one moment are a ledger as it was. They are read first, and of releases only
those that they know: a release is complete before the entry that says so. What units are in which
lineage only grows, and more of it than a ledger knows refuses at most too much.

**Encrypted** as in STREAM (Hoang et al. 2015): blocks under AES-256-GCM, whose nonce counts them
and marks the last. scrypt (RFC 7914) makes the key of a passphrase. A backup that was cut,
reordered or changed is refused before anything of it is kept.

**Never back in time.** A home is restored where there is none, and not beside results that saw more
of its ledgers.
"""

from __future__ import annotations

import io
import os
import secrets
import shutil
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from dpladder.errors import BadInput, Refused
from dpladder.privacy.ledger.book import Ledger, lineages, verify
from dpladder.privacy.ledger.home import Home, open_home, sync_folder
from dpladder.privacy.ledger.state import Anchor

MAGIC = b"dpladder home backup 1\n"
SALT = 16
BLOCK = 2**20
TAG = 16
SHORTEST = 12  # characters of a passphrase: who has the file may try as many as they like


def backup(home: Home, path: Path, passphrase: str) -> int:
    """Write a home to a new file, encrypted, while runs may go on.

    Args:
        home: that is backed up.
        path: of the new file; one that exists is refused.
        passphrase: of at least SHORTEST characters. Without it nothing can be restored.

    Returns:
        How many files it holds.

    Raises:
        BadInput: there is no home, the file exists already, or the passphrase is too short.
    """
    if not home.key.is_file():
        raise BadInput(f"there is no home in {home.path}: set DPLADDER_HOME to the one to back up.")
    if len(passphrase) < SHORTEST:
        raise BadInput(f"the passphrase is too short: give at least {SHORTEST} characters.")
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise BadInput(f"{path} cannot be made: {error.strerror}. Name a new file.") from None
    try:
        with open(descriptor, "wb") as file:
            count = _write(home, file, passphrase)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        path.unlink()
        raise
    sync_folder(path.absolute().parent)
    return count


def _write(home: Home, file: IO[bytes], passphrase: str) -> int:
    """Write the sealed archive, and say how many files it holds."""
    salt = secrets.token_bytes(SALT)
    file.write(MAGIC + salt)
    sealed: Any = _Sealing(file, _key(passphrase, salt))
    count = 0
    with tarfile.open(fileobj=sealed, mode="w|", bufsize=BLOCK) as archive:
        for name, data in _files(home):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o600
            archive.addfile(entry, io.BytesIO(data))
            count += 1
    sealed.finish()
    return count


def _files(home: Home) -> Iterator[tuple[str, bytes]]:
    """Each file of a home by its place, as far as its ledgers of this moment know it."""
    known: dict[str, bytes] = {}
    for lineage in lineages(home):
        entries = sorted(Ledger(home, lineage).folder.glob("[0-9]*.json"))
        read = [(entry, entry.read_bytes()) for entry in entries]
        known[lineage] = b"".join(data for _, data in read)
        yield from ((str(entry.relative_to(home.path)), data) for entry, data in read)
    for single in (home.key, home.format):
        if single.is_file():
            yield single.name, single.read_bytes()
    for folder in (home.units, home.features, home.releases):
        for path in sorted(folder.rglob("*")):
            place = path.relative_to(home.path)
            if path.is_file() and not path.name.startswith(".") and _is_known_release(place, known):
                yield str(place), path.read_bytes()


def _is_known_release(place: Path, known: Mapping[str, bytes]) -> bool:
    """Whether the entries of a release's lineage name the question that it answers."""
    room, *rest = place.parts
    return room != "releases" or (len(rest) > 1 and rest[1].encode() in known.get(rest[0], b""))


def restore(path: Path, home: Path, passphrase: str, anchors: Iterable[Anchor]) -> list[str]:
    """Make a home of a backup.

    Args:
        path: the backup.
        home: the folder of the new home, which must not be there.
        passphrase: that the backup was made with.
        anchors: what results saw of its ledgers.

    Returns:
        The lineages that it holds.

    Raises:
        Refused: there is a home already, or results saw more of its ledgers: it would answer anew
            what was answered before.
        BadInput: the passphrase is another one, or the backup is damaged.
    """
    if home.exists() and any(home.iterdir()):
        raise Refused(
            f"{home} is there already, and a backup would take its ledgers back in time. Restore "
            "where there is no home (DPLADDER_HOME); single files of a damaged one can be copied "
            "from there."
        )
    beside = home.with_name(f".{home.name}.{secrets.token_hex(8)}")
    try:
        beside.mkdir(mode=0o700, parents=True)
        _read_archive(path, beside, passphrase)
        lineages = _check_restored(beside, anchors)
        if home.exists():
            home.rmdir()
        beside.rename(home)
    except OSError as error:
        raise BadInput(f"{home} cannot be restored from {path}: {error.strerror}.") from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    sync_folder(home.parent)
    return lineages


def _read_archive(path: Path, folder: Path, passphrase: str) -> None:
    """Unpack a backup into a folder, each block authenticated before any of it is used."""
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise BadInput(f"{path} is no backup of a home that this dpladder can read.")
        opened: Any = _Opening(file, _key(passphrase, file.read(SALT)), path)
        with tarfile.open(fileobj=opened, mode="r|", bufsize=BLOCK) as archive:
            for entry in archive:
                archive.extract(entry, folder, filter="data")
        while opened.read(BLOCK):  # what follows the archive vouches for its end
            pass
    for path_made in (folder, *folder.rglob("*")):
        path_made.chmod(0o700 if path_made.is_dir() else 0o600)


def _check_restored(folder: Path, anchors: Iterable[Anchor]) -> list[str]:
    """The lineages of a restored home; refused where results saw more of one than it holds."""
    home, seen = open_home(folder), list(anchors)
    for lineage in dict.fromkeys([*lineages(home), *(anchor.lineage for anchor in seen)]):
        if problems := verify(Ledger(home, lineage), seen):
            raise Refused(
                f"lineage {lineage}: {problems[0]}. Nothing was restored: this backup is older "
                "than the results, and would answer anew what was answered before. Give a later "
                "backup; without one the count of what was spent is lost."
            )
    return lineages(home)


def _key(passphrase: str, salt: bytes) -> AESGCM:
    """A key that takes a while to make of a passphrase, so that many cannot be tried."""
    return AESGCM(Scrypt(salt=salt, length=32, n=2**15, r=8, p=1).derive(passphrase.encode()))


def _nonce(number: int, last: bool) -> bytes:
    """A block's nonce: its number, and whether it is the last. No two blocks of a file share
    one."""
    return number.to_bytes(11, "big") + bytes([last])


class _Sealing:
    """A file to write to, block by block; `finish` writes the one that says it is the last."""

    def __init__(self, file: IO[bytes], key: AESGCM) -> None:
        self._file, self._key, self._held, self._number = file, key, b"", 0

    def write(self, data: bytes) -> int:
        self._held += data
        while len(self._held) > BLOCK:
            self._seal(self._held[:BLOCK], last=False)
            self._held = self._held[BLOCK:]
        return len(data)

    def finish(self) -> None:
        self._seal(self._held, last=True)

    def _seal(self, block: bytes, last: bool) -> None:
        self._file.write(self._key.encrypt(_nonce(self._number, last), block, MAGIC))
        self._number += 1


class _Opening:
    """A backup to read from."""

    def __init__(self, file: IO[bytes], key: AESGCM, path: Path) -> None:
        self._file, self._key, self._path, self._number = file, key, path, 0
        self._held, self._next = b"", file.read(BLOCK + TAG)
        self._ended = False

    def read(self, size: int) -> bytes:
        """So many bytes of what was sealed, fewer at its end; each block is authenticated before
        any of it is given out."""
        while len(self._held) < size and not self._ended:
            block, self._next = self._next, self._file.read(BLOCK + TAG)
            self._ended = not self._next
            try:
                self._held += self._key.decrypt(_nonce(self._number, self._ended), block, MAGIC)
            except InvalidTag:
                raise BadInput(
                    f"{self._path} cannot be opened: the passphrase is another one, or the file is "
                    "damaged or cut short."
                ) from None
            self._number += 1
        chunk, self._held = self._held[:size], self._held[size:]
        return chunk
