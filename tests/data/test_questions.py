"""Questions: SQuAD's layouts give the same records, and an answer's tokens are those that its
characters lie in."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from extracted import extract_part, manifest_of, open_part
from languages import WORDS, tiny_language_model
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from dpladder.config.dataset_sections import Dataset, Split, Unit
from dpladder.config.features_sections import Features
from dpladder.data.backbones import encoder
from dpladder.data.cache import FeatureCache
from dpladder.data.datasets import open_source
from dpladder.data.layout import layout_of
from dpladder.data.questions import from_squad, tokenize_question
from dpladder.data.sources import Source
from dpladder.errors import BadInput
from dpladder.network.language import tokenizer_of, transformers_tokenizer
from dpladder.network.marks import IN_CONTEXT, MOST_ANSWERS, first_bit, last_bit

CONTEXT = "the red dog ran in fog"


def asked(number: int, **other: Any) -> dict[str, Any]:
    row = {
        "id": f"q{number}",
        "title": f"article {number // 2}",
        "context": CONTEXT,
        "question": f"a cat {number}",
        "answers": {"text": ["red dog", "dog"], "answer_start": [4, 8]},
    }
    return row | other


ROWS = [asked(0), asked(1, answers={"text": [], "answer_start": []}), asked(2)]


def jsonl(folder: Path, rows: list[dict[str, Any]]) -> Path:
    path = folder / "asked.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def parquet(folder: Path, rows: list[dict[str, Any]]) -> Path:
    path = folder / "asked.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def squad(folder: Path, rows: list[dict[str, Any]]) -> Path:
    """SQuAD's own layout, an article for each row."""
    articles = []
    for row in rows:
        each = zip(row["answers"]["text"], row["answers"]["answer_start"], strict=True)
        answers = [{"text": text, "answer_start": start} for text, start in each]
        qas = [{"id": row["id"], "question": row["question"], "answers": answers}]
        paragraph = {"context": row["context"], "qas": qas}
        articles.append({"title": row["title"], "paragraphs": [paragraph]})
    path = folder / "train-v1.1.json"
    path.write_text(json.dumps({"version": "1.1", "data": articles}))
    return path


def dataset_of(path: Path, **other: Any) -> Dataset:
    given = {"lineage": "x", "source": f"squad:{path}", "nominal_size": 1, "classes": 1}
    return Dataset(**(given | {"split": Split(test=0.0)} | other))


@pytest.mark.parametrize("write", [jsonl, parquet, squad])
def test_each_layout_gives_the_same_records(write: Callable[..., Path], tmp_path: Path) -> None:
    path = write(tmp_path, ROWS)
    found = open_source(f"squad:{path}", layout_of(dataset_of(path, user="title")))
    assert found.ids == ["q0", "q1", "q2"]
    assert found.users == ["article 0", "article 0", "article 1"]
    assert found.kind == "texts"
    assert json.loads(found.read(0)) == ["a cat 0", CONTEXT, [[4, "red dog"], [8, "dog"]]]
    assert json.loads(found.read(1)) == ["a cat 1", CONTEXT, []]
    # none owns a question where the config names nobody
    assert open_source(f"squad:{path}", layout_of(dataset_of(path))).users is None


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"data": 3}', '{"rows": []}', "\ud800"], ids=["json", "list", "3", "0", ""]
)
def test_a_file_of_another_layout_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(BadInput, match=r"data, paragraphs, qas"):
        from_squad(tmp_path / "a.json")
    with pytest.raises(BadInput, match="does not exist"):
        from_squad(tmp_path / "b.json")


