"""The report's own page."""

from __future__ import annotations

from pathlib import Path

from dpladder.config.section import restored
from dpladder.jobs.record import FROM_RELEASES, write_record
from dpladder.jobs.task import Task, read_json
from dpladder.plan.reads import Gridded
from dpladder.privacy.statement.documents import SealedStatement
from dpladder.report import page


def report_page(task: Task[Gridded]) -> None:
    statement = restored(SealedStatement, read_json(task.input["statement"]))
    summaries = [read_json(path) for path in task.input["summaries"]]
    pictures = [*map(Path, task.input["pictures"])]
    page.write_page(statement, summaries, pictures, task.output["page"], task.reads.cells)
    write_record(task, free=FROM_RELEASES)
