"""`dpladder home`: an encrypted copy of it, made and read back.

Home holds the ledger, the keys and all released bytes. Without it nobody can spend on a lineage
safely, restore a release or verify a seal, so it is what to back up.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from getpass import GetPassWarning, getpass
from pathlib import Path

from dpladder.errors import BadInput
from dpladder.privacy.ledger import backup, team
from dpladder.privacy.ledger.home import open_home
from dpladder.privacy.statement.check import anchors_in


def init(group: str) -> None:
    """Make a home of a group's, and print how its members use it.

    Args:
        group: a group of the operating system, whose members share the ledger and its keys.

    Raises:
        BadInput: there is no such group, the user is not of it, or home is another user's.
    """
    home = team.init(group)
    print(
        f"{home.path} is a home of group {group}: each member sets DPLADDER_HOME to it. "
        f"{home.limits} limits what each may spend"
    )


def back_up(file: Path, passphrase_file: Path | None) -> None:
    """Write an encrypted copy of home: ledgers, keys and released bytes.

    Args:
        file: a new file.
        passphrase_file: whose first line is the passphrase; None asks for it twice.

    The file may be published as little as home: it holds the keys, behind the passphrase alone.

    Raises:
        BadInput: the file is there, there is no home, or the passphrase is too short or typed
            otherwise.
    """
    home = open_home(create=False)
    count = backup.backup(home, file, _passphrase(passphrase_file, again=True))
    print(f"{file} holds {home.path}: {count:,} files")


def restore(file: Path, passphrase_file: Path | None, results: Sequence[Path]) -> None:
    """Fill an empty home from a copy, so that what was spent there counts here again.

    A copy may be older than a run that came after it; its ledger would then forget what that run
    spent. So results of later runs are compared with it, and a copy that lacks them is refused.

    Args:
        file: what `back_up` wrote.
        passphrase_file: whose first line is the passphrase; None asks for it.
        results: results folders whose records the copy must hold.

    Raises:
        BadInput: the passphrase is wrong, or the copy is damaged.
        Refused: home is not empty, or results saw more of its ledgers than the copy holds.
    """
    anchors = [anchor for folder in results for anchor in anchors_in(folder)]
    place = open_home(create=False).path
    restored = backup.restore(file, place, _passphrase(passphrase_file), anchors)
    print(f"{place} is restored: lineages {', '.join(restored) or 'none'}")


def _passphrase(file: Path | None, again: bool = False) -> str:
    """The first line of a file, or what is typed."""
    if file is None:
        try:
            with warnings.catch_warnings():
                # of echoing what is typed, where it would have to be read from elsewhere
                warnings.simplefilter("error", GetPassWarning)
                typed = getpass("passphrase: ")
                if again and getpass("the same again: ") != typed:
                    raise BadInput("the two differ. Nothing was written.")
        except (EOFError, GetPassWarning, AttributeError):  # a timer's job, without stdin too
            raise BadInput(
                "there is no terminal to type a passphrase at. Give --passphrase-file FILE, whose "
                "first line is the passphrase."
            ) from None
        return typed
    try:
        return file.read_text("utf-8").partition("\n")[0]
    except (OSError, UnicodeDecodeError):
        raise BadInput(f"{file} cannot be read as a file with a passphrase.") from None