BROKEN: dict[str, dict[str, Any]] = {
    "no context": asked(9, context=None),
    "a question that is a number": asked(9, question=3),
    "no answers": {key: value for key, value in asked(9).items() if key != "answers"},
    "answers that are a text": asked(9, answers="dog"),
    "places that are texts": asked(9, answers={"text": ["dog"], "answer_start": ["8"]}),
    "fewer places than answers": asked(9, answers={"text": ["dog"], "answer_start": []}),
    "an answer that stands elsewhere": asked(9, answers={"text": ["dog"], "answer_start": [7]}),
    "an answer of nothing": asked(9, answers={"text": [" "], "answer_start": [3]}),
    "an answer from the end on": asked(9, answers={"text": ["fog"], "answer_start": [-3]}),
    "an answer past the end": asked(9, answers={"text": ["fog "], "answer_start": [19]}),
    "half a surrogate pair": asked(9, question="\ud800"),
    "a question that is too long": asked(9, question="cat " * 40),
    "a context of nothing": asked(9, context="", answers={"text": [], "answer_start": []}),
}


@pytest.fixture(scope="module", name="tiny")
def _tiny(tmp_path_factory: pytest.TempPathFactory) -> Features:
    folder = tiny_language_model(tmp_path_factory.mktemp("tiny"))
    given = {"weights": "pretrained", "tokens": 16, "batch_size": 4}
    return Features(model=f"hf:{folder}", **given, until="input", pooling="each")


def extracted(folder: Path, rows: list[Any], features: Features, **other: Any) -> FeatureCache:
    dataset = dataset_of(jsonl(folder, rows), **other)
    manifest_of(folder, dataset)
    return open_part(extract_part(folder, features))


def test_what_is_broken_is_one_record_that_counts_as_nothing(
    tiny: Features, tmp_path: Path
) -> None:
    rows = [*ROWS, *(asked | {"id": name} for name, asked in BROKEN.items()), 3]
    found = extracted(tmp_path, rows, tiny)
    assert (len(found.labels), np.count_nonzero(found.labels == 0)) == (len(rows), len(ROWS))
    assert not found.features[found.labels < 0].any()
    assert found.features[found.labels == 0].any(axis=1).all()


def test_a_part_of_squads_json_that_is_broken_is_one_record_too(tmp_path: Path) -> None:
    path = squad(tmp_path, ROWS)
    whole = json.loads(path.read_text())
    whole["data"] += [3, {"paragraphs": [None]}, {"paragraphs": [{"context": "a", "qas": [[]]}]}]
    path.write_text(json.dumps(whole))
    found = from_squad(path)
    assert [found.read(place) for place in range(3, 6)] == [b""] * 3


def test_questions_that_share_an_id_and_differ_count_as_nothing(
    tiny: Features, tmp_path: Path
) -> None:
    other = asked(0, answers={"text": ["fog"], "answer_start": [19]})
    found = extracted(tmp_path, [*ROWS, other, asked(1, question="snow"), asked(2)], tiny)
    assert found.labels.tolist() == [0]  # of the one that was there twice


def test_all_questions_on_an_article_may_be_one_unit(tiny: Features, tmp_path: Path) -> None:
    unit = {"user": "title", "unit": Unit(by="user", cap=2)}
    found = extracted(tmp_path, [asked(place) for place in range(4)], tiny, **unit)
    assert len(found.labels) == 4
    assert len({unit.tobytes() for unit in found.units}) == 2


def marked(features: Features, **other: Any) -> tuple[list[str], np.ndarray]:
    """The tokens of a record in words, and its marks."""
    tokenizer = tokenizer_of(features.model, features.tokens)
    tokenizer.enable_truncation(features.tokens, strategy="only_second")
    row = asked(0, **other)
    answers = zip(row["answers"]["answer_start"], row["answers"]["text"], strict=True)
    content = json.dumps([row["question"], row["context"], [*answers]])
    ids, _, marks = tokenize_question(tokenizer, content.encode())
    return [tokenizer.id_to_token(one) for one in ids], marks


def test_marks_stand_at_the_context_and_at_each_answers_first_and_last_token(
    tiny: Features,
) -> None:
    words, marks = marked(tiny, question="a cat")
    assert words == ["[CLS]", "a", "cat", "[SEP]", *CONTEXT.split(), "[SEP]", *["[PAD]"] * 5]
    assert np.flatnonzero(marks & IN_CONTEXT).tolist() == [4, 5, 6, 7, 8, 9]
    for bit, place in ((first_bit(0), 5), (last_bit(0), 6), (first_bit(1), 6), (last_bit(1), 6)):
        assert np.flatnonzero(marks >> bit & 1).tolist() == [place]
    assert marks.max() < 2 ** last_bit(1) * 2


