"""Which features releases stand on: remembered, so that a rebuilt cache asks nothing anew.

A question names its features by the seal of their file. Another device rounds them otherwise, and
another build names itself in the file, so features that are lost and made again have another seal,
while the data and the map from a record to its features are the same by the config. Home remembers
the first seal that releases stood on: the rebuilt features go by that name, what was released from
the first ones is restored, and whatever else is asked of them is charged as ever.
"""

from __future__ import annotations

from pathlib import Path

from dpladder.privacy.ledger.home import Home, create_once
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
    path = _path(home, features)
    if path.exists():
        return
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        create_once(path, seal.encode("ascii"))
    except OSError as error:
        raise unwritable(path.parent, error) from None


def _path(home: Home, features: str) -> Path:
    return home.features / features
