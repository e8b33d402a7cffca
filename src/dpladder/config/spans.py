"""How documents are cut into records."""

from __future__ import annotations

from dataclasses import dataclass

from dpladder.config.model import Config


@dataclass(frozen=True)
class Spans:
    """By the tokenizer of `model`, `tokens` at a time, special ones included."""

    model: str
    tokens: int


def spans_of(config: Config) -> Spans | None:
    return Spans(config.features.model, config.features.tokens) if config.dataset.spans else None
