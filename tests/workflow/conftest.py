"""Tiny projects, empty and finished, and a walk over the jobs it would run without running them."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from support import ROOT, Workspace, as_the_ledger_knows, enter, opened_workflow

from dpladder.plan import package as packages
from dpladder.plan.dag import build_dag
from dpladder.plan.plan import make_plan
from dpladder.plan.reuse import questions_to_repeat, under_terms
from dpladder.plan.startup import known_states, open_resolved
from dpladder.privacy.accounting.events import Job
from dpladder.privacy.ledger import book as ledgers

THREE_RUNGS = {
    "sweep": {"rungs": [{"epsilon": epsilon, "trials": 2} for epsilon in (0.1, 0.2, 0.3)]},
    "final": {"targets": [1.0]},
}


@dataclass(frozen=True)
class Walk:
    """What Snakemake would run, and what the ledger would newly charge for it, both as rule:
    jobs."""

    due: Counter[str]
    charged: Counter[str]


@pytest.fixture
def project(tmp_path, monkeypatch) -> Workspace:
    """An empty tiny project; its folder is the working directory."""
    made = Workspace(tmp_path / "project", tmp_path / "home")
    made.create()
    enter(made, monkeypatch)
    return made


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory) -> Workspace:
    """One whole run, made once for all workers of a test session. Never touched: tests work on
    copies."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    made = Workspace(shared / "finished" / "project", shared / "finished" / "home", THREE_RUNGS)
    with open(shared / "finished.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.results.joinpath("privacy.json").is_file():
            made.create()
            made.finish()
    return made


@pytest.fixture
def finished(finished_run, tmp_path, monkeypatch) -> Workspace:
    """A copy of the finished run, its times and Snakemake's memory of it included."""
    copy = Workspace(tmp_path / "project", tmp_path / "home", finished_run.base)
    shutil.copytree(finished_run.folder, copy.folder, symlinks=True)
    shutil.copytree(finished_run.home, copy.home)
    enter(copy, monkeypatch)
    return copy


@pytest.fixture
def walk(parse) -> Callable[..., Walk]:
    """Ask what is due, and what reserving it would charge. Runs nothing."""

    def walked(*targets: str) -> Walk:
        _, found = parse(*targets)
        jobs = [job for one in found for job in as_the_ledger_knows(one)]
        named = {
            Job.of(wildcards.get("experiment", "-"), rule, wildcards) for rule, wildcards in jobs
        }
        return Walk(Counter(rule for rule, _ in jobs), charges(named))

    return walked


@pytest.fixture
def parse() -> Callable[..., tuple[list[Any], list[Any]]]:
    """Parse the workflow in this process, as a dry run does: all its rules, and the jobs that are
    due."""
    return parsed


def parsed(*targets: str, snakefile: Path = ROOT / "Snakefile") -> tuple[list[Any], list[Any]]:
    with opened_workflow(*targets, snakefile=snakefile) as workflow:
        return list(workflow.rules), list(workflow.dag.needrun_jobs(exclude_finished=False))


def charges(jobs: set[Any]) -> Counter[str]:
    """What the ledgers would charge for these jobs, as the reservation at the start of a run
    computes it."""
    project = open_resolved(["config.yaml"])
    dag, states = build_dag(project), under_terms(project, known_states(project))
    plan = make_plan(dag, states)
    charged: Counter[str] = Counter()
    for lineage, terms in plan.terms.items():
        items = [item for item in plan.items_of(lineage) if item.job in jobs]
        new, _ = ledgers.admit(terms, states[lineage], items, questions_to_repeat(dag, items))
        charged.update(item.job.rule for item in new)
    return charged


@pytest.fixture
def package(tmp_path, monkeypatch) -> Iterator[Path]:
    """A copy of the package to edit: digests are taken of it instead of the code that runs."""
    copy = tmp_path / "dpladder"
    shutil.copytree(packages.PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(packages, "PACKAGE", copy)
    packages.digest.cache_clear()
    yield copy
    monkeypatch.undo()
    packages.digest.cache_clear()


@pytest.fixture
def photos(project: Workspace) -> Workspace:
    """Eighty images of two classes, dark and light."""
    random = np.random.default_rng(0)
    for place in range(80):
        folder = Path("photos", ("dark", "light")[place % 2])
        folder.mkdir(parents=True, exist_ok=True)
        pixels = random.integers(0, 128, (12, 14, 3)) + 120 * (place % 2)
        Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{place}.png")
    return project
