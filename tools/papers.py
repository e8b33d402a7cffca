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


def lies(name: str, data: Path) -> bool:
    return (data / name).is_dir()


def published(name: str, address: str) -> Need:
    """A data set that torchvision fetches."""
    host = address.split("/")[2]
    return Need(f"{name} (from {host})", partial(fetched, address, CACHE / "dpladder" / name))


def weights(name: str) -> Need:
    folder = CACHE / "huggingface" / "hub" / f"models--{name.replace('/', '--')}"
    return Need(
        f"weights {name} (from huggingface.co)", partial(fetched, "https://huggingface.co", folder)
    )


def by_hand(name: str) -> Need:
    return Need(f"data/{name}", partial(lies, name))


TORONTO = "https://www.cs.toronto.edu/~kriz/cifar.html"
GPU = Need("a GPU", has_gpu)
NEEDS = {
    "GPU": GPU,
    "CIFAR10": published("CIFAR10", TORONTO),
    "CIFAR100": published("CIFAR100", TORONTO),
    "STL10": published("STL10", "https://ai.stanford.edu/~acoates/stl10/"),
    "MNIST": published("MNIST", "https://ossci-datasets.s3.amazonaws.com/mnist/"),
}


def need_of(name: str) -> Need:
    """By its name in the table: data/NAME, one of NEEDS, or public weights."""
    if name.startswith("data/"):
        return by_hand(name.removeprefix("data/"))
    return NEEDS.get(name) or weights(name)


def rows_of_page(page: str) -> Iterator[tuple[str, str, str]]:
    """Of each row of the papers' tables: what it asks, its status, and what was measured."""
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.removeprefix("|").removesuffix("|").split("|")]
        if len(cells) == 5 and not cells[0].startswith(("---", "it asks")):
            yield cells[0], cells[3], cells[4]


def rows_of_table() -> Iterator[Row]:
    asks = [(ask, status) for ask, status, _ in rows_of_page(PAGE.read_text("utf-8"))]
    for key, facts in yaml.safe_load(TABLE.read_text("utf-8")).items():
        yield Row(
            key,
            tuple(ask for ask, status in asks if f"`{key}`" in status),
            tuple(shlex.split(facts["command"])),
            tuple(map(need_of, facts.get("needs", ()))),
            facts.get("shown", ""),
            facts.get("rehearsed", False),
            facts.get("pictures", {}),
        )


ROWS: Sequence[Row] = (*rows_of_table(),)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "keys", nargs="*", metavar="KEY", help="rows to make, by the names that --list shows"
    )
    parser.add_argument("--list", action="store_true", help="print every row, and make none")
    parser.add_argument("--all", action="store_true", help="also those whose figures a page shows")
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument(
        "--folder", type=Path, default=ROOT / "papers", help="where all of it is written"
    )
    parser.add_argument("--data", type=Path, default=ROOT / "data")
    parser.add_argument("--pictures", type=Path, help="where pictures of the page are renewed")
    asked = parser.parse_args()
    known = {row.key: row for row in ROWS}
    if unknown := [key for key in asked.keys if key not in known]:
        parser.error(f"no row is called {', '.join(unknown)}. They are {', '.join(known)}.")
    rows = [known[key] for key in asked.keys] or [
        row for row in ROWS if asked.all or row.status != MEASURED
    ]
    if asked.list:
        print("\n".join(listed(ROWS)))
        return 0
    outcomes = made(rows, asked.folder.absolute(), asked.data.absolute(), asked.cores)
    if asked.pictures:
        shown(outcomes, asked.folder, asked.pictures)
    return any(outcome.state == "failed" for outcome in outcomes)


def shown(outcomes: Sequence[Outcome], folder: Path, pictures: Path) -> None:
    """Copies the pictures of what was made."""
    for row in (outcome.row for outcome in outcomes if outcome.state == "made"):
        for name, made_at in row.pictures.items():
            shutil.copyfile(folder / row.key / made_at, pictures / name)


def listed(rows: Sequence[Row]) -> list[str]:
    """One row's lines after the other's: what it asks, what it needs, its command."""
    lines = []
    for row in rows:
        needs = ", ".join(need.about for need in row.needs) or "PyPI alone"
        lines += [f"{row.key} ({row.status}): {'; '.join(row.asks)}"]
        lines += [f"    needs {needs}", f"    {row.written}"]
    return lines


def made(rows: Sequence[Row], folder: Path, data: Path, cores: int) -> list[Outcome]:
    """All of them in turn; the table is written after each, so that whoever looks sees how far it
    is."""
    outcomes = []
    for number, row in enumerate(rows, 1):
        print(f"{number} of {len(rows)}: {row.key}", flush=True)
        missing = [need.about for need in row.needs if not need.met(data)]
        if missing:
            outcomes.append(Outcome(row, "left out", f"not here: {', '.join(missing)}"))
        else:
            outcomes.append(one(row, folder / row.key, data, cores))
        print(f"    {outcomes[-1].state}: {outcomes[-1].about}", flush=True)
        told(outcomes, folder)
    print(f"{folder / 'papers.md'} has them all")
    return outcomes


def one(row: Row, place: Path, data: Path, cores: int) -> Outcome:
    place.mkdir(parents=True, exist_ok=True)
    if data.is_dir() and not (place / "data").exists():
        (place / "data").symlink_to(data)
    log, start = place / "log.txt", time.monotonic()
    with log.open("w", encoding="utf-8") as file:
        found = subprocess.run(
            command_of(row, cores),
            cwd=place,
            env=environment(place),
            stdout=file,
            stderr=file,
            check=False,
        )
    spent = f"after {time.monotonic() - start:.0f} s"
    if found.returncode:
        return Outcome(row, "failed", f"{spent} with exit code {found.returncode}; {log} says why")
    return Outcome(row, "made", f"{spent}, in {place}")


def command_of(row: Row, cores: int) -> list[str]:
    program, first, *others = row.command
    whole = [
        str(ROOT / word) if word.endswith((".yaml", ".py")) else word for word in (first, *others)
    ]
    if program == "dpladder":
        return [sys.executable, "-m", "dpladder.cli", *whole, "--cores", str(cores)]
    return [sys.executable, *whole]


def environment(place: Path) -> Mapping[str, str]:
    """A home of its own: what one row declares public may be private to another, and limits are for
    life."""
    paths = [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        "DPLADDER_HOME": str(place / "home"),
        "PYTHONPATH": os.pathsep.join(paths),
    }


def told(outcomes: Sequence[Outcome], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["| row | what it asks | state | where, or why |", "|---|---|---|---|"]
    for outcome in outcomes:
        lines += [
            f"| {outcome.row.key} | {'; '.join(outcome.row.asks)} | {outcome.state} | "
            f"{outcome.about} |"
        ]
    (folder / "papers.md").write_text("\n".join([*lines, ""]), "utf-8")


if __name__ == "__main__":
    sys.exit(main())
