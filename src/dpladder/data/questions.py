"""Questions whose answers stand in a text: SQuAD's published layouts as a source, and a record as a
row of tokens with marks (network/marks.py).

A record is a question, its context and its answers in one piece of content. Whoever changes one of
them makes another record of it. Places of answers count characters, as in SQuAD.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpladder.data.encoders import Rows
from dpladder.data.layout import PLAIN, Layout
from dpladder.data.sources import Source, missing_source_error, record_columns
from dpladder.data.tables import columns_in, columns_of_roles, objects_in
from dpladder.data.texts import decode
from dpladder.errors import BadInput
from dpladder.network.marks import answer_marks

Answer = tuple[int, str]  # the place of its first character in the context, and its text


def from_squad(path: Path, layout: Layout = PLAIN) -> Source:
    """SQuAD's own JSON, or a question a row: lines of JSON, or parquet, with id, title, context,
    question and answers. A title is a user where the config says so.

    Raises:
        BadInput: there is no such file, or it is laid out in another way.
    """
    if not path.is_file():
        raise missing_source_error(
            path, "SQuAD's JSON, or jsonl or parquet with a question in each row"
        )
    rows = _rows_of(path)
    names = {"id": layout.name("id")} | {
        role: name for role, name in layout.named if role == "user"
    }
    names |= {} if layout.group is None else {"group": layout.group}
    columns = record_columns(columns_of_roles(rows, names), path, len(rows))
    contents = [_content(row) for row in rows]
    return Source("texts", contents.__getitem__, **columns)


def _rows_of(path: Path) -> Sequence[dict[str, Any]]:
    if path.suffix == ".jsonl":
        return objects_in(path)
    if path.suffix == ".parquet":
        columns = columns_in(path).columns
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    try:
        whole = json.loads(path.read_bytes().decode("utf-8-sig", "surrogateescape"))
    except (OSError, ValueError, RecursionError):
        whole = None
    if not isinstance(whole, dict) or not isinstance(whole.get("data"), list):
        raise BadInput(
            f"{path} is not laid out as SQuAD's JSON: data, paragraphs, qas. Give that, or a "
            "question a row, as jsonl or parquet."
        )
    return [*_flat(whole)]


def _flat(whole: Any) -> Iterator[dict[str, Any]]:
    for article in _parts(whole, "data"):
        for paragraph in _parts(article, "paragraphs"):
            around = {"title": article.get("title"), "context": paragraph.get("context")}
            for question in _parts(paragraph, "qas"):
                yield question | around


def _parts(record: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """What is no object, or no list of them, is an empty object, and so one record that counts as
    nothing."""
    parts = record.get(key)
    return [
        one if isinstance(one, dict) else {}
        for one in (parts if isinstance(parts, list) else [None])
    ]


def _content(row: dict[str, Any]) -> bytes:
    """Nothing where a part of it is missing, or is not what it should be. Half a surrogate pair
    makes bytes that are no UTF-8."""
    question, context = row.get("question"), row.get("context")
    answers = _answers(row.get("answers"))
    if not isinstance(question, str) or not isinstance(context, str) or answers is None:
        return b""
    return content_of(question, context, answers)


def content_of(question: str, context: str, answers: Sequence[Answer] = ()) -> bytes:
    """A question with its context and answers as the content of one record.

    Args:
        question: its text.
        context: where answers stand.
        answers: each with the place of its first character, counted from 0; none where there is no
            answer.
    """
    text = json.dumps([question, context, answers], ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")


def _answers(answers: Any) -> list[Answer] | None:
    """A list of answers, as SQuAD has them, or a list of each of their parts, as its rows do."""
    if isinstance(answers, dict):
        texts, places = answers.get("text"), answers.get("answer_start")
    elif isinstance(answers, list) and all(isinstance(one, dict) for one in answers):
        texts = [one.get("text") for one in answers]
        places = [one.get("answer_start") for one in answers]
    else:
        return None
    if not isinstance(texts, list) or not isinstance(places, list) or len(texts) != len(places):
        return None
    right = [
        isinstance(text, str) and isinstance(place, int)
        for text, place in zip(texts, places, strict=True)
    ]
    return [*zip(places, texts, strict=True)] if all(right) else None


def tokenize_question(tokenizer: Any, content: Any) -> Rows:
    """A record's tokens, which of them are no padding, and their marks: int64 (3, tokens).

    The context's last tokens are cut off where they are too many.

    Raises:
        ValueError: the question alone is too long, or an answer does not stand where it says. The
            caller makes that a bad record.
    """
    question, context, answers = json.loads(decode(content))
    encoding = tokenizer.encode(question, context)
    inside = [place == 1 for place in encoding.sequence_ids]
    if not any(inside):
        raise ValueError("no token of its context is known")
    for place, text in answers:
        if not text.strip() or place < 0 or context[place : place + len(text)] != text:
            raise ValueError("an answer does not stand where it says")
    ends = [_tokens_of(encoding.offsets, inside, place, text) for place, text in answers]
    # no answer at all is one too, and stands at the first token of all
    answers_kept = [one for one in ends if one is not None] if answers else [(0, 0)]
    marks = answer_marks(inside, answers_kept)
    return np.array([encoding.ids, encoding.attention_mask, marks], np.int64)


def _tokens_of(
    offsets: Sequence[tuple[int, int]], inside: Sequence[bool], place: int, text: str
) -> tuple[int, int] | None:
    """The first and the last token that an answer has a character in; None where some of it is cut
    off."""
    start = place + len(text) - len(text.lstrip())
    stop = place + len(text.rstrip())
    tokens = [
        token
        for token, (begin, end) in enumerate(offsets)
        if inside[token] and begin < stop and end > start
    ]
    return (tokens[0], tokens[-1]) if tokens and offsets[tokens[-1]][1] >= stop else None


def words_of(tokenizer: Any, question: str, context: str, first: int, last: int) -> str:
    """What stands in a context from one token to another; nothing at the first token of all."""
    offsets = tokenizer.encode(question, context).offsets
    return context[offsets[first][0] : offsets[last][1]] if last else ""
