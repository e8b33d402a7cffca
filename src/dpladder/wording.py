"""How a config message reads: key paths, values, and the nearest spelling.

Values of a config are public, and may be quoted. Names that somebody else gave, such as of classes
or files, pass through `printable` or `cell` before a terminal or a spreadsheet sees them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

KeyPath = tuple[str | int, ...]
LONGEST = 80
# The letters of Unicode's confusables (Technical Standard 39) that Greek and Cyrillic share with
# Latin.
LATIN = str.maketrans(
    "\u0430\u0441\u0501\u0435\u04bb\u0456\u0458\u043e\u0440\u051b\u0455\u0443\u051d\u0445"
    "\u0410\u0412\u0421\u0415\u041d\u0406\u0408\u041a\u041c\u041e\u0420\u0405\u0422\u0425"
    "\u03bf\u03bd\u0391\u0392\u0395\u0396\u0397\u0399\u039a"
    "\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7",
    "acdehijopqsywxABCEHIJKMOPSTXovABEZHIKMNOPTYX",
)

MOST_NAMES, MOST_LETTERS = 100, 200  # that a line shows of what may have no end


def first_sentence(description: str) -> str:
    """What a key is, without what follows about its values.

    Args:
        description: of a key; empty where it has none. "et al." ends no sentence.
    """
    return re.split(r"(?<!\bal)\. ", description)[0].rstrip(".")


def key_as_text(key: KeyPath) -> str:
    """A key path as a config's reader would write it: `evaluate.also[0].name`; `config` of the
    whole."""
    return (
        "".join(f"[{part}]" if isinstance(part, int) else f".{_name(part)}" for part in key).lstrip(
            "."
        )
        or "config"
    )


def _name(part: str) -> str:
    return part if part.isprintable() and 0 < len(part) <= LONGEST else value_as_text(part)


def value_as_text(value: Any) -> str:
    """A value as the user knows it from YAML, on one line of bounded length.

    Args:
        value: any. None is `nothing`, text has quotes, and what is longer than `LONGEST` ends in
            dots.
    """
    if value is None:
        return "nothing"
    text = str(value).lower() if isinstance(value, bool) else repr(_as_lists(value))
    return text if len(text) <= LONGEST else text[: LONGEST - 4] + " ..."


def _as_lists(value: Any) -> Any:
    """YAML has lists where a section has tuples."""
    return [_as_lists(item) for item in value] if isinstance(value, list | tuple) else value


def holds_key(values: Any, key: KeyPath) -> bool:
    """Do `values` themselves hold this key? A list is replaced whole, so it holds each of its
    entries.

    Args:
        values: a mapping, as it was given and not laid over another.
        key: its path. A key that is given as null is held.
    """
    for part in key:
        if isinstance(part, int):
            return True
        if not isinstance(values, Mapping) or part not in values:
            return False
        values = values[part]
    return True


def closest(word: str, options: Iterable[str]) -> str | None:
    """The option that a word may be a misspelling of; None where none is near."""
    return next(iter(get_close_matches(word, list(options), n=1)), None)


def did_you_mean(word: str, options: Iterable[str]) -> str:
    """A clause of a message with the option nearest to a word; nothing where none is near.

    Returns:
        `did you mean dp_ls? `, with a blank at its end, or an empty text.
    """
    close = closest(word, options)
    return "" if close is None or close == word else f"did you mean {close}? "


def printable(name: object) -> str:
    """A name that somebody else gave, on one line and without what would steer a terminal.

    Returns:
        The name with each such character as its escape, such as `\\x1b`.
    """
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape", "surrogatepass").decode()
        for one in str(name)
    )


def first_of(names: Sequence[str]) -> str:
    """Names that somebody else gave, between commas: the first `MOST_NAMES`, cut where they are
    long, and how many more there are."""
    words = [
        f"{name[:MOST_LETTERS]}..." if len(name) > MOST_LETTERS else name
        for name in names[:MOST_NAMES]
    ]
    more = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
    return ", ".join(words) + more


def cell(name: object) -> str:
    """A name that somebody else gave, as a spreadsheet's cell that is read as text: what would
    begin a formula is quoted."""
    text = printable(name)
    return f"'{text}" if text.lstrip().startswith(("=", "+", "-", "@")) else text


def look_alikes(names: Sequence[str]) -> tuple[str, str] | None:
    """The first two different names that look the same, such as by a Latin and a Cyrillic e: a slip
    of the keyboard would make two classes of one. None where there are none.

    Args:
        names: in any order, each once.
    """
    seen: dict[str, str] = {}
    for name in names:
        picture = " ".join(unicodedata.normalize("NFKC", name).translate(LATIN).split())
        if picture in seen:
            return seen[picture], name
        seen[picture] = name
    return None
