"""Texts that a person has read and approved. A test compares what it gets with them.

They stand in tests/approved, a file for each folder of tests. `make approve` writes what the tests
get now: read its diff, and commit it where each text is better than before.
"""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).parent / "approved"
HEADING = re.compile(r"^=== (.+)\n", re.MULTILINE)


def read(name: str) -> dict[str, str]:
    """The texts of a file, by their headings."""
    path = FOLDER / f"{name}.txt"
    parts = HEADING.split(path.read_text("utf-8")) if path.exists() else [""]
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def write(name: str, texts: dict[str, str]) -> None:
    whole = "".join(f"=== {heading}\n{text}" for heading, text in texts.items())
    (FOLDER / f"{name}.txt").write_text(whole, "utf-8")


def compare(name: str, heading: str, text: str, renew: bool) -> None:
    """Assert that `text` is the approved one, or with `renew` make it so."""
    texts = read(name)
    text = text.rstrip("\n") + "\n"
    if renew and texts.get(heading) != text:
        known = heading in texts
        texts[heading] = text
        write(name, texts if known else dict(sorted(texts.items())))
    assert texts.get(heading) == text, "run `make approve` and read its diff"