def test_no_answer_stands_at_the_first_token_and_one_that_is_cut_off_nowhere(
    tiny: Features,
) -> None:
    none = {"text": [], "answer_start": []}
    _, marks = marked(tiny, answers=none)
    assert marks[0] == (1 << first_bit(0)) + (1 << last_bit(0))
    assert (marks[1:] <= IN_CONTEXT).all()
    # ten tokens are left for a context of twelve
    long = {"question": "a cat sat", "context": "sea " * 9 + "red dog ran"}
    _, whole = marked(tiny, **long, answers={"text": ["sea red"], "answer_start": [32]})
    _, partly = marked(tiny, **long, answers={"text": ["red dog"], "answer_start": [36]})
    _, after = marked(tiny, **long, answers={"text": ["ran", "sea"], "answer_start": [44, 4]})
    assert np.flatnonzero(whole > IN_CONTEXT).tolist() == [13, 14]
    assert (partly <= IN_CONTEXT).all()
    assert np.flatnonzero(after > IN_CONTEXT).tolist() == [6]
    assert (after[6] >> first_bit(0) & 1, after[6] >> first_bit(1) & 1) == (1, 0)


def test_further_answers_than_a_mark_holds_are_left_out(tiny: Features) -> None:
    many = {"text": ["dog"] * 12, "answer_start": [8] * 12}
    _, marks = marked(tiny, answers=many)
    assert marks.max() == 2 ** (1 + 2 * MOST_ANSWERS) - 1
    assert np.float32(marks.max()) == marks.max()


def test_characters_are_counted_and_not_bytes_nor_pieces() -> None:
    """With the tokenizer of RoBERTa's kind, whose tokens are made of bytes and hold the space
    before a word."""
    context = "In Zürich 🎉 lives Ælfrīc, who wrote it.  Then he slept"
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=["<s>", "</s>"])
    tokenizer.train_from_iterator([context, "who wrote it"], trainer)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 1), ("<s>", 0))
    tokenizer.enable_truncation(128, strategy="only_second")
    tokenizer.enable_padding(length=128)
    for answer in ("Zürich", "Ælfrīc", " Ælfrīc", "🎉 lives", "it.  Then", "slept", "In", "ich"):
        place = context.index(answer)
        content = json.dumps(["who?", context, [[place, answer]]]).encode()
        ids, _, marks = tokenize_question(tokenizer, content)
        first, last = (np.flatnonzero(marks >> bit & 1) for bit in (first_bit(0), last_bit(0)))
        [start], [stop] = first, last
        written = tokenizer.decode(ids[start : stop + 1].tolist())
        assert answer.strip() in written.strip()
        # one token less on either side would lose some of it
        for a, b in ((start + 1, stop), (start, stop - 1)):
            assert answer.strip() not in tokenizer.decode(ids[a : b + 1].tolist())


def test_marks_are_no_part_of_what_the_network_is_given(tiny: Features) -> None:
    """A row's tokens are the same whatever its answers are."""
    network = encoder(tiny, Source("texts", bytes, [None], name="texts"), 1)
    contents = [
        json.dumps(["a cat", CONTEXT, answers]).encode()
        for answers in ([], [[4, "red"]], [[8, "dog"], [19, "fog"]], [])
    ]
    [rows] = network.encode([np.stack([network.load(content, 0) for content in contents])])
    tokens, marks = rows.reshape(4, tiny.tokens, 2).transpose(2, 0, 1)
    assert (tokens == tokens[0]).all()
    assert len(np.unique(marks, axis=0)) == 3
    words = transformers_tokenizer(tiny.model)(["a cat"], [CONTEXT])["input_ids"][0]
    assert (tokens[0, : len(words)] - 1).tolist() == words
    assert not tokens[0, len(words) :].any()
    assert set(WORDS) >= {*CONTEXT.split()}
