"""What a thousand trials and two hundred shards cost before any of them runs, and what a hundred
experiments do. Run: python tests/benchmarks/bench_scale.py

Parsing is measured against an empty workflow in the same run. The wall clock of the whole is a
model: its inputs are printed with it, and the measured ones are replaced by yours on the command
line.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from math import ceil
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).parents[1]))
from support import commit

from dpladder.privacy.accounting.events import Gaussian, Job, Partition, Spend
from dpladder.privacy.ledger.book import Ledger, finish, load, open_ledger, reserve
from dpladder.privacy.ledger.home import open_home
from dpladder.privacy.ledger.state import Item, Terms

ROOT = Path(__file__).parents[2]
TRIALS, SHARDS, ROUNDS = 500, 100, 3  # trials of each of two rungs, shards of each of two parts
CONFIG = {
    "dataset": {
        "lineage": "scale",
        "source": "npz:data.npz",
        "nominal_size": 2_000_000,
        "classes": 10,
    },
    "features": {"model": "none", "shards": SHARDS},
    "privacy": {"epsilon": 1.0, "delta": 1e-7, "lifetime": {"epsilon": 8.0}},
    "sweep": {
        "rungs": [{"epsilon": epsilon, "trials": TRIALS} for epsilon in (0.01, 0.02)],
        "together": False,
    },
}
HUNDRED = CONFIG | {
    "features": {"model": "none"},
    "privacy": {"epsilon": 1.0, "delta": 1e-7, "lifetime": {"epsilon": 80.0}},
    "sweep": {"rungs": [{"epsilon": epsilon, "trials": 3} for epsilon in (0.01, 0.02)]},
    "experiments": {f"clip-{number}": {"learner": {"clip": number}} for number in range(2, 102)},
}
EMPTY = "rule all:\n"
TERMS = Terms("bench", "add_remove", "record", 1, 1e-5, "hash", 1e3)


def dry_run(folder: Path, *options: str) -> str:
    command = [sys.executable, "-m", "snakemake", "-n", "--workflow-profile", "none", *options]
    home = os.environ | {"DPLADDER_HOME": str(folder / "home")}
    return subprocess.run(
        command, cwd=folder, env=home, capture_output=True, text=True, check=True
    ).stdout


def job_counts(said: str) -> dict[str, int]:
    """Jobs by rule, from the table that Snakemake prints."""
    return {rule: int(count) for rule, count in re.findall(r"^(\w+) +(\d+)$", said, re.MULTILINE)}


def seconds(folder: Path, *options: str) -> tuple[float, float]:
    """Wall and processor time of one dry run."""
    wall, cpu = time.perf_counter(), os.times()
    dry_run(folder, *options)
    used = os.times()
    return (
        time.perf_counter() - wall,
        used.children_user + used.children_system - cpu.children_user - cpu.children_system,
    )


def parse(folder: Path, config: dict[str, Any]) -> dict[str, int]:
    """Time dry runs of a large DAG and of an empty workflow in turn; the jobs of the large one
    come back."""
    (folder / "config.yaml").write_text(yaml.safe_dump(config), "utf-8")
    (folder / "data.npz").touch()
    (folder / "Snakefile").write_text(EMPTY, "utf-8")
    large = ("-s", str(ROOT / "Snakefile"), "--configfile", "config.yaml", "--scheduler", "greedy")
    rounds = [(seconds(folder), seconds(folder, *large)) for _ in range(ROUNDS)]
    counts = job_counts(dry_run(folder, *large))
    jobs = counts.pop("total")
    for clock, unit in enumerate(("s", "s of processor time")):
        empty, whole = (median(each[clock] for each in side) for side in zip(*rounds, strict=True))
        print(
            f"snakemake -n: empty {empty:.1f}, {jobs:,} jobs {whole:.1f}: {whole - empty:.1f} "
            f"{unit} more"
        )
    return counts


def model(counts: dict[str, int], times: argparse.Namespace) -> None:
    """Equal jobs in waves of as many as there are workers; each level of the DAG ends with a wait
    for the status check."""
    levels = [
        (counts["prepare_dataset"], times.prepare),
        (counts["extract_features"], times.shard),
        (counts["merge_features"], times.merge),
        (
            counts["run_trial"],
            times.trial,
        ),  # rungs wait for each other only where draws start from the rung below
        (counts["train_final"], times.final),  # evaluated in the same job
    ]
    print(
        f"jobs submitted: {sum(jobs for jobs, _ in levels):,}; beside Snakemake: the other "
        f"{local(counts)}"
    )
    print(
        "model of the wall clock, from",
        ", ".join(f"{name} {value:g} s" for name, value in vars(times).items()),
    )
    for workers in (1, 4, 16, 64, 256):
        wall = sum(
            ceil(jobs / workers) * (times.start + work) + times.poll for jobs, work in levels
        )
        print(f"  {workers:4d} workers {wall / 3600:7.2f} h")


def local(counts: dict[str, int]) -> int:
    remote = (
        "prepare_dataset",
        "extract_features",
        "merge_features",
        "run_trial",
        "train_final",
        "evaluate",
    )
    return sum(jobs for rule, jobs in counts.items() if rule not in remote)


def whole_life(ledger: Ledger, token: str, item: Item) -> None:
    charge = commit(ledger, token, f"query {token}", item.spends)
    finish(ledger, charge.token, "output")


def compete(folder: Path, committers: int) -> None:
    """Commit and finish in as many processes at once."""
    ledger = open_ledger(open_home(folder), TERMS)
    spend = Spend("bench", "add_remove", Partition("hash", ("train",)), Gaussian(1e3))
    jobs = [Job("main", "run_trial", (("trial", str(trial)),)) for trial in range(committers)]
    items = [Item(job, str(job), (spend,)) for job in jobs]
    fork = get_context("fork")
    workers = [
        fork.Process(target=whole_life, args=(ledger, charge.token, item))
        for item, charge in zip(items, reserve(ledger, items), strict=True)
    ]
    start = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    done = sum(charge.status == "DONE" for charge in load(ledger).items.values())
    assert done == committers, f"{committers - done} lost"
    seconds = time.perf_counter() - start
    print(f"{committers} processes commit and finish at once, none lost: {seconds:.1f} s")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument(
        "--start", type=float, default=8, help="a job's own start: SLURM, two Snakemakes, imports"
    )
    parser.add_argument("--poll", type=float, default=20, help="seconds between status checks")
    parser.add_argument("--prepare", type=float, default=60, help="hashing every record once")
    parser.add_argument(
        "--shard", type=float, default=120, help="20,000 images at 96 px on two cores"
    )
    parser.add_argument("--merge", type=float, default=60, help="copying all shards into one file")
    parser.add_argument(
        "--trial", type=float, default=60, help="one private training and its score"
    )
    parser.add_argument(
        "--final", type=float, default=60, help="the final training and its evaluation"
    )
    parser.add_argument("--committers", type=int, default=200, help="processes that commit at once")
    return parser.parse_args()


def main() -> None:
    times = arguments()
    committers = vars(times).pop("committers")
    with tempfile.TemporaryDirectory() as folder:
        parse(Path(folder), HUNDRED)
        model(parse(Path(folder), CONFIG), times)
    with tempfile.TemporaryDirectory() as folder:
        compete(Path(folder), committers)


if __name__ == "__main__":
    main()
