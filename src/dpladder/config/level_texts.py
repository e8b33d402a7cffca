"""What a number or a level is as text, by its value alone, whatever type its column has."""

from __future__ import annotations

import unicodedata
from numbers import Integral, Real
from typing import Any

MOST_SINGLE = 2.0**127  # float32 holds larger ones, and these are beyond doubt


def level_as_text(value: Any) -> str:
    """A level, or a name, as its owner sees it."""
    return unicodedata.normalize("NFC", number_as_text(value)).strip()


def bytes_as_text(value: Any) -> Any:
    """Bytes as text, and anything else as it is. Bytes that are no UTF-8 stay apart from others."""
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


def number_as_text(value: Any) -> str:
    """A number as text, by its value alone: 3.0 as 3, and what a float32 can hold as short as one
    is written. Where one value of a column is missing, or is a word, a float32 comes as the float64
    that is equal to it. What is no number is text as it is."""
    number = whole_as_int(value)
    if isinstance(number, Real) and not isinstance(number, Integral):
        import numpy as np

        exact = float(number)
        if abs(exact) < MOST_SINGLE and float(np.float32(exact)) == exact:
            return str(np.float32(exact))
    return str(number)


def whole_as_int(value: Any) -> Any:
    """3.0 as 3, and the text "3.0" as the text "3"; anything else as it is.

    Where one value of a column is missing, pandas and NumPy make floats of all its integers, and
    texts of these where one is a word. What a record is known by must not hang on another one.
    """
    if isinstance(value, str):
        number = number_in(value) if value.endswith(".0") or "e+" in value else None
        return str(int(number)) if isinstance(number, float) else value
    if isinstance(value, int) or not isinstance(value, float | Real):
        return value
    number = float(value)
    return int(number) if not isinstance(value, Integral) and number.is_integer() else value


def number_in(text: str) -> int | float | None:
    """The number of which Python and NumPy write exactly this text; None where it is none."""
    for kind in (int, float):
        try:
            number: int | float = kind(text)
        except ValueError:  # a word, or of too many digits
            continue
        if str(number) == text:
            return number
    return None
