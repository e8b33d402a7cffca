"""The statement of the whole DAG, from every rule's record and the ledger."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from dpladder.job import Task, read_json, write_json
from dpladder.privacy import ledger as ledgers
from dpladder.privacy.home import subkey
from dpladder.privacy.ledger import Ledger
from dpladder.privacy.statement import build, file_digest, page, seal
from dpladder.rules.places import job_home

PACKAGES = ("dpladder", "torch", "timm", "dp-accounting", "snakemake")


def compose_privacy(task: Task) -> None:
    home = job_home()
    books = {lineage: Ledger(home, lineage) for lineage in task.cfg["datasets"]}
    records = task.input["records"]
    statement = build(
        task.cfg,
        {path: read_json(path) for path in records},
        {path: file_digest(Path(path)) for path in records},
        {lineage: ledgers.load(book) for lineage, book in books.items()},
        [ledgers.head(book) for book in books.values()],
        {package: version(package) for package in PACKAGES},
    )
    statement = seal(statement, subkey(home, "ledger"))
    write_json(task.output["statement"], statement)
    task.output["page"].write_text(page(statement), "utf-8")
