"""One record's text, whatever it was stored in. A function of that record alone."""

from __future__ import annotations

from typing import Any

LARGEST = 2**20  # bytes, a public bound: what is longer could hold up the whole job


def decode(content: Any) -> str:
    """Text of UTF-8 bytes, exactly as its owner wrote it, but for a mark at its beginning.

    Raises:
        ValueError: what is wrong with it. The caller makes that a bad record.
    """
    if not isinstance(content, bytes):
        raise ValueError("no text")
    if len(content) > LARGEST:
        raise ValueError(f"longer than {LARGEST:,} bytes")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("not UTF-8") from None
    if not text.strip():
        raise ValueError("nothing but white space")
    return text
