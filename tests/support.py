"""What tests share: tiny projects that Snakemake runs for real, and draws that fit a charge."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from dpladder.commands.follow import follows
from dpladder.config import Project
from dpladder.config.load import load, overlay
from dpladder.data.rows import Rows
from dpladder.plan.dag import build_dag
from dpladder.plan.node import Node
from dpladder.plan.resolve import resolve_defaults
from dpladder.plan.rules import rung_of
from dpladder.plan.startup import known_states
from dpladder.privacy.accounting.draws import Draw, Shape, gaussian
from dpladder.privacy.accounting.events import (
    Booked,
    Composed,
    Event,
    Exponential,
    Gaussian,
    Job,
    Laplace,
    RepeatAndSelect,
    Sampled,
    Spend,
    SubsetSelect,
    mu,
)
from dpladder.privacy.ledger import book
from dpladder.privacy.ledger.book import Ledger
from dpladder.privacy.ledger.state import LedgerCharge
from dpladder.privacy.release.grid import Noise
from dpladder.privacy.release.meter import Meter
from dpladder.privacy.release.store import Question, Work, release_together
from dpladder_audit.engine.findings import Report

ROOT = Path(__file__).parents[1]
TINY: dict[str, Any] = {
    "dataset": {
        "lineage": "tiny",
        "source": "npz:data.npz",
        "nominal_size": 240,
        "classes": 3,
        "census": None,  # of so few units it tells nothing
    },
    "features": {"model": "none", "dtype": "float32"},
    "privacy": {"epsilon": 1.0, "delta": 1e-5, "lifetime": {"epsilon": 8.0}},
    "sweep": {
        "rungs": [{"epsilon": 0.1, "trials": 2}, {"epsilon": 0.2, "trials": 2}],
        "search": {"steps": [2, 8]},
    },
    "fit": {"using": "best"},
    "resources": {"threads": 1},
}
LOCALLY = ("--workflow-profile", str(ROOT / "profiles/default"), "--cores", "2")

CONFIG = Path(__file__).parents[1] / "config" / "config.yaml"
DEMO: dict[str, Any] = yaml.safe_load(CONFIG.read_text("utf-8"))


def mixture(records: int = 300, seed: int = 0) -> dict[str, np.ndarray]:
    """Three classes of 16 features each, easy enough for a tiny budget."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, records)
    centres = 2.0 * np.random.default_rng(0).normal(size=(3, 16))
    features = centres[labels] + rng.normal(size=(records, 16))
    return {"features": features.astype(np.float32), "labels": labels}


def write_ill_or_well(path: Path, slopes: Sequence[float], constant: float = 0.0) -> np.ndarray:
    """A table of 6,000 people with three numbers a, b and c, of whom some are ill: with log-odds
    of `slopes` times their numbers, and a constant.

    Returns:
        Each one's probability.
    """
    random = np.random.default_rng(0)
    rows = random.uniform(-1, 1, (6000, 3))
    chances: np.ndarray = 1.0 / (1.0 + np.exp(-rows @ np.array(slopes) - constant))
    labels = np.where(random.random(6000) < chances, "ill", "well")
    pd.DataFrame(rows.round(6), columns=["a", "b", "c"]).assign(label=labels).to_csv(
        path, index=False
    )
    return chances


def release(
    ledger: Ledger,
    job: Job,
    question: str,
    query: str,
    spends: Sequence[Spend],
    draws: Sequence[Draw],
    produce: Callable[[Meter, Path], None],
    outputs: Mapping[str, Path],
    seed: int | None = None,
    ready: Callable[[], None] | None = None,
) -> LedgerCharge:
    """The charge behind one question's answer."""

    def alone(works: Sequence[Work]) -> None:
        for work in works:
            produce(work.meter, work.folder)

    asked = Question(job, question, query, spends, draws, outputs)
    [charge] = release_together(ledger, [asked], alone, seed, ready)
    return charge


