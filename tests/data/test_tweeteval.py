"""examples/tweeteval.py: TweetEval's own files, of small size."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from support import ROOT

from dpladder.data.datasets import open_source


def test_tweets_are_records_by_their_lines_and_none_stands_in_both_parts(tmp_path: Path) -> None:
    folder = tmp_path / "TWEETEVAL" / "datasets" / "offensive"
    folder.mkdir(parents=True)
    parts = {
        "train": (["good\u2028day", "bad day", "bad day"], [0, 1, 1]),
        "test": (["bad day", "fine"], [1, 0]),
    }
    for part, (texts, labels) in parts.items():
        (folder / f"{part}_text.txt").write_text("".join(f"{text} \n" for text in texts), "utf-8")
        (folder / f"{part}_labels.txt").write_text("".join(f"{label}\n" for label in labels))
    told = subprocess.run(
        [sys.executable, ROOT / "examples" / "tweeteval.py", tmp_path / "TWEETEVAL", tmp_path],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert told == "offensive: train 2, test 1\n"
    lines = (tmp_path / "offensive.jsonl").read_text("utf-8").split("\n")[:-1]
    assert [json.loads(line)["split"] for line in lines] == ["train", "train", "test"]
    source = open_source(f"jsonl:{tmp_path / 'offensive.jsonl'}")
    assert [source.read(row) for row in range(3)] == [
        "good\u2028day".encode(),
        b"bad day",
        b"fine",
    ]
    assert [*source.labels] == ["0", "1", "0"]
