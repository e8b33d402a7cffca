"""The statement of the whole DAG, from every rule's record and the ledger."""

from __future__ import annotations

import subprocess
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from dpladder.config.section import restored
from dpladder.jobs.places import job_home
from dpladder.jobs.task import Task, read_json, write_json
from dpladder.plan.startup import SOURCE
from dpladder.privacy.ledger import book as ledgers
from dpladder.privacy.ledger.book import Ledger
from dpladder.privacy.ledger.home import subkey
from dpladder.privacy.statement.build import build, seal
from dpladder.privacy.statement.documents import Origin, PlanDocument, SealedStatement
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
        _origin(),
    )
    sealed = seal(asdict(statement), subkey(home, "ledger"))
    write_json(task.output["statement"], sealed)
    task.output["page"].write_text(page(restored(SealedStatement, sealed)), "utf-8")


def _origin() -> Origin:
    today = datetime.now(UTC).date().isoformat()
    return Origin(today, _commit(), {package: version(package) for package in PACKAGES})


def _commit() -> str | None:
    """The clone's commit, and whether its files are still those."""
    if not (SOURCE.parent / ".git").exists():
        return None
    told = [_git("rev-parse", "HEAD"), _git("status", "--porcelain", "--untracked-files=no")]
    if None in told:
        return None
    return f"{told[0]}{' with uncommitted changes' if told[1] else ''}"


def _git(*arguments: str) -> str | None:
    command = ["git", "-C", str(SOURCE.parent), *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):  # no git here, or a clone of somebody else's
        return None
