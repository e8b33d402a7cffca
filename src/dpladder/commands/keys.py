"""`dpladder keys`: the keys of the config by a word of their names or texts."""

from __future__ import annotations

import re

from dpladder.config.docs import DescribedKey, described_keys
from dpladder.errors import BadInput
from dpladder.wording import did_you_mean


def keys(word: str) -> bool:
    """Print each meaning of each key whose name, text or allowed values have the word, and all keys
    of the learners and searches whose name has it.

    Args:
        word: in capitals or not.

    Raises:
        BadInput: no key has it.
    """
    rows = described_keys()
    matches = [row for row in rows if word.casefold() in " ".join(_words(row)).casefold()]
    if not matches:
        texts = " ".join(f"{row.name} {row.text}" for row in rows)
        closest = did_you_mean(word, sorted({*re.findall(r"\w{4,}", texts)}))
        raise BadInput(
            f"no key has {word!r} in its name, values or text; {closest}config/README.md has the "
            "keys."
        )
    for row in matches:
        default = f", default {row.default}" if row.default else ""
        print(f"{row.name}  ({row.allowed}{default})".replace("`", ""))
        print(f"    {', '.join(row.methods)}{': ' if row.methods else ''}{row.text}")
    return True


def _words(row: DescribedKey) -> tuple[str, ...]:
    return row.name, row.allowed, row.text, *row.methods
