"""What was found of a public sample for nothing (a mean, a head), kept under what it was found
from.

Another device or build rounds features otherwise, and questions name what was found by its bytes.
So these are kept in home, and given out again.
"""

from __future__ import annotations

from dpladder.privacy.ledger.home import Home, create_once, make_folder
from dpladder.privacy.ledger.journal import unwritable_error


def first_found_value(home: Home, name: str, value: bytes) -> bytes:
    """What was found the first time, whatever is found now.

    Args:
        home: where it is kept.
        name: a digest of all that it is found from.
        value: what was found now; kept where nothing was found before.
    """
    path = home.features / name
    if not path.exists():
        try:
            make_folder(path.parent)
            create_once(path, value)
        except OSError as error:
            raise unwritable_error(path.parent, error) from None
    return path.read_bytes()
