"""`dpladder keys`: the keys of the config by a word of their names or texts."""

from __future__ import annotations

import re

from dpladder.config.docs import described_keys
from dpladder.config.wording import did_you_mean
from dpladder.errors import BadInput


def keys(word: str) -> bool:
    """Print each key whose name, text or allowed values have the word, with what it means.

    Args:
        word: in capitals or not.

    Raises:
        BadInput: no key has it.
    """
    rows = list(described_keys())
    wanted = word.casefold()
    matches = [row for row in rows if wanted in f"{row.name} {row.allowed} {row.text}".casefold()]
    if not matches:
        texts = " ".join(f"{row.name} {row.text}" for row in rows)
        closest = did_you_mean(word, sorted({*re.findall(r"\w{4,}", texts)}))
        raise BadInput(
            f"no key has {word!r} in its name, values or text; {closest}config/README.md has all "
            "keys."
        )
    for row in matches:
        default = f", default {row.default}" if row.default else ""
        print(f"{row.name}  ({row.allowed}{default})\n    {row.text}")
    return True
