"""The tables of the report, each from released files alone."""

from __future__ import annotations

from dpladder.config.section import restored
from dpladder.jobs.record import FROM_RELEASES, write_record
from dpladder.jobs.task import Task, read_json
from dpladder.plan.reads import Gridded, Reads
from dpladder.privacy.statement.documents import Statement
from dpladder.report import tables


def tabulate(task: Task[Reads]) -> None:
    tables.write_table(tables.summary_table(read_json(task.input["summary"])), task.output["table"])
    write_record(task, free=FROM_RELEASES)


def tabulate_grid(task: Task[Gridded]) -> None:
    found = {summary["experiment"]: summary for summary in map(read_json, task.input["summaries"])}
    table = tables.grid_table(found, task.reads.cells)
    tables.write_table(table, task.output["html"])
    tables.write_table(table, task.output["table"])
    write_record(task, free=FROM_RELEASES)


def tabulate_trials(task: Task[Reads]) -> None:
    tables.write_table(tables.trials_table(read_json(task.input["summary"])), task.output["table"])
    write_record(task, free=FROM_RELEASES)


def tabulate_spends(task: Task[Reads]) -> None:
    tables.write_table(
        tables.spends_table(restored(Statement, read_json(task.input["statement"]))), task.output["table"]
    )
    write_record(task, free=FROM_RELEASES)
