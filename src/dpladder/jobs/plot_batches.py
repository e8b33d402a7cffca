"""Sampling rates against each other, as a figure and as a table."""

from __future__ import annotations

from dpladder.jobs.record import FROM_RELEASES, write_record
from dpladder.jobs.task import Task, read_json
from dpladder.plan.reads import Reads
from dpladder.report import batches_figure, tables


def plot_batches(task: Task[Reads]) -> None:
    summaries = [read_json(path) for path in task.input["summaries"]]
    batches_figure.plot_batches(summaries, task.output["figure"])
    tables.write_table(batches_figure.batches_table(summaries), task.output["table"])
    write_record(task, free=FROM_RELEASES)
