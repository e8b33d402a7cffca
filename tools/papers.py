"""What the papers behind dpladder ask, a command each, and those of them made whose needs are met
here.

python tools/papers.py [KEY ...] [--list] [--all] [--cores 2] [--folder papers] [--data data]
                       [--pictures docs/papers]

Rows are those of docs/reproductions.md. Without keys those are made that no page shows a figure of
yet, with `--all` the others too. `--pictures docs/papers` renews that page's pictures from what was
made. Each is made in a folder and a home of its own, in turn; one that
fails stops none of the others. `--data`: where the folders of images or texts lie that cannot be
fetched. What was made, what was left out and why, and where it lies: papers/papers.md.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
TABLE, PAGE = ROOT / "tools" / "papers.yaml", ROOT / "docs" / "reproductions.md"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
MEASURED, REHEARSED, NOT_RUN = "measured", "rehearsed", "not run"


@dataclass(frozen=True)
class Need:
    """`met`: whether it is there, given the folder of data that cannot be fetched."""

    about: str
    met: Callable[[Path], bool]


@dataclass(frozen=True)
class Row:
    """A row of papers.yaml, which says what each key means. `asks`: the rows of
    docs/reproductions.md that name it, by their first cell."""

    key: str
    asks: tuple[str, ...]
    command: tuple[str, ...]
    needs: tuple[Need, ...] = ()
    shown: str = ""
    rehearsed: bool = False
    pictures: Mapping[str, str] = field(default_factory=dict)

    @property
    def status(self) -> str:
        if self.shown:
            return MEASURED
        return REHEARSED if self.rehearsed else NOT_RUN

    @property
    def configs(self) -> list[Path]:
        return [ROOT / word for word in self.command if word.endswith(".yaml")]

    @property
    def written(self) -> str:
        return " ".join(self.command)


@dataclass(frozen=True)
class Outcome:
    row: Row
    state: str  # made, failed, left out
    about: str


def has_gpu(_: Path) -> bool:
    import torch

    return torch.cuda.is_available()


@cache
def reached(address: str) -> bool:
    try:
        urllib.request.urlopen(urllib.request.Request(address, method="HEAD"), timeout=10).close()
    except urllib.error.HTTPError:
        return True  # whoever refuses is there
    except OSError:
        return False
    return True


def fetched(address: str, folder: Path, _: Path) -> bool:
    """Whether it lies here since an earlier run, or can be had."""
    return (folder.is_dir() and any(folder.iterdir())) or reached(address)


def by_hand(name: str) -> Need:
    return Need(f"data/{name}", lambda data: (data / name).is_dir())


GPU = Need("a GPU", has_gpu)
TORCHVISION = {
    "CIFAR10": "https://www.cs.toronto.edu/~kriz/cifar.html",
    "CIFAR100": "https://www.cs.toronto.edu/~kriz/cifar.html",
    "STL10": "https://ai.stanford.edu/~acoates/stl10/",
}


def need_of(name: str) -> Need:
    """By its name in the table: GPU, data/NAME, a data set of torchvision, or public weights."""
    if name == "GPU":
        return GPU
    if name.startswith("data/"):
        return by_hand(name.removeprefix("data/"))
    if address := TORCHVISION.get(name):
        met = partial(fetched, address, CACHE / "dpladder" / name)
        return Need(f"{name} (from {address.split('/')[2]})", met)
    folder = CACHE / "huggingface" / "hub" / f"models--{name.replace('/', '--')}"
    met = partial(fetched, "https://huggingface.co", folder)
    return Need(f"weights {name} (from huggingface.co)", met)


def rows_of_page(page: str) -> Iterator[tuple[str, str, str]]:
    """Of each row of the papers' tables: what it asks, its status, and what was measured."""
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.removeprefix("|").removesuffix("|").split("|")]
        if len(cells) == 3 and not cells[0].startswith(("---", "it asks")):
            yield cells[0], cells[1], cells[2]


def rows_of_table() -> Iterator[Row]:
    asks = [(ask, status) for ask, status, _ in rows_of_page(PAGE.read_text("utf-8"))]
    for key, facts in yaml.safe_load(TABLE.read_text("utf-8")).items():
        yield Row(
            key,
            tuple(ask for ask, status in asks if f"`{key}`" in status),
            tuple(shlex.split(facts.pop("command"))),
            tuple(map(need_of, facts.pop("needs", ()))),
            **facts,
        )


