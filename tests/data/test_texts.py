"""Texts: every format gives the same bytes, and what is wrong with one is told of that one
alone."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from extracted import KEYS
from support import each_row

from dpladder.config.dataset_sections import Dataset, Split
from dpladder.data.census import check_every_record, report
from dpladder.data.datasets import known_classes, open_source
from dpladder.data.layout import Layout
from dpladder.data.prepare import survey
from dpladder.data.texts import LARGEST, decode
from dpladder.data.verses import GENRES
from dpladder.errors import BadInput

TEXTS = ["The cat sat.", "Grüße, “Meer”!\nzwei Zeilen", 'a "quoted", line; and\ttabs', ""]
LABELS = ["a", "b", "a", "b"]


def texts_of(kind: str) -> list[str]:
    """A cell of CSV holds no line end."""
    return [text.replace("\n", " ") for text in TEXTS] if kind == "csv" else TEXTS


def write(kind: str, path: Path, texts: list[str] | None = None) -> None:
    texts = texts_of(kind) if texts is None else texts
    rows = [
        {"text": text, "label": label, "user": label * 2}
        for text, label in zip(texts, LABELS, strict=True)
    ]
    if kind == "csv":
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, ["text", "label", "user"])
            writer.writeheader()
            writer.writerows(rows)
    elif kind == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    else:
        pq.write_table(pa.Table.from_pylist(rows), path)


def dataset(source: str, **more: Any) -> Dataset:
    return Dataset(
        lineage="x",
        source=source,
        nominal_size=1,
        classes=("a", "b"),
        split=Split(test=0.0),
        **more,
    )


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_every_table_of_texts_gives_the_same_bytes_and_columns(tmp_path: Path, kind: str) -> None:
    write(kind, tmp_path / "data")
    layout = Layout(("user",) if kind == "jsonl" else ())
    source = open_source(f"{kind}:{tmp_path / 'data'}", layout)
    assert [source.read(index) for index in range(4)] == [text.encode() for text in texts_of(kind)]
    assert (source.kind, list(source.labels)) == ("texts", LABELS)
    assert not any(source.ids or ())  # a line of JSON may have one
    assert list(source.users or ()) == ["aa", "bb", "aa", "bb"]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_where_nothing_is_told_apart_no_label_is_needed_and_none_is_read(
    tmp_path: Path, kind: str
) -> None:
    write(kind, tmp_path / "labelled")
    rows = [{"text": text} for text in TEXTS]
    if kind == "csv":
        (tmp_path / "bare").write_text(
            "text\n" + "\n".join(json.dumps(text) for text in ("one", "two")), "utf-8"
        )
    elif kind == "jsonl":
        (tmp_path / "bare").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    else:
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "bare")
    for name in ("labelled", "bare"):
        found = survey(
            dataset(f"{kind}:{tmp_path / name}").model_copy(update={"classes": 1}),
            KEYS,
        )
        told = Counter(row.label for row in each_row(found.rows))
        assert told == ({0: 2} if (kind, name) == ("csv", "bare") else {0: 3, -1: 1})
    if kind == "jsonl":  # which has no header that could lack one
        return
    with pytest.raises(BadInput, match="has no label"):
        survey(dataset(f"{kind}:{tmp_path / 'bare'}"), KEYS)


def test_a_folder_of_texts_reads_text_files_and_a_folder_of_images_none(tmp_path: Path) -> None:
    for name in ("a/1.txt", "a/deep/2.TXT", "b/3.txt", "b/picture.png"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    source = open_source(f"texts:{tmp_path}")
    found = {
        (source.read(index).decode(), source.labels[index]) for index in range(len(source.labels))
    }
    assert (source.kind, found) == (
        "texts",
        {("a/1.txt", "a"), ("a/deep/2.TXT", "a"), ("b/3.txt", "b")},
    )
    assert len(open_source(f"folder:{tmp_path}").labels) == 1


def test_strings_of_a_dictionary_column_are_texts_and_numbers_are_none(tmp_path: Path) -> None:
    column = pa.array(["one", "two", None]).dictionary_encode()
    pq.write_table(pa.table({"text": column, "label": [0, 1, 0]}), tmp_path / "d.parquet")
    source = open_source(f"parquet:{tmp_path / 'd.parquet'}")
    assert [source.read(index) for index in range(3)] == [b"one", b"two", b""]
    pq.write_table(pa.table({"text": [[1.0]], "label": [0]}), tmp_path / "d.parquet")
    with pytest.raises(BadInput, match="must hold strings"):
        open_source(f"parquet:{tmp_path / 'd.parquet'}")


def test_chosen_columns_stay_features_beside_a_text(tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": ["one"], "x": [1.5], "label": [0]}), tmp_path / "d.parquet")
    assert open_source(f"parquet:{tmp_path / 'd.parquet'}", Layout(("x",))).kind == "features"


def test_bytes_that_are_no_utf8_cost_their_own_record_alone(tmp_path: Path) -> None:
    good, bad = b"fine", b"\xff\xfebad"
    (tmp_path / "d.csv").write_bytes(b"text,label,id\nfine,a,1\n" + bad + b",b,\xff\n")
    (tmp_path / "d.jsonl").write_bytes(
        b'{"text": "fine", "label": "a"}\n{"text": "' + bad + b'", "label": "b"}\n'
    )
    strings = pa.array([good, bad]).view(pa.string())
    pq.write_table(pa.table({"text": strings, "label": ["a", "b"]}), tmp_path / "d.parquet")
    for kind in ("csv", "jsonl", "parquet"):
        source = open_source(f"{kind}:{tmp_path / f'd.{kind}'}")
        assert decode(source.read(0)) == "fine"
        with pytest.raises(ValueError, match="not UTF-8"):
            decode(source.read(1))
        assert len(survey(dataset(f"{kind}:{tmp_path / f'd.{kind}'}"), KEYS).rows) == 2


LINES = [
    b"no json",
    b"[1]",
    b'{"text": 3, "label": "a"}',
    b'{"label": "a"}',
    b'{"text": "half \\ud800", "label": "a"}',
    b'{"text": "ok", "label": ["a"]}',
    b'{"text": "ok", "label": "\\ud800"}',
    b"[" * 100_000,
    b'{"text": "ok", "label": "a"}',
]


def test_a_line_that_is_no_record_counts_as_nothing_and_changes_no_other(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_bytes(b"\n".join(LINES) + b"\n\n")
    found = survey(dataset(f"jsonl:{tmp_path / 'd.jsonl'}"), KEYS)
    assert len(found.source.labels) == len(LINES)
    usable = [row for row in each_row(found.rows) if row.label >= 0]
    assert [found.source.read(row.index) for row in usable if row.index != 4] == [b"ok"]
    told = report(check_every_record(found))
    assert "text cannot be read: not UTF-8: 1 (4)" in told
    assert "text is missing or empty: 5" in told


def test_no_line_gives_the_others_an_id(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text(
        '{"text": "one", "label": "a"}\n{"text": "two", "label": "b", "id": 7}\n'
    )
    source = f"jsonl:{tmp_path / 'd.jsonl'}"
    assert [row.label for row in each_row(survey(dataset(source), KEYS).rows)].count(-1) == 0
    assert [
        row.label for row in each_row(survey(dataset(source, columns=("id",)), KEYS).rows)
    ].count(-1) == 1


def test_a_very_long_text_in_a_table_is_one_bad_record(tmp_path: Path) -> None:
    write("csv", tmp_path / "d.csv", ["x" * (LARGEST + 1), "y" * LARGEST, "z", "w"])
    source = open_source(f"csv:{tmp_path / 'd.csv'}")
    with pytest.raises(ValueError, match="longer than 1,048,576 bytes"):
        decode(source.read(0))
    assert len(decode(source.read(1))) == LARGEST


@pytest.mark.parametrize("content", [b"", b" \n\t", b"\xef\xbb\xbf", "text", None])
def test_what_holds_no_text_is_none(content: Any) -> None:
    with pytest.raises(ValueError, match=r"no text|white space"):
        decode(content)


def test_exact_copies_with_one_label_are_one_record(tmp_path: Path) -> None:
    write("csv", tmp_path / "d.csv", ["same", "same", "same", "same "])
    found = survey(dataset(f"csv:{tmp_path / 'd.csv'}"), KEYS)
    assert sorted(row.label for row in each_row(found.rows)) == [0, 1, 1]
    assert [check for _, check in found.problems] == ["copy of another record"]


@pytest.mark.ci
def test_verses_have_eight_genres_and_a_chapter_each_and_modern_ones_come_from_the_other_end() -> (
    None
):
    old, new = open_source("kjv:3000"), open_source("web:3000")
    assert known_classes("kjv:3000") == GENRES == known_classes("web")
    assert len(set(old.ids)) == len(old.ids) == 3000
    assert not set(old.ids) & set(new.ids)
    counts = Counter(old.labels)
    assert counts.keys() == set(GENRES)
    assert counts.most_common(1)[0][0] == "history"
    assert all(
        verse.rpartition(":")[0] == chapter
        for verse, chapter in zip(old.ids, old.users, strict=True)
    )
    whole = {kind: open_source(kind) for kind in ("kjv", "web")}
    first = {kind: source.read(list(source.ids).index("1:1:1")) for kind, source in whole.items()}
    assert first["kjv"] == b"In the beginning God created the heaven and the earth."
    assert first["web"] == b"In the beginning God created the heavens and the earth."
    assert whole["web"].read(list(whole["web"].ids).index("45:16:25")) == b""
    assert len(whole["kjv"].ids) == 31_102
    with pytest.raises(BadInput, match="name from 1 to as many"):
        open_source("kjv:31103")
