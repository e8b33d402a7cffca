"""What the workflow adds to Snakemake's own start: a dry run of everything, and a finished project
run again.

python tests/benchmarks/bench_workflow.py [--rounds 5]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from support import LOCALLY, Workspace

EMPTY = "rule all:\n    input:\n        'Snakefile'\n"
BARS = {"dry run": 0.7, "finished, run again": 1.0}  # seconds more than the empty workflow takes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "Snakefile").write_text(EMPTY, "utf-8")
        new, done = (Workspace(folder / kind, folder / f"{kind}-home") for kind in ("new", "done"))
        new.create()
        done.create()
        done.finish()
        empty = [sys.executable, "-m", "snakemake", "-s", str(folder / "Snakefile"), *LOCALLY]
        runs = {
            "empty, dry run": lambda: seconds([*empty, "-n"], folder),
            "dry run": lambda: seconds(new.command("-n"), new.folder, new),
            "empty": lambda: seconds(empty, folder),
            "finished, run again": lambda: seconds(done.command(), done.folder, done),
        }
        took = medians(runs, rounds)
    for what, empty_one in (("dry run", "empty, dry run"), ("finished, run again", "empty")):
        more = took[what] - took[empty_one]
        print(
            f"{what:20s} {took[what]:5.2f} s   empty {took[empty_one]:5.2f} s   {more:+.2f} s   "
            f"bar +{BARS[what]}"
        )


def medians(runs: dict[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """Taken in turns, so that a busy machine slows them alike."""
    taken = [{what: run() for what, run in runs.items()} for _ in range(rounds)]
    return {what: statistics.median(times[what] for times in taken) for what in runs}


def seconds(command: Sequence[str], folder: Path, project: Workspace | None = None) -> float:
    start = time.perf_counter()
    environment = None if project is None else project.environment()
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
