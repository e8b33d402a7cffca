"""What a run takes beside its jobs' work: a small fit, the same by Snakemake alone, and the demo.
Run: python tests/benchmarks/bench_overhead.py [--rounds 3] [--no-demo]

A table of 5,000 x 8 numbers. Each round runs every way once, one right after the other, in a home
and a folder of its own. Medians are told, and the work is what private jobs note of themselves, as
new Pythons do it under `snakemake`. The path is the longest one through their inputs. Aims: `fit`
at most twice the work; the demo 1.15 times its path; a dry run, and one with nothing to do, 2 s.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from dpladder.jobs.task import COSTS
from dpladder.plan.installation import DEMO

OF_DEMO = "work of the demo"
CORES = ("--cores", "2")
TAKE_OVER_ORPHANS = 36  # PR_SET_CHILD_SUBREAPER of Linux
ROOT = Path(__file__).parents[2]
FIT = """
import numpy as np
from dpladder import PrivateClassifier
random = np.random.default_rng(0)
X = random.normal(size=(5_000, 8))
y = (X @ random.normal(size=8) + random.normal(size=5_000) > 0).astype(int)
model = PrivateClassifier(
    1.0, lineage="small", nominal_size=4_000, classes=[0, 1], bounds=([-4] * 8, [4] * 8),
    project=".",
)
import time; begun = time.perf_counter()
model.fit(X, y)
print(time.perf_counter() - begun)
"""
# jobs that may not keep what Python compiled would compile all of PyTorch's sources each time
KEPT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def said(folder: Path, *command: str) -> str:
    """What a command prints that ends well, in a folder that is its project and holds its home."""
    folder.mkdir(exist_ok=True)
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=KEPT | {"DPLADDER_HOME": str(folder / "home")},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
    ).stdout


def seconds(folder: Path, *command: str) -> tuple[float, float]:
    """By the clock, and of the processor, for a command and all that it started."""
    before, begun = processor_time(), time.perf_counter()
    said(folder, *command)
    return time.perf_counter() - begun, processor_time() - before


def processor_time() -> float:
    """That of all processes below this one, which takes over those that nobody waited for."""
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def by_snakemake(config: str) -> list[str]:
    profile = str(ROOT / "workflow" / "profiles" / "default")
    where = ["--snakefile", str(ROOT / "Snakefile"), "--workflow-profile", profile, *CORES]
    return ["-m", "snakemake", *where, "--configfile", config]


def by_dpladder(*arguments: str) -> list[str]:
    return ["-m", "dpladder", "run", *arguments, *CORES]


def work_in(folder: Path) -> float:
    """The seconds of all private jobs."""
    lines = [line for file in folder.rglob(COSTS) for line in file.read_text().splitlines()]
    return sum(float(line.split("\t")[1]) for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-demo", dest="demo", action="store_false")
    asked = parser.parse_args()
    times: dict[str, list[float]] = {}

    def note(name: str, spent: float) -> None:
        times.setdefault(name, []).append(spent)

    ctypes.CDLL(None).prctl(TAKE_OVER_ORPHANS, 1)
    with tempfile.TemporaryDirectory() as made:
        for number in range(asked.rounds):
            fitted, alone, again = (
                Path(made, f"{kind}{number}") for kind in ("fit", "snake", "run")
            )
            note("fit", float(said(fitted, "-c", FIT).splitlines()[-1]))
            for other in (alone, again):
                other.mkdir()
                for name in ("config.yaml", "data"):
                    subprocess.run(["cp", "-r", fitted / name, other], check=True)
            for name, folder, command in (
                ("snakemake", alone, by_snakemake("config.yaml")),
                ("run", again, by_dpladder()),
                ("dry run", again, by_dpladder("-n")),
                ("nothing to do", again, by_dpladder()),
            ):
                for kind, spent in zip(
                    (name, f"{name}, CPU"), seconds(folder, *command), strict=True
                ):
                    note(kind, spent)
            note("work", work_in(alone))
            note("work in forks", work_in(again))
            if asked.demo:
                folder = Path(made, f"demo{number}")
                note("demo", seconds(folder, *by_dpladder(str(DEMO)))[0])
                note(OF_DEMO, work_in(folder))
    typical = {name: median(values) for name, values in times.items()}
    print(*(f"{name:18} {spent:6.2f} s" for name, spent in typical.items()), sep="\n")
    for name in ("fit", "run", "snakemake"):
        print(f"{name}: {typical[name] / typical['work']:.2f} times the work")
    for kind in ("", ", CPU"):
        name = f"snakemake{kind}"
        print(f"run{kind}: {typical[f'run{kind}'] / typical[name]:.2f} times {name}")
    if asked.demo:
        print(f"demo: {typical['demo'] / typical[OF_DEMO]:.2f} times its work")


if __name__ == "__main__":
    main()
