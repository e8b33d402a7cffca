"""A finished run, as files, without any training."""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import DEMO, commit

from dpladder import cli
from dpladder.config.load import overlay, resolve
from dpladder.learn.weights import save
from dpladder.plan.dag import build_dag
from dpladder.plan.plan import make_plan
from dpladder.plan.table import plan_document
from dpladder.privacy.accounting.events import Job
from dpladder.privacy.ledger.book import Ledger, finish, head, load, open_ledger, reserve
from dpladder.privacy.ledger.home import open_home, subkey
from dpladder.privacy.statement.build import build, seal
from dpladder.privacy.statement.documents import Origin, SealedStatement
from dpladder.privacy.statement.page import page
from dpladder.privacy.statement.records import record_of
from dpladder.public_files import file_digest
from dpladder.section import from_document

CHANGES: dict[str, Any] = {"final": {"targets": [0.5, 1.0]}}
PRICED = overlay(DEMO, {"dataset": {"census": {"epsilon": 0.02}}})
"""The demo with a price for its count of units, which the plan of a run would give."""


class Finished:
    """A finished run, as files, without any training: the ledger's entries are real."""

    def __init__(self, folder: Path, changes: dict[str, Any]) -> None:
        self.folder, self.results = folder, folder / "results"
        self.places: dict[Job, int] = {}  # of the jobs' records
        self.home = open_home(folder / "home")
        dag = build_dag(resolve(overlay(PRICED, changes)))
        self.plan = make_plan(dag, {})
        self.document = plan_document(self.plan, {}, dag)
        self.ledgers = {
            name: open_ledger(self.home, terms) for name, terms in self.plan.terms.items()
        }
        self.finish()
        self.write(
            "results/free/privacy.json",
            {"rule": "fit_radius", "wildcards": {}, "free": "post-processing"},
        )

    @property
    def ledger(self) -> Ledger:
        return self.ledgers["mnist5k"]

    def finish(self) -> None:
        """Reserve what the plan spends, and release it."""
        for lineage, ledger in self.ledgers.items():
            reserved = reserve(ledger, self.plan.items_of(lineage))
            held = [item for item in reserved if item.status == "RESERVED"]
            for item in held:
                commit(ledger, item.token, 2 * item.token, item.spends)
                finish(ledger, item.token, "0" * 64)
                own = {"experiment": item.job.experiment, **dict(item.job.wildcards)}
                record = record_of(item.job.rule, own, item.spends, item.question)
                at = self.places.setdefault(item.job, len(self.places))
                self.write(f"results/{at}/privacy.json", record)
        for artifact in self.plan.artifacts:
            path = self.folder / artifact.path
            path.parent.mkdir(parents=True, exist_ok=True)
            save(
                path, (np.zeros((1, 1), np.float32),), {"inference": {"network": {"model": "none"}}}
            )

    def run_again(self, changes: dict[str, Any]) -> None:
        """A config edited when results are out."""
        states = {"mnist5k": load(self.ledger)}
        dag = build_dag(resolve(overlay(PRICED, changes)))
        self.plan = make_plan(dag, states)
        self.document = plan_document(self.plan, states, dag)
        self.finish()

    def write(self, path: str, document: Any) -> None:
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_text(json.dumps(document))

    @property
    def records(self) -> dict[str, Any]:
        paths = sorted(self.results.rglob("*/privacy.json"))
        return {str(path.relative_to(self.folder)): json.loads(path.read_text()) for path in paths}

    def state(self, made_by: str = "") -> dict[str, Any]:
        statement = build(
            self.document,
            self.records,
            {path: file_digest(self.folder / path) for path in self.records},
            {lineage: load(ledger) for lineage, ledger in self.ledgers.items()},
            [head(ledger) for ledger in self.ledgers.values()],
            Origin("2026-11-22", "0" * 40, {"dpladder": version("dpladder")}),
            files={
                str(path.relative_to(self.folder)): file_digest(path)
                for path in self.results.rglob("*")
                if path.name in ("weights.safetensors", "metrics.json")
            },
            made_by=lambda job: made_by,
        )
        sealed = seal(asdict(statement), subkey(self.home, "ledger"))
        self.write("results/privacy.json", sealed)
        (self.results / "privacy.md").write_text(
            page(from_document(SealedStatement, sealed)), "utf-8"
        )
        return sealed

    def verify(self, monkeypatch: pytest.MonkeyPatch) -> int:
        monkeypatch.setenv("DPLADDER_HOME", str(self.home.path))
        return cli.main(["verify", str(self.results)])


DEPLOYED = {
    "name": "Retina",
    "curators": ["A hospital"],
    "authors": ["Its officer"],
    "use": "Triage | never diagnosis",
    "data": "Photographs of eyes, taken in 2024",
    "region": "Denmark",
    "sector": "Healthcare",
    "access": "two people",
}
UNLIMITED = {"privacy": {"lifetime": None}}
