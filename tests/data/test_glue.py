"""examples/glue.py: GLUE's own files, of small size, as config/examples/glue.yaml reads them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers

from dpladder.config.load import load
from dpladder.data.datasets import class_index, classes, open_source
from dpladder.data.layout import Layout
from dpladder.network.language import tokenizer_of

PARSES = (
    "index promptID pairID genre sentence1_binary_parse sentence2_binary_parse sentence1_parse "
    "sentence2_parse"
)
MNLI = (*PARSES.split(), "sentence1", "sentence2", "label1")
PREMISE = (
    "0",
    "1n",
    "1n",
    "fiction",
    "( a )",
    "( b )",
    "(ROOT a)",
    "(ROOT b)",
    "He slept.",
    "He was up.",
)
QUESTION, ANSWER = "Where was the king born?", "He was born in Bath, in 1500."


def put(path: Path, *lines: tuple[str, ...], end: str = "\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join("\t".join(line) + end for line in lines).encode())


def converted(folder: Path, *options: str) -> tuple[str, dict[str, list[dict[str, str]]]]:
    """What it says, and the records of each task."""
    command = [sys.executable, str(ROOT / "examples" / "glue.py"), "GLUE", "data/glue", *options]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    found = sorted((folder / "data" / "glue").glob("*.jsonl"))
    return ended.stdout, {
        path.stem: [json.loads(line) for line in path.read_bytes().splitlines()] for path in found
    }


def write_all(folder: Path) -> None:
    glue = folder / "GLUE"
    for part in ("train", "dev"):
        put(
            glue / "SST-2" / f"{part}.tsv",
            ("sentence", "label"),
            (f"a {part} ", "1"),
            ("dull", "0"),
        )
        head = ("index", "question", "sentence", "label")
        put(glue / "QNLI" / f"{part}.tsv", head, ("0", QUESTION, ANSWER, "entailment"))
        head = ("id", "qid1", "qid2", "question1", "question2", "is_duplicate")
        put(glue / "QQP" / f"{part}.tsv", head, ("7", "1", "2", "Why?", "Why so?", "1"))
    neutral, against = ("neutral",), ("contradiction",)
    put(glue / "MNLI" / "train.tsv", (*MNLI, "gold_label"), PREMISE + neutral + against)
    more = ("label2", "label3", "label4", "label5", "gold_label")
    put(glue / "MNLI" / "dev_matched.tsv", MNLI + more, PREMISE + neutral * 5 + against)
    put(glue / "MNLI" / "dev_mismatched.tsv", MNLI + more, PREMISE + neutral * 5 + against)


def test_every_task_is_read_by_the_example_with_its_parts_and_its_gold_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_all(tmp_path)
    said, records = converted(tmp_path)
    assert "qnli: train 1, broken 0; dev 1, broken 0" in said
    assert records["sst2"][0] == {
        "id": "sst2 train 0",
        "split": "train",
        "text": "a train",
        "label": "1",
    }
    assert [one["label"] for one in records["mnli"]] == ["contradiction"] * 2
    monkeypatch.chdir(tmp_path)
    configs = load([ROOT / "config" / "examples" / "glue.yaml"]).experiments
    datasets = {config.dataset.lineage: config.dataset for config in configs.values()}
    assert len(datasets) == 4
    ids: list[str] = []
    for asked in datasets.values():
        source = open_source(asked.source, Layout(asked.columns))
        number = class_index(classes(asked))
        assert all(number(label) >= 0 for label in source.labels)
        assert source.parts is not None
        assert {*source.parts} == {"train", "test"}
        assert source.ids is not None
        ids += source.ids
    assert len({*ids}) == len(ids)  # or one person would be in two lineages


def test_a_quote_is_text_and_a_line_ends_at_a_newline_alone(tmp_path: Path) -> None:
    odd = (
        '"a quote that is never closed',
        "one line\u2028still the same",
        "and \x0b this",
        "c'est l'\u00e9t\u00e9",
    )
    put(tmp_path / "GLUE/SST-2/train.tsv", ("sentence", "label"), *((text, "0") for text in odd))
    put(
        tmp_path / "GLUE/SST-2/dev.tsv",
        ("sentence", "label"),
        ("it ends as Windows does", "1"),
        end="\r\n",
    )
    said, records = converted(tmp_path)
    assert [one["text"] for one in records["sst2"]] == [*odd, "it ends as Windows does"]
    assert [one["label"] for one in records["sst2"]] == ["0"] * 4 + ["1"]
    assert said == "sst2: train 4, broken 0; dev 1, broken 0\n"


def test_broken_lines_are_left_out_and_counted(tmp_path: Path) -> None:
    head = ("id", "qid1", "qid2", "question1", "question2", "is_duplicate")
    whole = ("1", "1", "2", "Why?", "Why so?", "0")
    broken = (whole[:5], (*whole, "1"), (*whole[:5], "yes"), (*whole[:4], " ", "0"), ("",))
    put(tmp_path / "GLUE/QQP/train.tsv", head, whole, *broken, whole)
    said, records = converted(tmp_path)
    assert said == "qqp: train 2, broken 5\n"
    assert [one["id"] for one in records["qqp"]] == ["qqp train 0", "qqp train 1"]


def roberta() -> Tokenizer:
    """Of the kind that RoBERTa has: bytes, and its way to put two texts together."""
    found = Tokenizer(models.BPE())
    found.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=["<s>", "<pad>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    found.train_from_iterator([QUESTION, ANSWER], trainer)
    found.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), add_prefix_space=False
    )
    return found


@pytest.mark.parametrize("options", [(), ("--separator", "[SEP]")], ids=["roberta", "minilm"])
def test_two_sentences_are_the_tokens_that_the_model_s_tokenizer_makes_of_them(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    write_all(tmp_path)
    _, records = converted(tmp_path, *options)
    tokenizer = tokenizer_of("minilm", 32) if options else roberta()
    ids = tokenizer.encode(records["qnli"][0]["text"]).ids
    assert ids == tokenizer.encode(QUESTION, ANSWER).ids
    assert ids != tokenizer.encode(f"{QUESTION} {ANSWER}").ids
