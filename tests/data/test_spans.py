"""Documents cut into spans: nothing of a document is lost, and which of its spans count follows
from it and a key alone."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from extracted import KEYS, dataset_of, extract_part, manifest_of, open_part
from hypothesis import given, settings
from hypothesis import strategies as st
from languages import WORDS, save_tokenizer, tiny_causal_model
from transformers import AutoTokenizer

from dpladder.config.dataset_sections import Unit
from dpladder.config.features_sections import Features
from dpladder.config.records import Spans
from dpladder.data.prepare import Keys, Manifest
from dpladder.data.spans import Cutter, cutter
from dpladder.errors import Refused

# of a span; the tiny tokenizer puts one before a text and one behind it, so that four are words
TOKENS = 6
DOCUMENT = Unit(by="document", cap=2)
Row = dict[str, Any]


@pytest.fixture(scope="module", name="model")
def _model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_causal_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module", name="cutting")
def _cutting(model: Path) -> Cutter:
    return cutter(Spans(f"hf:{model}", TOKENS))


def manifest(
    folder: Path,
    rows: list[Row],
    cutting: Cutter | None,
    unit: Unit,
    keys: Keys = KEYS,
    **dataset: Any,
) -> Manifest:
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    columns = tuple(name for name in ("id", "user") if name in rows[0])
    source = f"jsonl:{folder / 'data.jsonl'}"
    asked = dataset_of(source, columns=columns, classes=1, unit=unit, **dataset)
    public = "test" if asked.public_test is not None else None
    return manifest_of(folder, asked, public, keys, cutting)


def facts(found: Manifest) -> set[tuple[bytes, bytes, bytes, int, int]]:
    """What the manifest says of each span that counts, wherever its source keeps the document."""
    columns = (found.record_ids, found.units, found.contents, found.parts, found.spans)
    return {
        (record.tobytes(), unit.tobytes(), content.tobytes(), int(part), int(span))
        for label, record, unit, content, part, span in zip(found.labels, *columns, strict=True)
        if label >= 0
    }


def saying(words: int, first: int = 0) -> str:
    return " ".join((WORDS * 3)[first : first + words])


documents = st.lists(
    st.fixed_dictionaries(
        {"words": st.integers(0, 22), "first": st.integers(0, 3), "user": st.sampled_from("abc")}
    ),
    min_size=2,
    max_size=8,
)


def rows_of(drawn: list[Row]) -> list[Row]:
    return [{"text": saying(one["words"], one["first"]), "user": one["user"]} for one in drawn]


@pytest.mark.few(1)
@pytest.mark.parametrize("unit", [DOCUMENT, Unit(by="user", cap=3)], ids=lambda unit: unit.by)
@given(drawn=documents, data=st.data())
@settings(max_examples=20, deadline=None)
def test_one_unit_less_changes_its_own_spans_and_no_other(
    tmp_path_factory: Any, cutting: Cutter, unit: Unit, drawn: list[Row], data: Any
) -> None:
    folder, rows = tmp_path_factory.mktemp("spans"), rows_of(drawn)

    def owner(row: Row) -> str:
        return str(row["user"] if unit.by == "user" else row)

    gone = data.draw(
        st.sampled_from([owner(row) for row in rows if row["text"]] or [owner(rows[0])])
    )
    fewer = data.draw(st.permutations([row for row in rows if owner(row) != gone]))
    if not fewer:
        return
    every, left = (facts(manifest(folder, some, cutting, unit)) for some in (rows, fewer))
    assert left <= every
    assert len({fact[1] for fact in every - left}) <= 1
    assert len({fact[3] for fact in every - left}) <= 1
    assert max(Counter(fact[1] for fact in every).values(), default=0) <= unit.cap


@pytest.mark.parametrize("cut", [False, True])
def test_a_missing_text_takes_no_other_ones_place_wherever_it_stands(
    tmp_path: Path, cutting: Cutter, cut: bool
) -> None:
    """Such a record is one by its place in the file, which others move."""
    own = [{"text": text, "user": "a"} for text in ("", "the cat", "a dog", "red sky")]
    others = [{"text": f"w{place}", "user": "b"} for place in range(8)]
    every = [
        facts(
            manifest(
                tmp_path, [*others[:count], *own], cutting if cut else None, Unit(by="user", cap=2)
            )
        )
        for count in range(9)
    ]
    (unit,) = {fact[1] for fact in every[0]}
    assert len({frozenset(fact for fact in found if fact[1] == unit) for found in every}) == 1
    assert len(every[0]) == 2


@pytest.mark.ci
def test_a_units_spans_are_drawn_by_the_key_from_all_that_it_has(
    tmp_path: Path, cutting: Cutter
) -> None:
    rows = [{"text": saying(20, place % 4) + f" w{place}"} for place in range(400)]
    once = Unit(by="document", cap=1)
    found = manifest(tmp_path, rows, cutting, once)
    counts = Counter(found.spans.tolist())
    assert set(counts) == set(range(6))  # 21 words, four at a time
    assert max(abs(count / 400 - 1 / 6) for count in counts.values()) < 0.1  # five deviations
    again = manifest(tmp_path, rows, cutting, once, replace(KEYS, units=b"v" * 32))
    places = [
        dict(zip(one.index.tolist(), one.spans.tolist(), strict=True)) for one in (found, again)
    ]
    assert 0.6 < np.mean([places[0][index] != places[1][index] for index in range(400)]) < 1.0
    every = manifest(tmp_path, rows, cutting, Unit(by="document", cap=99))
    assert len(every.labels) == 6 * 400
    assert len({unit.tobytes() for unit in every.units}) == 400
    assert len({record.tobytes() for record in every.record_ids}) == 6 * 400
    assert facts(found) <= facts(every)


def test_a_document_lies_in_the_part_of_its_text_whole_or_cut(
    tmp_path: Path, cutting: Cutter
) -> None:
    rows = [{"text": saying(12, place % 20) + f" w{place}"} for place in range(60)]
    cut = manifest(tmp_path, rows, cutting, DOCUMENT)
    whole = manifest(tmp_path, rows, None, Unit())
    parts = [
        {(unit.tobytes(), int(part)) for unit, part in zip(one.units, one.parts, strict=True)}
        for one in (cut, whole)
    ]
    assert parts[0] == parts[1]
    assert not whole.spans.any()


def test_documents_that_claim_one_id_but_differ_count_as_nothing_in_any_span(
    tmp_path: Path, cutting: Cutter
) -> None:
    rows = [
        {"id": "a", "text": saying(9)},
        {"id": "a", "text": saying(20)},
        {"id": "b", "text": saying(5)},
        {"id": "b", "text": saying(5)},
    ]
    found = manifest(tmp_path, rows, cutting, Unit(by="document", cap=9))
    assert found.index.tolist() in ([2, 2], [3, 3])
    assert sorted(found.spans.tolist()) == [0, 1]


def test_spans_of_a_public_document_are_all_kept(tmp_path: Path, cutting: Cutter) -> None:
    other = tmp_path / "open.jsonl"
    other.write_text(json.dumps({"text": saying(19)}) + "\n")
    found = manifest(
        tmp_path,
        [{"text": "the cat"}],
        cutting,
        Unit(by="document", cap=1),
        public_test=f"jsonl:{other}",
    )
    assert sorted(found.spans.tolist()) == [0, 1, 2, 3, 4]


def extracted(folder: Path, model: Path) -> np.ndarray:
    features = Features(
        model=f"hf:{model}",
        weights="pretrained",
        tokens=TOKENS,
        batch_size=4,
        until="input",
        pooling="none",
    )
    return np.array(open_part(extract_part(folder, features)).features)


def test_spans_are_the_documents_tokens_without_one_missing_or_twice(
    tmp_path: Path, model: Path, cutting: Cutter
) -> None:
    rows = [{"text": saying(words, words) + f" w{words}"} for words in (1, 3, 4, 7, 16)]
    rows += [{"text": ""}, {"text": " \n"}]
    found = manifest(tmp_path, rows, cutting, Unit(by="document", cap=99), split={"test": 0.0})
    kept = extracted(tmp_path, model)
    cut = AutoTokenizer.from_pretrained(model)
    told = (tmp_path / "problems.jsonl").read_text() + (tmp_path / "train.h5.jsonl").read_text()
    assert {json.loads(line)["record"] for line in told.splitlines()} == {5, 6}
    for index, row in enumerate(rows):
        own = [place for place in range(len(kept)) if found.index[place] == index]
        own.sort(key=lambda place: found.spans[place])
        tokens = [int(one) - 1 for place in own for one in kept[place] if one > 0]
        if index >= 5:
            assert tokens == []
            continue
        assert [one for one in tokens if one > 3 or one == 1] == cut(row["text"])["input_ids"][1:-1]
        assert all((kept[place] > 0).all() for place in own[:-1])  # all but the last are full


def test_another_tokenizer_than_cut_the_documents_is_refused(
    tmp_path: Path, cutting: Cutter
) -> None:
    manifest(tmp_path, [{"text": saying(9)}], cutting, DOCUMENT)
    other = tiny_causal_model(tmp_path / "model")
    save_tokenizer(other, WORDS[::-1])
    with pytest.raises(Refused, match="is not the one that cut the documents"):
        extracted(tmp_path, other)
