"""`dpladder home`: an encrypted copy of it, made and read back."""

from __future__ import annotations

from collections.abc import Sequence
from getpass import getpass
from pathlib import Path

from dpladder.errors import BadInput
from dpladder.privacy.ledger import backup
from dpladder.privacy.ledger.home import open_home
from dpladder.privacy.statement.check import anchors_in


def back_up(file: Path, passphrase_file: Path | None) -> str:
    home = open_home(create=False)
    count = backup.backup(home, file, _passphrase(passphrase_file, again=True))
    return f"{file} holds {home.path}: {count:,} files"


def restore(file: Path, passphrase_file: Path | None, results: Sequence[Path]) -> str:
    anchors = [anchor for folder in results for anchor in anchors_in(folder)]
    place = open_home(create=False).path
    restored = backup.restore(file, place, _passphrase(passphrase_file), anchors)
    return f"{place} is restored: lineages {', '.join(restored) or 'none'}"


def _passphrase(file: Path | None, again: bool = False) -> str:
    """The first line of a file, or what is typed."""
    if file is None:
        typed = getpass("passphrase: ")
        if again and getpass("the same again: ") != typed:
            raise BadInput("the two differ. Nothing was written.")
        return typed
    try:
        return file.read_text("utf-8").partition("\n")[0]
    except (OSError, UnicodeDecodeError):
        raise BadInput(f"{file} cannot be read as a file with a passphrase.") from None
