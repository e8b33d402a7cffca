"""The figures and tables of the report, each from released files alone."""

from __future__ import annotations

from pathlib import Path

from dpladder.config.section import restored
from dpladder.jobs.record import write_record
from dpladder.jobs.task import Task, read_json
from dpladder.plan.reads import Gridded, Reads
from dpladder.privacy.statement.documents import SealedStatement, Statement
from dpladder.report import (
    batches_figure,
    budget_figure,
    distance_figure,
    heatmap_figure,
    ladder_figure,
    page,
    scores_figure,
    shift_figure,
    tables,
    utility_figure,
)

FROM_RELEASES = "drawn from releases alone"


def plot_ladder(task: Task[Reads]) -> None:
    ladder_figure.plot_ladder(read_json(task.input["summary"]), task.output["figure"])
    write_record(task, free=FROM_RELEASES)


def plot_scores(task: Task[Reads]) -> None:
    scores_figure.plot_scores(read_json(task.input["summary"]), task.output["figure"])
    write_record(task, free=FROM_RELEASES)


def plot_utility(task: Task[Reads]) -> None:
    utility_figure.plot_utility(read_json(task.input["summary"]), task.output["figure"])
    write_record(task, free=FROM_RELEASES)


def plot_shift(task: Task[Reads]) -> None:
    summary = read_json(task.input["summary"])
    shift_figure.plot_shift(summary, task.output["figure"])
    tables.write_table(tables.shift_table(summary), task.output["table"])
    write_record(task, free=FROM_RELEASES)


def plot_budget(task: Task[Reads]) -> None:
    budget_figure.plot_budget(_statement(task), task.output["figure"])
    write_record(task, free=FROM_RELEASES)


def plot_pareto(task: Task[Reads]) -> None:
    utility_figure.plot_pareto([read_json(path) for path in task.input["summaries"]], task.output["figure"])
    write_record(task, free=FROM_RELEASES)


def plot_heatmap(task: Task[Reads]) -> None:
    heatmap_figure.plot_heatmap([read_json(path) for path in task.input["summaries"]], task.output["figure"])
    write_record(task, free=FROM_RELEASES)


def plot_distance(task: Task[Reads]) -> None:
    distance_figure.plot_distance(
        [read_json(path) for path in task.input["summaries"]], task.output["figure"]
    )
    write_record(task, free=FROM_RELEASES)


def plot_batches(task: Task[Reads]) -> None:
    summaries = [read_json(path) for path in task.input["summaries"]]
    batches_figure.plot_batches(summaries, task.output["figure"])
    tables.write_table(batches_figure.batches_table(summaries), task.output["table"])
    write_record(task, free=FROM_RELEASES)


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
    tables.write_table(tables.spends_table(_statement(task)), task.output["table"])
    write_record(task, free=FROM_RELEASES)


def report_page(task: Task[Gridded]) -> None:
    statement = restored(SealedStatement, read_json(task.input["statement"]))
    summaries = [read_json(path) for path in task.input["summaries"]]
    pictures = [*map(Path, task.input["pictures"])]
    page.write_page(statement, summaries, pictures, task.output["page"], task.reads.cells)
    write_record(task, free=FROM_RELEASES)


def _statement(task: Task[Reads]) -> Statement:
    found: Statement = restored(Statement, read_json(task.input["statement"]))
    return found
