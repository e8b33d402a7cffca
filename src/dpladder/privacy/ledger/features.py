"""Which features releases stand on: remembered, so that a rebuilt cache asks nothing anew.

A question names its features by the seal of their file. Another device rounds them otherwise, and
another build names itself in the file, so features that are lost and made again have another seal,
while the data and the map from a record to its features are the same by the config. Home remembers
the first seal that releases stood on: the rebuilt features go by that name, what was released from
the first ones is restored, and whatever else is asked of them is charged as ever. What is found of
a public sample (a mean, a head) is small: its bytes are kept, and given out again.
"""

from __future__ import annotations

from pathlib import Path

from dpladder.privacy.ledger.home import Home, create_once, make_folder
from dpladder.privacy.ledger.journal import unwritable


def known_as(home: Home, features: str, seal: str) -> str:
    """The seal that questions know these features by: the first one that releases stood on, or that
    of the file at hand. `features`: a keyed digest of the data and the map."""
    try:
        return _path(home, features).read_text("ascii")
    except FileNotFoundError:
        return seal


def remember(home: Home, features: str, seal: str) -> None:
    """Note that releases stand on features of this seal, if none was noted before."""
    _keep(_path(home, features), seal.encode("ascii"))


def first_found(home: Home, name: str, found: bytes) -> bytes:
    """What was found under this name the first time: a digest of all that it is found from."""
    path = _path(home, name)
    _keep(path, found)
    return path.read_bytes()


def _keep(path: Path, data: bytes) -> None:
    if path.exists():
        return
    try:
        make_folder(path.parent)
        create_once(path, data)
    except OSError as error:
        raise unwritable(path.parent, error) from None


def _path(home: Home, features: str) -> Path:
    return home.features / features
