"""What config/examples/glue.yaml reads: four of GLUE's tasks, a line of JSON for each of their
records.

    python examples/glue.py GLUE data/glue        # reads GLUE/SST-2/train.tsv and the others,
    writes data/glue/sst2.jsonl ...

GLUE's folders as its archives unpack them; a task whose folder is not there is left out. What they
call dev is the test part here, for the labels of their own test parts are not given away. Two
sentences become one text: between them stands what RoBERTa's tokenizer puts there itself, and reads
as such in any text; --separator says it for other models.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PARTS = {
    "train": "train",
    "dev": "test",
    "dev_matched": "test",
}  # MNLI's other one, dev_mismatched, is a shift


@dataclass(frozen=True)
class Task:
    """Its columns, by the names in the first line of each file."""

    name: str
    folder: str
    texts: tuple[str, ...]
    label: str
    classes: tuple[str, ...]


TASKS = (
    Task("sst2", "SST-2", ("sentence",), "label", ("0", "1")),
    Task("qnli", "QNLI", ("question", "sentence"), "label", ("entailment", "not_entailment")),
    Task("qqp", "QQP", ("question1", "question2"), "is_duplicate", ("0", "1")),
    Task(
        "mnli",
        "MNLI",
        ("sentence1", "sentence2"),
        "gold_label",
        ("entailment", "neutral", "contradiction"),
    ),
)  # fmt: skip


def rows(path: Path) -> Iterator[dict[str, str] | None]:
    """By the names of the columns, and None for a line that has more or fewer of them. Quotes are
    text here, and a line ends at a newline alone: sentences hold other characters that Python takes
    for line ends."""
    with path.open(encoding="utf-8", newline="\n") as file:
        names = next(file, "").rstrip("\r\n").split("\t")
        for line in file:
            cells = line.rstrip("\r\n").split("\t")
            yield dict(zip(names, cells, strict=True)) if len(cells) == len(names) else None


def record(task: Task, row: dict[str, str] | None, separator: str) -> dict[str, str] | None:
    """A text and its label, or None where one of them is missing."""
    if row is None or row.get(task.label) not in task.classes:
        return None
    texts = [row.get(name, "").strip() for name in task.texts]
    return {"text": separator.join(texts), "label": row[task.label]} if all(texts) else None


def write(task: Task, source: Path, target: Path, separator: str) -> str:
    """What was written of a task, in words."""
    told = []
    with (target / f"{task.name}.jsonl").open("w", encoding="utf-8") as file:
        for name, part in PARTS.items():
            path = source / task.folder / f"{name}.tsv"
            found = [record(task, row, separator) for row in rows(path)] if path.is_file() else []
            kept = [one for one in found if one is not None]
            for number, one in enumerate(kept):
                # lineages with the same ids would be the same people
                whole = {"id": f"{task.name} {name} {number}", "split": part, **one}
                file.write(json.dumps(whole, ensure_ascii=False) + "\n")
            if path.is_file():
                told.append(f"{name} {len(kept):,}, broken {len(found) - len(kept):,}")
    return f"{task.name}: {'; '.join(told)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path, help="the folder that holds SST-2, QNLI, QQP, MNLI")
    parser.add_argument("target", type=Path, help="a folder for what is written")
    parser.add_argument(
        "--separator", default="</s></s>", help="between two sentences; [SEP] for BERT and MiniLM"
    )
    given = parser.parse_args()
    given.target.mkdir(parents=True, exist_ok=True)
    for task in TASKS:
        if (given.source / task.folder).is_dir():
            print(write(task, given.source, given.target, given.separator))


if __name__ == "__main__":
    main()
