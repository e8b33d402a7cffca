"""The figures and tables of the report, each from released files alone."""

from __future__ import annotations

from dpladder.job import Task, read_json
from dpladder.report import budget, heatmap, ladder, scores, tables, utility
from dpladder.rules.record import write_record

FREE = "drawn from releases alone"


def plot_ladder(task: Task) -> None:
    ladder.plot_ladder(read_json(task.input["summary"]), task.output["figure"])
    write_record(task, free=FREE)


def plot_scores(task: Task) -> None:
    scores.plot_scores(read_json(task.input["summary"]), task.output["figure"])
    write_record(task, free=FREE)


def plot_utility(task: Task) -> None:
    utility.plot_utility(read_json(task.input["summary"]), task.output["figure"])
    write_record(task, free=FREE)


def plot_budget(task: Task) -> None:
    budget.plot_budget(read_json(task.input["statement"]), task.output["figure"])
    write_record(task, free=FREE)


def plot_pareto(task: Task) -> None:
    utility.plot_pareto([read_json(path) for path in task.input["summaries"]], task.output["figure"])
    write_record(task, free=FREE)


def plot_heatmap(task: Task) -> None:
    heatmap.plot_heatmap([read_json(path) for path in task.input["summaries"]], task.output["figure"])
    write_record(task, free=FREE)


def tabulate(task: Task) -> None:
    tables.write_table(tables.summary_table(read_json(task.input["summary"])), task.output["table"])
    write_record(task, free=FREE)


def tabulate_trials(task: Task) -> None:
    tables.write_table(tables.trials_table(read_json(task.input["summary"])), task.output["table"])
    write_record(task, free=FREE)


def tabulate_spends(task: Task) -> None:
    tables.write_table(tables.spends_table(read_json(task.input["statement"])), task.output["table"])
    write_record(task, free=FREE)