ROWS: Sequence[Row] = (*rows_of_table(),)


def main() -> int:
    by_key = {row.key: row for row in ROWS}
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("keys", nargs="*", metavar="KEY")
    parser.add_argument("--list", action="store_true", help="print every row, and make none")
    parser.add_argument("--all", action="store_true", help="also those whose figures a page shows")
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--folder", type=Path, default=ROOT / "papers")
    parser.add_argument("--data", type=Path, default=ROOT / "data")
    parser.add_argument("--pictures", type=Path, help="where pictures of the page are renewed")
    options = parser.parse_args()
    if unknown := [key for key in options.keys if key not in by_key]:
        parser.error(f"no row is called {', '.join(unknown)}. They are {', '.join(by_key)}.")
    if options.list:
        for row in ROWS:
            needs = ", ".join(need.about for need in row.needs) or "PyPI alone"
            print(f"{row.key} ({row.status}): {'; '.join(row.asks)}")
            print(f"    needs {needs}\n    {row.written}")
        return 0
    rows = [by_key[key] for key in options.keys] or [
        row for row in ROWS if options.all or row.status != MEASURED
    ]
    outcomes = make_rows(rows, options.folder.absolute(), options.data.absolute(), options.cores)
    if options.pictures:
        copy_pictures(outcomes, options.folder, options.pictures)
    return any(outcome.state == "failed" for outcome in outcomes)


def copy_pictures(outcomes: Sequence[Outcome], folder: Path, pictures: Path) -> None:
    for row in (outcome.row for outcome in outcomes if outcome.state == "made"):
        for name, source in row.pictures.items():
            shutil.copyfile(folder / row.key / source, pictures / name)


def make_rows(rows: Sequence[Row], folder: Path, data: Path, cores: int) -> list[Outcome]:
    """All of them in turn; the table is written after each, so that whoever looks sees how far it
    is."""
    outcomes = []
    lines = ["| row | what it asks | state | where, or why |", "|---|---|---|---|"]
    folder.mkdir(parents=True, exist_ok=True)
    for number, row in enumerate(rows, 1):
        print(f"{number} of {len(rows)}: {row.key}", flush=True)
        missing = [need.about for need in row.needs if not need.met(data)]
        if missing:
            outcome = Outcome(row, "left out", f"not here: {', '.join(missing)}")
        else:
            outcome = make_row(row, folder / row.key, data, cores)
        print(f"    {outcome.state}: {outcome.about}", flush=True)
        lines.append(f"| {row.key} | {'; '.join(row.asks)} | {outcome.state} | {outcome.about} |")
        (folder / "papers.md").write_text("\n".join([*lines, ""]), "utf-8")
        outcomes.append(outcome)
    print(f"{folder / 'papers.md'} has them all")
    return outcomes


def make_row(row: Row, place: Path, data: Path, cores: int) -> Outcome:
    """In a home of its own: what one row declares public may be private to another, and limits are
    for life."""
    place.mkdir(parents=True, exist_ok=True)
    if data.is_dir() and not (place / "data").exists():
        (place / "data").symlink_to(data)
    paths = [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = os.environ | {
        "DPLADDER_HOME": str(place / "home"),
        "PYTHONPATH": os.pathsep.join(paths),
    }
    command, log, start = command_of(row, cores), place / "log.txt", time.monotonic()
    with log.open("w", encoding="utf-8") as file:
        code = subprocess.run(
            command, cwd=place, env=env, stdout=file, stderr=file, check=False
        ).returncode
    spent = f"after {time.monotonic() - start:.0f} s"
    if code:
        return Outcome(row, "failed", f"{spent} with exit code {code}; {log} says why")
    return Outcome(row, "made", f"{spent}, in {place}")


def command_of(row: Row, cores: int) -> list[str]:
    program, *words = row.command
    whole = [str(ROOT / word) if word.endswith((".yaml", ".py")) else word for word in words]
    if program == "dpladder":
        return [sys.executable, "-m", "dpladder", *whole, "--cores", str(cores)]
    return [sys.executable, *whole]


if __name__ == "__main__":
    sys.exit(main())
