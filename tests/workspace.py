"""Tiny projects that Snakemake runs for real, each in a folder and a home of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from dpladder.config import load
from dpladder.config.load import overlay
from dpladder.parse import known_states
from dpladder.privacy.ledger import Held

ROOT = Path(__file__).parents[1]
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
LOCALLY = ("--workflow-profile", str(ROOT / "profiles/default"), "--cores", "2")


def mixture(records: int = 300, seed: int = 0) -> dict[str, np.ndarray]:
    """Three classes of 16 features each, easy enough for a tiny budget."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, records)
    centres = 2.0 * np.random.default_rng(0).normal(size=(3, 16))
    features = centres[labels] + rng.normal(size=(records, 16))
    return {"features": features.astype(np.float32), "labels": labels}


@dataclass(frozen=True)
class Workspace:
    """A project in a folder of its own, with a home of its own. Its config is `base`, and what a test lays over it."""

    folder: Path
    home: Path
    base: Mapping[str, Any] = field(default_factory=dict)
    options: tuple[str, ...] = LOCALLY
    patience: float = 280

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
        return [
            *(sys.executable, "-m", "snakemake", "-s", str(ROOT / "Snakefile")),
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

    def held(self) -> list[Held]:
        """Everything that was ever charged, oldest first."""
        state = known_states(load([self.folder / "config.yaml"]))["tiny"]
        return [held for held in state.items.values() if held.status != "REFUNDED"]

    def public_bytes(self) -> dict[str, bytes]:
        """The released files by their place."""
        files = (*self.results.rglob("*.safetensors"), *self.results.rglob("*.json"))
        return {str(path.relative_to(self.results)): path.read_bytes() for path in files}


def enter(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workspace.folder)
    monkeypatch.setenv("DPLADDER_HOME", str(workspace.home))
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))  # a parse sets it: put it back afterwards


def wait_until(holds: Callable[[], object], seconds: float = 240) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"waited {seconds} s in vain"
        time.sleep(0.1)
