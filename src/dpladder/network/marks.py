"""Marks of tokens: which may be part of an answer, and where answers start and end. No torch
here."""

from __future__ import annotations

from collections.abc import Sequence

CHANNELS = 2  # of a record's row: tokens and marks
MOST_ANSWERS = 8  # of a record: a mark stays a whole number that float32 holds
IN_CONTEXT = 1


def first_bit(answer: int) -> int:
    """The bit of a mark that says that a token is the first one of this answer."""
    return 1 + 2 * answer


def last_bit(answer: int) -> int:
    """The bit of a mark that says that a token is the last one of this answer."""
    return 2 + 2 * answer


def answer_marks(context: Sequence[bool], answers: Sequence[tuple[int, int]]) -> list[int]:
    """A mark for each token of a record.

    Args:
        context: of each token, whether it is the context's.
        answers: their first and last tokens. Without any the network is to point at no answer, and
            is never right.
    """
    marks = [IN_CONTEXT * inside for inside in context]
    for place, (first, last) in enumerate(answers[:MOST_ANSWERS]):
        marks[first] |= 1 << first_bit(place)
        marks[last] |= 1 << last_bit(place)
    return marks
