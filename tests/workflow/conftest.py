"""Tiny projects that Snakemake runs for real, and a walk over the jobs it would run without running them."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from dpladder import code, stages
from dpladder.config import load
from dpladder.config.load import overlay
from dpladder.parse import known_states
from dpladder.privacy import ledger as ledgers
from dpladder.privacy.ledger import Held
from dpladder.privacy.plan import make_plan

ROOT = Path(__file__).parents[2]
TINY: dict[str, Any] = {
    "dataset": {"lineage": "tiny", "source": "npz:data.npz", "nominal_size": 240, "classes": 3},
    "features": {"model": "none", "dtype": "float32"},
    "privacy": {"epsilon": 1.0, "delta": 1e-5, "lifetime": {"epsilon": 8.0}},
    "sweep": {
        "rungs": [{"epsilon": 0.1, "trials": 2}, {"epsilon": 0.2, "trials": 2}],
        "search": {"steps": [2, 8]},
    },
    "fit": {"using": "best"},
    "resources": {"threads": 1},
}
THREE_RUNGS = {
    "sweep": {"rungs": [{"epsilon": epsilon, "trials": 2} for epsilon in (0.1, 0.2, 0.3)]},
    "final": {"targets": [1.0]},
}


def mixture(records: int = 300, seed: int = 0) -> dict[str, np.ndarray]:
    """Three classes of 16 features each, easy enough for a tiny budget."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, records)
    centres = 2.0 * np.random.default_rng(0).normal(size=(3, 16))
    features = centres[labels] + rng.normal(size=(records, 16))
    return {"features": features.astype(np.float32), "labels": labels}


@dataclass(frozen=True)
class Walk:
    """What Snakemake would run, and what the ledger would newly charge for it, both as rule: jobs."""

    due: Counter[str]
    charged: Counter[str]


@dataclass(frozen=True)
class Workspace:
    """A project in a folder of its own, with a home of its own. Its config is `base`, and what a test lays over it."""

    folder: Path
    home: Path
    base: Mapping[str, Any] = field(default_factory=dict)

    @property
    def results(self) -> Path:
        return self.folder / "results"

    def configure(self, *changes: Mapping[str, Any]) -> None:
        values = TINY
        for change in (self.base, *changes):
            values = overlay(values, change)
        (self.folder / "config.yaml").write_text(yaml.safe_dump(values), "utf-8")

    def command(self, *arguments: str) -> list[str]:
        return [
            *(sys.executable, "-m", "snakemake", "-s", str(ROOT / "Snakefile")),
            *("--configfile", "config.yaml", "--workflow-profile", str(ROOT / "profiles/default")),
            *("--cores", "2", *arguments),
        ]

    def environment(self, **more: str) -> dict[str, str]:
        return os.environ | {"DPLADDER_HOME": str(self.home)} | more

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments),
            cwd=self.folder,
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )

    def finish(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A run that must end well."""
        ended = self.run(*arguments)
        logs = "\n".join(log.read_text() for log in (self.folder / "logs").rglob("*.log"))
        assert ended.returncode == 0, f"{ended.stderr}\n{ended.stdout}\n{logs}"
        return ended

    def log(self, name: str) -> str:
        return (self.folder / "logs" / name).read_text("utf-8")

    def held(self) -> list[Held]:
        """Everything that was ever charged, oldest first."""
        state = known_states(load([self.folder / "config.yaml"]))["tiny"]
        return [held for held in state.items.values() if held.status != "REFUNDED"]

    def public_bytes(self) -> dict[str, bytes]:
        """The released files by their place."""
        files = (*self.results.rglob("*.safetensors"), *self.results.rglob("*.json"))
        return {str(path.relative_to(self.results)): path.read_bytes() for path in files}


@pytest.fixture
def project(tmp_path, monkeypatch) -> Workspace:
    """An empty tiny project; its folder is the working directory."""
    made = Workspace(tmp_path / "project", tmp_path / "home")
    made.folder.mkdir()
    np.savez(made.folder / "data.npz", **mixture())
    made.configure()
    enter(made, monkeypatch)
    return made


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory) -> Workspace:
    """One whole run, made once for all workers of a test session. Never touched: tests work on copies."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    made = Workspace(shared / "finished" / "project", shared / "finished" / "home", THREE_RUNGS)
    with open(shared / "finished.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.results.joinpath("privacy.json").is_file():
            made.folder.mkdir(parents=True, exist_ok=True)
            np.savez(made.folder / "data.npz", **mixture())
            made.configure()
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


def enter(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workspace.folder)
    monkeypatch.setenv("DPLADDER_HOME", str(workspace.home))
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))  # a parse sets it: put it back afterwards


@pytest.fixture
def walk(parse) -> Callable[..., Walk]:
    """Ask what is due, and what reserving it would charge. Runs nothing."""

    def walked(*targets: str) -> Walk:
        _, jobs = parse(*targets)
        named = {
            stages.job(job.wildcards.get("experiment", "-"), job.rule.name, job.wildcards) for job in jobs
        }
        return Walk(Counter(job.rule.name for job in jobs), charges(named))

    return walked


@pytest.fixture
def parse() -> Callable[..., tuple[list[Any], list[Any]]]:
    """Parse the workflow in this process, as a dry run does: all its rules, and the jobs that are due."""
    return parsed


def parsed(*targets: str, snakefile: Path = ROOT / "Snakefile") -> tuple[list[Any], list[Any]]:
    from snakemake.api import SnakemakeApi
    from snakemake.settings.enums import Quietness, RerunTrigger
    from snakemake.settings.types import (
        ConfigSettings,
        DAGSettings,
        ExecutionSettings,
        OutputSettings,
        ResourceSettings,
    )

    with SnakemakeApi(OutputSettings(quiet={Quietness.ALL})) as api:
        workflow = api.workflow(
            resource_settings=ResourceSettings(cores=1),
            config_settings=ConfigSettings(configfiles=[Path("config.yaml")]),
            snakefile=snakefile,
            workdir=Path.cwd(),
        )
        triggers = frozenset(RerunTrigger.all()) - {RerunTrigger.CODE}
        dag = workflow.dag(DAGSettings(targets=frozenset(targets), rerun_triggers=triggers))
        dag.execute_workflow(executor="dryrun", execution_settings=ExecutionSettings(lock=False))
        rules = list(workflow._workflow.rules)
        return rules, list(workflow._workflow.dag.needrun_jobs(exclude_finished=False))


def charges(jobs: set[Any]) -> Counter[str]:
    """What the ledgers would charge for these jobs, as the reservation at the start of a run computes it."""
    project = load(["config.yaml"])
    states = known_states(project)
    plan = make_plan(project, states)
    charged: Counter[str] = Counter()
    for lineage, terms in plan.terms.items():
        items = [i for i in plan.items.values() if i.job in jobs and i.spends[0].lineage == lineage]
        new, _ = ledgers.admit(terms, states[lineage], items, project.main.respend)
        charged.update(item.job.rule for item in new)
    return charged


@pytest.fixture
def package(tmp_path, monkeypatch) -> Iterator[Path]:
    """A copy of the package to edit: digests are taken of it instead of the code that runs."""
    copy = tmp_path / "dpladder"
    shutil.copytree(code.PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(code, "PACKAGE", copy)
    forget_digests()
    yield copy
    monkeypatch.undo()
    forget_digests()


def forget_digests() -> None:
    for function in (*vars(code).values(), stages.rule_code):
        if hasattr(function, "cache_clear"):
            function.cache_clear()
