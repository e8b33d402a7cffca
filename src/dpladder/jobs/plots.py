"""The figures of the report, each from released files alone."""

from __future__ import annotations

from dpladder.config.section import restored
from dpladder.jobs.record import FROM_RELEASES, write_record
from dpladder.jobs.task import Task, read_json
from dpladder.plan.reads import Reads
from dpladder.privacy.statement.documents import Statement
from dpladder.report import (
    budget_figure,
    distance_figure,
    gap_figure,
    heatmap_figure,
    ladder_figure,
    scores_figure,
    utility_figure,
)


def plot_ladder(task: Task[Reads]) -> None:
    ladder_figure.plot_ladder(read_json(task.input["summary"]), task.output["figure"])
    write_record(task, free=FROM_RELEASES)


def plot_scores(task: Task[Reads]) -> None:
    scores_figure.plot_scores(read_json(task.input["summary"]), task.output["figure"])
    write_record(task, free=FROM_RELEASES)


def plot_utility(task: Task[Reads]) -> None:
    utility_figure.plot_utility(read_json(task.input["summary"]), task.output["figure"])
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


def plot_gap(task: Task[Reads]) -> None:
    gap_figure.plot_gap([read_json(path) for path in task.input["summaries"]], task.output["figure"])
    write_record(task, free=FROM_RELEASES)


def plot_distance(task: Task[Reads]) -> None:
    distance_figure.plot_distance(
        [read_json(path) for path in task.input["summaries"]], task.output["figure"]
    )
    write_record(task, free=FROM_RELEASES)


def _statement(task: Task[Reads]) -> Statement:
    found: Statement = restored(Statement, read_json(task.input["statement"]))
    return found