@dataclass(frozen=True)
class Workspace:
    """A project in a folder of its own, with a home of its own. Its config is `base`, and what a
    test lays over it."""

    folder: Path
    home: Path
    base: Mapping[str, Any] = field(default_factory=dict)
    options: tuple[str, ...] = LOCALLY
    patience: float = 900

    @property
    def results(self) -> Path:
        return self.folder / "results"

    def create(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        np.savez(self.folder / "data.npz", **mixture())
        self.configure()

    def configure(self, *changes: Mapping[str, Any]) -> None:
        values = TINY
        for change in (self.base, *changes):
            values = overlay(values, change)
        (self.folder / "config.yaml").write_text(yaml.safe_dump(values), "utf-8")

    def command(self, *arguments: str) -> list[str]:
        local = self.options == LOCALLY and follows(arguments)
        module = "dpladder.commands.worker" if local else "snakemake"
        return [
            *(sys.executable, "-m", module, "-s", str(ROOT / "Snakefile")),
            *("--configfile", "config.yaml", *self.options, *arguments),
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
            timeout=self.patience,
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

    def held(self) -> list[LedgerCharge]:
        """Everything that was ever charged, oldest first, lineage by lineage."""
        states = known_states(resolve_defaults(load([self.folder / "config.yaml"])))
        return [
            held
            for state in states.values()
            for held in state.charges.values()
            if held.status != "REFUNDED"
        ]

    def public_bytes(self) -> dict[str, bytes]:
        """The released files by their place."""
        files = (*self.results.rglob("*.safetensors"), *self.results.rglob("*.json"))
        return {str(path.relative_to(self.results)): path.read_bytes() for path in files}


@contextmanager
def opened_workflow(
    *targets: str, snakefile: Path = ROOT / "Snakefile", **graph: Any
) -> Iterator[Any]:
    """Snakemake's own workflow, parsed in this process as a dry run parses it, and with its DAG."""
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
        asked = DAGSettings(targets=frozenset(targets), rerun_triggers=triggers, **graph)
        workflow.dag(asked).execute_workflow(
            executor="dryrun", execution_settings=ExecutionSettings(lock=False)
        )
        yield workflow._workflow


def enter(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workspace.folder)
    monkeypatch.setenv("DPLADDER_HOME", str(workspace.home))
    # A parse sets it: put it back afterwards. Bugs are planted in a copy that it names.
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", str(ROOT / "src")))


def wait_until(holds: Callable[[], object], seconds: float = 240) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"waited {seconds} s in vain"
        time.sleep(0.1)


def noise_for(spends: Iterable[Spend]) -> tuple[Draw, ...]:
    """Draws that cost exactly what some spends charge."""
    draws: list[Draw] = []
    for place, spend in enumerate(spends):
        draws += _noise_of(f"noise {place}", spend.event, spend.count)
    return tuple(draws)


def _noise_of(name: str, event: Event, count: int) -> list[Draw]:
    match event:
        case Gaussian(sigma):
            return [gaussian(name, sigma, 1.0, count=count)]
        case Laplace(scale):
            return [Draw(name, "laplace", scale, count=count, sensitivity=1.0)]
        case Sampled(probability, Gaussian(sigma)):
            mask = Draw(f"{name} sample", "mask", probability, count=count)
            return [mask, gaussian(name, sigma, 1.0, count=count, under=mask.name, entering=0.5)]
        case Exponential(epsilon):
            return [Draw(name, "laplace", 1.0 / epsilon, (count,), sensitivity=1.0, under="rounds")]
        case RepeatAndSelect(inner, mean, shape, limit):
            within = Draw(name, "within", sensitivity=mu(inner) or 0.0, under=f"{name} runs")
            runs = Draw(f"{name} runs", "uniform", law=(mean, shape, limit or 20))
            return [runs, within] * count
        case SubsetSelect(probability, tuning, final):
            subset = Draw(f"{name} subset", "mask", probability, count=count)
            return [
                subset,
                *_noise_of(name, tuning, count),
                *_noise_of(f"{name} final", final, count),
            ]
        case Composed(events) | Booked(events):
            return [
                draw
                for i, e in enumerate(events)
                for draw in _noise_of(f"{name}.{i}", e.event, e.count * count)
            ]
    return []


def commit(
    ledger: Ledger,
    token: str,
    query: str,
    spends: Iterable[Spend],
    draws: Sequence[Draw] | None = None,
) -> LedgerCharge:
    """The ledger's own, with draws that fit the spends where a test has none to say."""
    spends = tuple(spends)
    return book.commit(ledger, token, query, spends, noise_for(spends) if draws is None else draws)


class SumsInMemory:
    """What trainings share, without its file: sums by the names of their queries."""

    def __init__(self, **sums: Any) -> None:
        self.sums = sums

    def find(self, query: Any, place: int) -> tuple[Any, float] | None:
        return (self.sums[query.name], 1.0) if query.name in self.sums else None


class Unrounded(Noise):
    """Noise that is added as it is: references that add up in another order would round to another
    cell now and then."""

    def add_to(self, total: Any, values: Any = None) -> Any:
        return total + (self.values if values is None else values) * self.scale


class SmoothMeter(Meter):
    """The meter, without its grid."""

    def noise(self, name: str, shape: Shape) -> Noise:
        found = super().noise(name, shape)
        return Unrounded(found.values, found.scale)


@dataclass(frozen=True)
class Seeded:
    """Streams that a test can ask for twice."""

    seed: int = 0

    def stream(self, name: str, index: int) -> bytes:
        return hashlib.sha256(f"{self.seed} {name} {index}".encode()).digest()


def in_new_python(code: str, *arguments: str, cwd: Path | None = None, **environment: str) -> str:
    """What a program prints that ends well."""
    ended = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=cwd,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def failed(report: Report) -> set[str]:
    """The checks of an audit that failed."""
    return {finding.check for finding in report.findings if not finding.ok}


class Silent:
    """A meter whose noise is zero."""

    def noise(self, name: str, shape: Shape) -> Noise:
        return Unrounded(np.zeros(shape), 1.0)

    def publish(self, name: str, total: Any) -> Any:
        return np.asarray(total, np.float64)

    def declares(self, draw: Draw) -> bool:
        return True

    def mask(self, name: str, ids: Any) -> Any:
        return np.ones(len(ids), np.bool_)


def answer_of(question: Any, data: Any, constants: Any) -> Any:
    """The answer to one question, without noise."""
    from dpladder.config.model import Resources
    from dpladder.learn.curator import Curator

    silent: Any = Silent()
    return Curator(data, constants, Resources(threads=1, mem_mb=50)).ask(question, silent)


def as_the_ledger_knows(job: Any) -> Iterator[tuple[str, dict[str, str]]]:
    """A rung's job as its trials; any other as itself."""
    rung = rung_of(job.rule.name)
    if rung is None:
        yield job.rule.name, dict(job.wildcards.items())
        return
    for name in job.output.keys():  # noqa: SIM118, not a mapping
        if name.startswith("score_"):
            yield "run_trial", rung | {"trial": name.removeprefix("score_")}


def devices():
    """Where products are made, as cases of a test."""
    import torch

    without = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
    return ["cpu", pytest.param("cuda", marks=without)]


def node_of(project: Project, rule: str, **wildcards: str) -> Node:
    """A job of a project, main's unless an experiment is among its wildcards."""
    node = build_dag(project).find(rule, wildcards)
    assert node is not None
    return node


def each_row(rows: Rows) -> list[Any]:
    """What a survey says of its rows, one by one; digests as bytes."""
    columns = {
        name: [*map(bytes, column)] if column.ndim > 1 else column.tolist()
        for name, column in vars(rows).items()
    }
    return [
        SimpleNamespace(**dict(zip(columns, one, strict=True)))
        for one in zip(*columns.values(), strict=True)
    ]
