"""A journal: an append-only chain of signed entries, one readable file each, with nothing to lock
or break.

Every entry carries the hash of the one before it and a MAC, and its name can be created only once.
That is a compare-and-swap which works on local and shared file systems alike. It knows nothing of
what the entries say.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import hmac
import json
import os
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dpladder import formats
from dpladder.errors import TWICE, BadInput, DpladderError, Refused
from dpladder.formats import FORMATS, Newer
from dpladder.privacy.ledger.home import create_once
from dpladder.privacy.ledger.team import signature

Body = dict[str, Any]
# takes in one entry's type, its body and who wrote it; refuses what cannot follow
Fold = Callable[[str, Body, str], None]
Decide = Callable[[], tuple[str, Body] | None]  # the entry to append, if any

START = "0" * 64  # what the first entry chains over
REPAIRED = "REPAIRED"
PATIENCE = 600.0  # seconds that an append keeps trying while others get in first
TURN = 10.0  # seconds that it waits in a queue that stands still before it goes ahead without
LOST = 0.01, 1.0  # seconds of its first and of its longest pause after another host got in first

ENTRY_NAME = re.compile(r"\d{8}\.json")
ENTRY_END = b'"\n}\n'  # no other place in an entry ends so: inner braces are indented
MAC_LINE = re.compile(rb',\n "mac": "([0-9a-f]{64})"\n}\n\Z')


@dataclass(frozen=True)
class Journal:
    """Where a journal lies, and the key that its entries are signed with.

    Attributes:
        folder: with a file for each entry.
        key: home's subkey for ledgers.
    """

    folder: Path
    key: bytes = field(repr=False)

    def path(self, seq: int) -> Path:
        """The file of an entry, by its number from 1."""
        return self.folder / f"{seq:08d}.json"


@dataclass
class Chain:
    """How far a journal was read, and what was wrong with it.

    Attributes:
        hashes: of each entry's bytes, in order; empty of one that is missing.
        problems: in words.
        torn: whether the last entry is half-written.
    """

    hashes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    torn: bool = False

    @property
    def head(self) -> str:
        """The hash that the next entry chains over."""
        return self.hashes[-1] if self.hashes else START


def append(journal: Journal, chain: Chain, fold: Fold, decide: Decide) -> None:
    """Append what `decide` says, in full knowledge of every entry before it.

    The name of the next entry can be created only once. Who loses it reads what came first and
    decides again. A half-written last entry is sealed by REPAIRED, which chains over the damaged
    bytes, before anything else is written.

    Args:
        journal: where entries lie.
        chain: how far it was read; it is read on.
        fold: takes each entry in.
        decide: the entry to append, asked again whenever others got in first; None for none.

    Raises:
        Refused: the journal is not as it was written, cannot be written to, or others kept writing
            for `PATIENCE` seconds.
    """
    until, pause = time.monotonic() + PATIENCE, LOST[0]
    with _queue(journal.folder, until):
        while time.monotonic() < until:
            advance(journal, chain, fold)
            entry = (REPAIRED, {"entry": len(chain.hashes)}) if chain.torn else decide()
            if entry is None:
                return
            try:
                written = create_once(
                    journal.path(len(chain.hashes) + 1), _encode(journal, chain, *entry)
                )
            except OSError as error:
                raise unwritable_error(journal.folder, error) from None
            if not written:
                time.sleep(random.uniform(0.0, pause))
                pause = min(2.0 * pause, LOST[1])
                continue
            advance(journal, chain, fold)
            if entry[0] != REPAIRED:
                return
    raise Refused(
        f"others kept writing to {journal.folder} for {PATIENCE:.0f} s. {TWICE}: try again."
    )


def advance(journal: Journal, chain: Chain, fold: Fold) -> None:
    """Take in every entry after those in `chain`.

    Args:
        journal: where entries lie.
        chain: how far it was read; it is read on.
        fold: takes each entry in.

    Raises:
        Refused: the journal is not as it was written.
    """
    read(journal, chain, fold)
    if chain.problems:
        raise Refused(
            f"the ledger in {journal.folder} is not as it was written: {chain.problems[0]}. "
            "Nothing was changed. Find out what happened and restore the folder; `dpladder ledger "
            "verify` lists every problem."
        )


def read(journal: Journal, chain: Chain, fold: Fold) -> None:
    """Take in every entry after those in `chain`, and name what is wrong with them in
    `chain.problems`. It refuses nothing, so that one report names all of it."""
    names = os.listdir(journal.folder) if journal.folder.is_dir() else []
    last = max((int(name[:8]) for name in names if ENTRY_NAME.fullmatch(name)), default=0)
    for seq in range(len(chain.hashes) + 1, last + 1):
        # By name: a listing made while others append may lack an entry before one that it has.
        try:
            data = journal.path(seq).read_bytes()
        except FileNotFoundError:
            chain.problems.append(f"entry {seq} is missing")
            chain.hashes.append("")
        except OSError as error:
            raise BadInput(f"{journal.path(seq)} cannot be read: {error.strerror}.") from None
        else:
            _read_entry(journal, chain, fold, seq, data)


def unwritable_error(folder: Path, error: OSError) -> Refused:
    """The error that a ledger cannot be written, with what to do. What is charged stays charged."""
    return Refused(
        f"nothing can be written to {folder}: {error.strerror}. {TWICE}: free space, or check that "
        "the disk is mounted for writing and has hard links, and run again."
    )


def _read_entry(journal: Journal, chain: Chain, fold: Fold, seq: int, data: bytes) -> None:
    """One entry's bytes, as the next link of the chain. A torn entry is what a crash leaves of the
    last one: it says nothing, and only a repair may follow it. Damage is collected, so that one
    report names all of it."""
    previous, was_torn = chain.head, chain.torn
    chain.hashes.append(hashlib.sha256(data).hexdigest())
    chain.torn = not data.endswith(ENTRY_END)
    try:
        entry = {} if chain.torn else _decode(journal, seq, data)
        if not entry:
            return
        if was_torn and entry["type"] != REPAIRED:
            chain.problems.append(f"entry {seq - 1} is damaged: its end is missing")
        if entry["seq"] != seq or previous not in (entry["previous"], ""):
            chain.problems.append(
                f"entry {seq} does not follow entry {seq - 1}: one of the two was put in place of "
                "another"
            )
        if entry["type"] != REPAIRED:
            fold(entry["type"], entry["body"], entry["by"]["user"])
    except Newer:  # which is no damage
        raise
    except DpladderError as error:
        chain.problems.append(f"entry {seq} {error}")
    except (LookupError, TypeError, ValueError):
        chain.problems.append(
            f"entry {seq} cannot be understood: was it written by a newer version, or before 1.0?"
        )


def _encode(journal: Journal, chain: Chain, kind: str, body: Mapping[str, Any]) -> bytes:
    """Indented JSON whose last line is the MAC of all bytes before it."""
    entry = {
        "seq": len(chain.hashes) + 1,
        "previous": chain.head,
        "type": kind,
        formats.KEY: FORMATS["ledger"],
        # for the reader: nothing depends on clocks
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "by": signature(),
        "body": body,
    }
    signed = json.dumps(entry, indent=1, allow_nan=False).removesuffix("\n}").encode()
    return signed + b',\n "mac": "' + _mac(journal, signed).encode() + ENTRY_END


def _decode(journal: Journal, seq: int, data: bytes) -> Body:
    """An entry from its bytes; refused where its MAC does not fit."""
    end = MAC_LINE.search(data)
    fits = end is not None and hmac.compare_digest(
        _mac(journal, data[: end.start()]), end[1].decode()
    )
    with contextlib.suppress(ValueError, AttributeError):
        entry: Body = json.loads(data)
        # a newer one may sign otherwise
        formats.check("ledger", journal.path(seq), entry.get(formats.KEY))
    if not fits:
        raise Refused("was edited, or written with another key: its MAC does not fit")
    return entry


def _mac(journal: Journal, signed: bytes) -> str:
    """The signature of an entry's bytes, in hex."""
    return hmac.digest(journal.key, signed, "sha256").hex()


@contextlib.contextmanager
def _queue(folder: Path, last: float) -> Iterator[None]:
    """Wait for a turn among this host's processes, until `last` at most.

    A thousand that all go ahead at once would take each other's place for minutes. Nothing rests on
    it. Where locks do not work, the append goes ahead. So it does where the one in front hangs, and
    nothing was written for a while.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        yield
        return
    try:
        until, pause, seen = time.monotonic() + TURN, 0.001, 0
        while time.monotonic() < min(until, last):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(random.uniform(0.0, pause))
                pause = min(2.0 * pause, 0.5)
            except OSError:
                break
            if (moved := os.fstat(descriptor).st_mtime_ns) != seen:
                until, seen = time.monotonic() + TURN, moved
        yield
    finally:
        os.close(descriptor)
