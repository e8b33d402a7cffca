"""The formats of what dpladder keeps, by number. Each later dpladder reads all of them; an older
one refuses what it does not know, before it writes anything.

A number rises when readers of before would misread what is written now; tests/formats keeps
finished projects of each.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

from dpladder.errors import BadInput

Kind = Literal["ledger", "home", "results", "cache", "plan", "statement", "weights"]
KINDS: tuple[Kind, ...] = get_args(Kind)
KEY: Final = "format"
FORMATS: dict[Kind, int] = {
    "ledger": 1,
    "home": 8,  # a group's; one user's is written as 7 (privacy/ledger/home.py)
    "results": 1,
    "cache": 1,
    "plan": 1,
    "statement": 1,
    "weights": 1,
}


class Newer(BadInput):
    """A file of a newer dpladder, which is neither damaged nor ever to be replaced."""


def check(kind: Kind, where: object, number: object) -> None:
    """Refuse what a newer dpladder wrote. `number`: what the file says; None where it says
    nothing."""
    known = FORMATS[kind]
    if number is None or (isinstance(number, int) and number <= known):
        return
    raise Newer(
        f"{where} was written by a newer dpladder (format {number}; this one reads up to {known}): "
        "upgrade."
    )
