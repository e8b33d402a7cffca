"""The statement of the whole DAG, from every rule's record and the ledger."""

from __future__ import annotations

from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from dpladder.jobs.places import job_home
from dpladder.jobs.task import Task, read_json, write_json
from dpladder.privacy.ledger import book as ledgers
from dpladder.privacy.ledger.book import Ledger
from dpladder.privacy.ledger.home import subkey
from dpladder.privacy.statement.build import build, seal
from dpladder.privacy.statement.documents import PlanDocument
from dpladder.privacy.statement.page import page
from dpladder.privacy.statement.records import file_digest

PACKAGES = ("dpladder", "torch", "timm", "dp-accounting", "snakemake")


def compose_privacy(task: Task[PlanDocument]) -> None:
    home = job_home()
    opened = {lineage: Ledger(home, lineage) for lineage in task.reads.datasets}
    records = task.input["records"]
    statement = build(
        task.reads,
        {path: read_json(path) for path in records},
        {path: file_digest(Path(path)) for path in records},
        {lineage: ledgers.load(ledger) for lineage, ledger in opened.items()},
        [ledgers.head(ledger) for ledger in opened.values()],
        {package: version(package) for package in PACKAGES},
    )
    write_json(task.output["statement"], seal(asdict(statement), subkey(home, "ledger")))
    task.output["page"].write_text(page(statement), "utf-8")
