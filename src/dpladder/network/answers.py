"""Where in a text an answer stands.

This says what is kept of a question with its context, what a network's loss on it is, and when it
is right.

A record is a row of two channels: its tokens, as stack.py keeps them, and a mark for each. Bits of
a mark say whether a token is the context's, and of which answers it is the first or the last one.
The first token of all stands for "no answer" (Devlin et al. 2019, section 4.3). The network sees
the tokens alone; marks tell its loss and whether it is right.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from dpladder.network.marks import CHANNELS, IN_CONTEXT, MOST_ANSWERS, first_bit, last_bit
from dpladder.network.stack import Reading, probes, rows_of_tokens

ENDS = 2  # logits of a token: whether the answer starts, or ends there
LONGEST = 30  # tokens of an answer that a model may give, as SQuAD's own baselines have it


def rows_of(tokens: Tensor, mask: Tensor, marks: Tensor) -> Tensor:
    """From tokens, which of them are the text's, and their marks, to rows (records, tokens, 2).

    Args:
        tokens: (records, tokens), their numbers in the vocabulary.
        mask: (records, tokens), above 0 where a token is the text's.
        marks: (records, tokens), as `answer_marks` makes them.
    """
    return torch.stack([rows_of_tokens(tokens, mask), marks.int()], dim=2)


def _channel(rows: Tensor, place: int) -> Tensor:
    """One channel of rows that may be flattened: (records, tokens)."""
    return rows.reshape(len(rows), -1, CHANNELS)[..., place]


def token_vectors(reading: Reading) -> Callable[[nn.Module, Tensor], Tensor]:
    """From a network and rows to a vector for each token, by the tokens alone: (records, tokens,
    width)."""

    def read(network: nn.Module, rows: Tensor) -> Tensor:
        vectors: Tensor = reading(network, _channel(rows, 0))[0].last_hidden_state
        return vectors

    return read


def _marks(rows: Tensor) -> Tensor:
    """The marks of rows, as whole numbers: (records, tokens)."""
    return _channel(rows, 1).long()


def _allowed_tokens(marks: Tensor) -> Tensor:
    """The tokens that an answer may start or end at: the context's, and the first of all."""
    return (marks & IN_CONTEXT > 0) | (torch.arange(marks.shape[1], device=marks.device) == 0)


def losses(logits: Tensor, rows: Tensor) -> Tensor:
    """The loss of each record, in nats: (records,).

    It is the mean of two cross-entropies over the tokens that an answer may start or end at. They
    are of where its first answer starts, and where it ends.

    Args:
        logits: (records, tokens, 2).
        rows: (records, tokens, 2), or flattened.
    """
    marks = _marks(rows)
    allowed = logits.masked_fill(~_allowed_tokens(marks)[..., None], -torch.inf)
    ends = [
        cross_entropy(allowed[..., end], (marks >> bit & 1).argmax(dim=1), reduction="none")
        for end, bit in enumerate((first_bit(0), last_bit(0)))
    ]
    return (ends[0] + ends[1]) / ENDS


def right(logits: Tensor, rows: Tensor) -> Tensor:
    """For each record, 1 where the best pair of a first and a last token is one of its answers, and
    else 0.

    A pair lies within the context and has LONGEST tokens at most, or it is no answer.

    Args:
        logits: (records, tokens, 2).
        rows: (records, tokens, 2), or flattened.
    """
    starts, stops = _marks(rows).gather(1, best(logits, rows)).unbind(dim=1)
    is_right = torch.zeros_like(starts, dtype=torch.bool)
    for answer in range(MOST_ANSWERS):
        is_right |= (starts >> first_bit(answer) & stops >> last_bit(answer) & 1) > 0
    return is_right.to(logits.dtype)


def best(logits: Tensor, rows: Tensor) -> Tensor:
    """For each record, the first and last token of the answer that the network gives: (records, 2).
    Both are 0 where it gives none.

    Args:
        logits: (records, tokens, 2).
        rows: (records, tokens, 2), or flattened.
    """
    context = _marks(rows) & IN_CONTEXT > 0
    tokens = context.shape[1]
    clean = logits.nan_to_num()
    sums = clean[..., 0, None] + clean[:, None, :, 1]
    span = torch.ones(tokens, tokens, dtype=torch.bool, device=context.device)
    span = span.triu() & ~span.triu(LONGEST)
    able = context[:, :, None] & context[:, None] & span
    able[:, 0, 0] = True
    place = sums.masked_fill(~able, -torch.inf).flatten(1).argmax(dim=1)
    return torch.stack([place // tokens, place % tokens], dim=1)


def random_questions(words: int, tokens: int, count: int, random: torch.Generator) -> Tensor:
    """Public random questions with contexts, as rows: each context is the latter half of a random
    text, and the answer some of its tokens.

    Args:
        words: of the vocabulary.
        tokens: of a row.
        count: of records.
        random: a public generator.
    """
    texts, mask = probes(words, tokens, count, random)
    length = mask.sum(dim=1)
    first = length // 2
    last = first + torch.randint(0, tokens, (count,), generator=random) % (length - first)
    marks = mask * (torch.arange(tokens) >= first[:, None])
    for place, bit in ((first, first_bit(0)), (last, last_bit(0))):
        marks[torch.arange(count), place] |= 1 << bit
    return rows_of(texts, mask, marks)
