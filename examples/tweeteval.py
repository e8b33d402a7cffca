"""Tweets by what they are, a line of JSON for each: two tasks of TweetEval (Barbieri et al. 2020).

    python examples/tweeteval.py TWEETEVAL data/tweeteval   # reads TWEETEVAL/datasets/offensive and
    emoji, writes data/tweeteval/offensive.jsonl and emoji.jsonl

TWEETEVAL is a clone of https://github.com/cardiffnlp/tweeteval. Its train part comes first, then
its test part without tweets that came before; its validation part is left out.
"""

import argparse
import json
from pathlib import Path

TASKS = ("offensive", "emoji")


def write(task: str, folder: Path, target: Path) -> str:
    """What was written of a task, in words."""
    told, before = [], set()
    with (target / f"{task}.jsonl").open("w", encoding="utf-8") as file:
        for part in ("train", "test"):
            texts, labels = (
                # a tweet may hold other line ends
                (folder / f"{part}_{what}.txt").read_bytes().decode("utf-8").split("\n")
                for what in ("text", "labels")
            )
            count = 0
            for number, (text, label) in enumerate(zip(texts, labels, strict=True)):
                if not label.strip() or text in before:  # the last line; a tweet that came before
                    continue
                before.add(text)
                one = {"id": f"{task} {part} {number}", "split": part, "text": text.strip()}
                file.write(json.dumps(one | {"label": label.strip()}, ensure_ascii=False) + "\n")
                count += 1
            told.append(f"{part} {count:,}")
    return f"{task}: {', '.join(told)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path, help="a clone of TweetEval")
    parser.add_argument("target", type=Path, help="a folder for what is written")
    given = parser.parse_args()
    given.target.mkdir(parents=True, exist_ok=True)
    for task in TASKS:
        folder = given.source / "datasets" / task
        if folder.is_dir():
            print(write(task, folder, given.target))


if __name__ == "__main__":
    main()
