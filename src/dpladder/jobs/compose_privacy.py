"""The statement of the whole DAG, from every rule's record and the ledger.

It runs after all private jobs, and opens no private file. Records, ledgers and plan must tell one
story, so a record that was edited cannot lower a price (contract: all-that-steered, signed-bytes).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from dpladder.jobs.places import job_home
from dpladder.jobs.task import Task, read_json, write_json
from dpladder.plan.clone import commit
from dpladder.plan.follows import RESULTS
from dpladder.plan.reuse import mechanisms_text
from dpladder.privacy.ledger import anchors
from dpladder.privacy.ledger import book as ledgers
from dpladder.privacy.ledger.book import Ledger
from dpladder.privacy.ledger.home import Home, subkey
from dpladder.privacy.statement.build import build, seal
from dpladder.privacy.statement.documents import Origin, PlanDocument, SealedStatement
from dpladder.privacy.statement.page import page
from dpladder.public_files import file_digest
from dpladder.section import from_document

PACKAGES = ("dpladder", "torch", "timm", "dp-accounting", "snakemake")


def compose_privacy(task: Task[PlanDocument]) -> None:
    """Write the statement and its page, from the records of all jobs and the ledgers of their
    lineages. No private file is opened. The seal says that this home wrote it.

    Raises:
        Refused: records, ledgers and plan disagree, or a model costs more than its total.
    """
    home = job_home()
    # A lineage that the config dropped may have results here still; a statement without it would be
    # too low.
    lineages = dict.fromkeys([*task.reads.datasets, *_lineages_released_here(home)])
    opened = {lineage: Ledger(home, lineage) for lineage in lineages}
    records = task.input["records"]
    published = [*task.input["plan"], *task.input["files"]]
    statement = build(
        task.reads,
        {path: read_json(path) for path in records},
        {path: file_digest(Path(path)) for path in records},
        {lineage: ledgers.load(ledger) for lineage, ledger in opened.items()},
        [ledgers.head(ledger) for ledger in opened.values()],
        Origin(
            datetime.now(UTC).date().isoformat(),
            commit(),
            {package: version(package) for package in PACKAGES},
        ),
        {path: file_digest(Path(path)) for path in published},
        lambda job: mechanisms_text(task.reads.mechanisms[job.experiment][job.rule]),
    )
    sealed = seal(asdict(statement), subkey(home, "ledger"))
    write_json(task.output["statement"], sealed)
    task.output["page"].write_text(page(from_document(SealedStatement, sealed)), "utf-8")


def _lineages_released_here(home: Home) -> Iterator[str]:
    """The lineages that runs in this folder spent on, among them those that the config has no
    longer and whose results may still lie here."""
    for anchor in anchors.read(RESULTS):
        if ledgers.load(Ledger(home, anchor.lineage)).binding is not None:
            yield anchor.lineage
