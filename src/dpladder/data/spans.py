"""Documents cut into spans: records of a fixed number of tokens, as a function of the document and
a public tokenizer alone.

Spans of one document are one unit's, or its author's (config/check.py). A document would otherwise
be protected a span at a time, which protects no document. Which of them count, where a unit has
more than its cap, is for data/prepare.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dpladder.config.records import Spans
from dpladder.data.texts import decode
from dpladder.network.language import tokenizer_digest, tokenizer_of

FEWEST_TOKENS = 2  # tokens of a span: one has to follow another


@dataclass(frozen=True)
class Cutter:
    """How documents become spans.

    Attributes:
        count: the spans of a document, by its content; 1 where it cannot be read, for one record
            that counts as nothing.
        sha256: of the tokenizer, and how long spans are.
    """

    count: Callable[[Any], int]
    sha256: str


def cutter(spans: Spans) -> Cutter:
    """How documents are cut by a public tokenizer, `spans.tokens` at a time. A last span of one
    token is left out: a language model is asked which token follows another."""
    tokenizer = tokenizer_of(spans.model, spans.tokens)

    def count(content: Any) -> int:
        try:
            parts = pieces(tokenizer, decode(content))
        except ValueError:
            return 1
        # all but the last are full
        return max(1, len(parts) - (sum(parts[-1].attention_mask) < FEWEST_TOKENS))

    return Cutter(count, tokenizer_digest(tokenizer))


def pieces(tokenizer: Any, text: str) -> list[Any]:
    """A text's tokens, so many at a time, each with the special tokens that a text of its own would
    have."""
    first = tokenizer.encode(text)
    return [first, *first.overflowing]
