"""Further tests, as a figure and as a table."""

from __future__ import annotations

from dpladder.jobs.record import FROM_RELEASES, write_record
from dpladder.jobs.task import Task, read_json
from dpladder.plan.reads import Reads
from dpladder.report import shift_figure, tables


def plot_shift(task: Task[Reads]) -> None:
    summary = read_json(task.input["summary"])
    shift_figure.plot_shift(summary, task.output["figure"])
    tables.write_table(tables.shift_table(summary), task.output["table"])
    write_record(task, free=FROM_RELEASES)
