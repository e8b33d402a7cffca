"""The report: every figure and table, and the page that shows them, from released files alone."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path

import pandas as pd

from dpladder.config.section import restored
from dpladder.jobs.places import job_home
from dpladder.jobs.record import FROM_RELEASES, write_record
from dpladder.jobs.task import Task, read_json, write_json
from dpladder.plan.reads import Picture, WriteReport
from dpladder.privacy.ledger.home import subkey
from dpladder.privacy.statement.build import seal
from dpladder.privacy.statement.documents import SealedStatement
from dpladder.privacy.statement.records import file_digest
from dpladder.report import (
    batches_figure,
    budget_figure,
    distance_figure,
    gap_figure,
    heatmap_figure,
    ladder_figure,
    page,
    reliability_figure,
    scores_figure,
    shift_figure,
    tables,
    utility_figure,
)
from dpladder.report.summary import Summary, read_summary


@dataclass(frozen=True)
class Released:
    """What pictures are told from."""

    statement: SealedStatement
    summaries: Mapping[str, Summary]
    cells: Mapping[str, Mapping[str, str]]

    def of(self, picture: Picture) -> list[Summary]:
        return [self.summaries[name] for name in picture.shows]


FIGURES: Mapping[str, Callable[[Released, Picture, Path], None]] = {
    "batches": lambda told, picture, path: batches_figure.plot_batches(told.of(picture), path),
    "budget": lambda told, picture, path: budget_figure.plot_budget(told.statement, path),
    "distance": lambda told, picture, path: distance_figure.plot_distance(told.of(picture), path),
    "gap": lambda told, picture, path: gap_figure.plot_gap(told.of(picture), path),
    "heatmap": lambda told, picture, path: heatmap_figure.plot_heatmap(told.of(picture), path),
    "ladder": lambda told, picture, path: ladder_figure.plot_ladder(told.of(picture)[0], path),
    "pareto": lambda told, picture, path: utility_figure.plot_pareto(
        told.of(picture), path, told.cells
    ),
    "reliability": lambda told, picture, path: reliability_figure.plot_reliability(
        told.of(picture)[0], path
    ),
    "scores": lambda told, picture, path: scores_figure.plot_scores(told.of(picture)[0], path),
    "shift": lambda told, picture, path: shift_figure.plot_shift(told.of(picture)[0], path),
    "utility": lambda told, picture, path: utility_figure.plot_utility(told.of(picture)[0], path),
}
TABLES: Mapping[str, Callable[[Released, Picture], pd.DataFrame]] = {
    "batches": lambda told, picture: batches_figure.batches_table(told.of(picture)),
    "finals": lambda told, picture: tables.summary_table(told.of(picture)[0]),
    "grid": lambda told, picture: tables.grid_table(told.summaries, told.cells),
    "models": lambda told, picture: pd.concat(map(tables.summary_table, told.of(picture))),
    "shift": lambda told, picture: tables.shift_table(told.of(picture)[0]),
    "spends": lambda told, picture: tables.spends_table(told.statement),
    "trials": lambda told, picture: tables.trials_table(told.of(picture)[0]),
}


def write_report(task: Task[WriteReport]) -> None:
    statement = restored(SealedStatement, read_json(task.input["statement"]))
    summaries = [read_summary(path) for path in task.input["summaries"]]
    by_name = {summary.experiment: summary for summary in summaries}
    told = Released(statement, by_name, task.reads.cells)
    failed = [reason for picture in task.reads.pictures if (reason := _failure(told, picture))]
    for path in task.reads.left_behind:
        Path(path).unlink(missing_ok=True)
    figures = [Path(one.path) for one in task.reads.pictures if one.path.endswith(".svg")]
    reads, contests = task.reads, [*map(Path, task.reads.contests)]
    place = Path(task.output["page"])
    page.write_page(statement, summaries, figures, place, reads.cells, reads.about, contests)
    _vouch(task, statement.id)
    if failed:  # the run goes on: what was released must not seem to have failed
        print(
            f"write_report ({len(failed)} of {len(task.reads.pictures)} pictures): "
            f"{'; '.join(failed)}"
        )


def _vouch(task: Task[WriteReport], statement: str) -> None:
    """The last record of a run: digests of the page that is signed, and of all that was made from
    the statement, sealed as the statement is. It names the statement that they are of."""
    write_record(task, free=FROM_RELEASES)
    record = read_json(task.output["privacy"])
    given, made = task.input, (path for name, path in task.output.items() if name != "privacy")
    pictures = (picture.path for picture in task.reads.pictures)
    paths = [given["signed"], *given["summaries"], *given["tables"], *pictures, *map(str, made)]
    files = {path: file_digest(Path(path)) for path in dict.fromkeys(paths)}
    vouched = record | {"statement": statement, "files": files}
    write_json(task.output["privacy"], seal(vouched, subkey(job_home(), "ledger")))


def _failure(told: Released, picture: Picture) -> str:
    """Draw a picture; where that fails, put the reason in its place and return it. No picture takes
    another one along."""
    path = Path(picture.path)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        _draw(told, picture, path)
        return ""
    except Exception as error:
        reason = f"{path} could not be drawn: {type(error).__name__}: {error}"
        traceback.print_exc()
        path.write_text(INSTEAD[path.suffix].format(escape(reason)), "utf-8")
        return reason


def _draw(told: Released, picture: Picture, path: Path) -> None:
    if path.suffix == ".svg":
        FIGURES[picture.name](told, picture, path)
    else:
        tables.write_table(TABLES[picture.name](told, picture), path)


INSTEAD = {
    ".svg": '<svg xmlns="http://www.w3.org/2000/svg" width="760" height="40"><text x="8" '
    'y="24">{}</text></svg>\n',
    ".html": "<p>{}</p>\n",
    ".md": "{}\n",
    ".csv": "{}\n",
}
"""What stands in a picture's place, by its file."""
