"""What a thousand trials and two hundred shards cost before any of them runs, what a hundred
experiments do, and what a table of millions of rows does.
Run: python tests/benchmarks/bench_scale.py

A table of 20 numbers and 4 words is prepared and its features are extracted, in processes of their
own. Their processor time is compared with that of pandas, which reads the same file beside them
(the median of three reads), and with one keyed hash of each line. Aims: 12 times pandas, and as
much memory for --rows 10000000, which needs 8 GB of disk, as for --rows 1000000. --rows alone skips
the rest; --whole adds the whole workflow, with numbers as lines and as the plan has them.

Parsing is measured against an empty workflow in the same run. The wall clock of the whole is a
model: its inputs are printed with it, and the measured ones are replaced by yours on the command
line.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from hashlib import blake2b
from math import ceil
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
import yaml

sys.path.insert(0, str(Path(__file__).parents[1]))
from support import commit

from dpladder.config import Config
from dpladder.data.extract import extract
from dpladder.data.prepare import Keys, prepare
from dpladder.privacy.accounting.events import Gaussian, Job, Partition, Spend
from dpladder.privacy.ledger.book import Ledger, finish, load, open_ledger, reserve
from dpladder.privacy.ledger.home import open_home
from dpladder.privacy.ledger.state import Item, Terms
from dpladder.section import from_document

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
PIECE = 250_000  # rows of a table that are made at a time
PANDAS = "pandas reads it"
OF_A_RUN = ("prepare_dataset", "extract_features, both parts")
KEYS = Keys(b"u" * 32, b"c" * 32, b"k" * 32)
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
    done = sum(charge.status == "DONE" for charge in load(ledger).charges.values())
    assert done == committers, f"{committers - done} lost"
    seconds = time.perf_counter() - start
    print(f"{committers} processes commit and finish at once, none lost: {seconds:.1f} s")


def write_table(path: Path, rows: int) -> None:
    """A table of two classes, of 20 numbers and 4 words, in pieces."""
    random, words = np.random.default_rng(0), np.array(["red", "green", "blue", "black"])
    for start in range(0, rows, PIECE):
        count = min(PIECE, rows - start)
        label = random.integers(0, 2, count)
        shift = 0.3 * label[:, None] * (np.arange(20) < 5)
        numbers = np.round(random.normal(size=(count, 20)) + shift, 6)
        table = pd.DataFrame(numbers, columns=[f"x{place}" for place in range(20)])
        for place in range(4):
            table[f"w{place}"] = words[random.integers(0, 4, count)]
        table["label"] = np.array(["well", "ill"])[label]
        table.to_csv(path, mode="a", index=False, header=not start)


def table_config(path: Path) -> Config:
    return from_document(Config, table_document(path, 1000))


def table_document(path: Path, nominal_size: int) -> dict[str, Any]:
    levels = ["red", "green", "blue", "black"]
    columns: list[Any] = [{"name": f"x{place}", "range": [-4, 4]} for place in range(20)]
    columns += [{"name": f"w{place}", "levels": levels} for place in range(4)]
    dataset = {"lineage": "scale", "source": f"csv:{path}", "nominal_size": nominal_size}
    dataset |= {"classes": ["well", "ill"], "columns": columns}
    sections = {"dataset": dataset, "features": {"model": "none"}}
    return sections | {"privacy": {"epsilon": 1.0, "delta": 1e-7}}


def read_by_pandas(path: Path) -> None:
    pd.read_csv(path)


def hash_lines(path: Path) -> None:
    """The least that an identity of each row costs."""
    begun = blake2b(key=b"k" * 32)
    with path.open("rb") as file:
        for line in file:
            digest = begun.copy()
            digest.update(line)
            digest.digest()


def prepare_table(path: Path) -> None:
    prepare(table_config(path).dataset, KEYS, path.with_name("m.h5"), path.with_name("p.jsonl"))


def extract_table(path: Path) -> None:
    """Both parts, as two jobs do."""
    root = path.with_name("root")
    root.mkdir(mode=0o700)
    for part in ("train", "test"):
        extract(
            path.with_name("m.h5"),
            table_config(path).features,
            part,
            path.with_name(f"{part}.h5"),
            path.with_name(f"{part}.jsonl"),
            root=root,
            units_key=KEYS.units,
            cache_key=KEYS.cache,
        )


def measured(work: Callable[[Path], None], path: Path) -> tuple[float, float]:
    """Processor seconds of some work in a process of its own, and the most memory that it had, in
    MB."""
    receiving, sending = get_context("fork").Pipe(duplex=False)

    def run() -> None:
        begun = time.process_time()
        work(path)
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        sending.send((time.process_time() - begun, most))

    worker = get_context("fork").Process(target=run)
    worker.start()
    worker.join()
    assert worker.exitcode == 0, f"{work.__name__} failed"
    found: tuple[float, float] = receiving.recv()
    return found


def tables(rows: int, whole: bool) -> None:
    """Time a table of so many rows against pandas and against hashing alone."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        write_table(path, rows)
        print(f"a table of {rows:,} rows, {path.stat().st_size / 1e6:,.0f} MB")
        base = measured(lambda path: None, path)[1]
        found = {
            name: measured(work, path)
            for name, work in (
                (PANDAS, read_by_pandas),
                ("a keyed hash of each line", hash_lines),
                ("prepare_dataset", prepare_table),
                ("extract_features, both parts", extract_table),
            )
        }
        again = [measured(read_by_pandas, path) for _ in range(2)]
        found[PANDAS] = sorted([found[PANDAS], *again])[1]
        floor, _ = found[PANDAS]
        for name, (used, most) in found.items():
            print(
                f"{name:30}{used:8.1f} s{used / floor:7.1f} times pandas{most:8,.0f} MB, "
                f"{most - base:,.0f} of them its own"
            )
        used = sum(seconds for name, (seconds, _) in found.items() if name in OF_A_RUN)
        print(f"both jobs: {used / floor:.1f} times pandas, {1e6 * used / rows:.1f} us a row")
        for curves in (0, "auto") if whole else ():
            run_whole(path, curves)


def run_whole(path: Path, curves: int | str) -> None:
    """The whole workflow at epsilon = 1, and what each of its private jobs took."""
    folder, rows = path.with_name(f"curves-{curves}"), sum(1 for _ in path.open("rb")) - 1
    folder.mkdir()
    config = table_document(path, rows * 4 // 5)
    config["features"]["curves"] = curves
    (folder / "config.yaml").write_text(yaml.safe_dump(config), "utf-8")
    begun, used = time.perf_counter(), os.times()
    words = "--configfile config.yaml --cores 2 --workflow-profile none"
    # jobs that may not keep what Python compiled would compile all of PyTorch's sources each time
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(
        [sys.executable, "-m", "snakemake", "-s", str(ROOT / "Snakefile"), *words.split()],
        cwd=folder,
        env=kept | {"DPLADDER_HOME": str(folder / "home")},
        capture_output=True,
        check=True,
    )
    wall, now = time.perf_counter() - begun, os.times()
    cpu = sum(now[2:4]) - sum(used[2:4])
    print(f"features.curves: {curves}: the whole run {wall:.0f} s, {cpu:.0f} s of processor time")
    print("jobs in seconds and MB:")
    print(*(file.read_text() for file in folder.rglob("time-and-memory.tsv")), sep="")


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
    parser.add_argument("--rows", type=int, help="of a table; nothing else is timed then")
    parser.add_argument("--whole", action="store_true", help="run the workflow on these rows, too")
    parser.add_argument("--committers", type=int, default=200, help="processes that commit at once")
    return parser.parse_args()


def main() -> None:
    times = arguments()
    committers, rows, whole = (vars(times).pop(name) for name in ("committers", "rows", "whole"))
    if rows is not None:
        tables(rows, whole)
        return
    with tempfile.TemporaryDirectory() as folder:
        parse(Path(folder), HUNDRED)
        model(parse(Path(folder), CONFIG), times)
    with tempfile.TemporaryDirectory() as folder:
        compete(Path(folder), committers)


if __name__ == "__main__":
    main()
