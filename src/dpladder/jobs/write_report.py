"""The report: every figure and table, and the page that shows them, from released files alone.

It runs after the statement, so it is the last to write. Its own record, sealed, says which files
were made and of which statement (contract: signed-bytes).
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd

from dpladder.jobs.places import job_home
from dpladder.jobs.record import FROM_RELEASES, write_record
from dpladder.jobs.task import Task, read_json, write_json
from dpladder.plan.pictures import Picture
from dpladder.plan.reads import WriteReport
from dpladder.privacy.ledger.home import subkey
from dpladder.privacy.statement.build import seal
from dpladder.privacy.statement.documents import SealedStatement
from dpladder.public_files import file_digest
from dpladder.report import page, tables
from dpladder.report.page import OnPage
from dpladder.report.summary import Summary, read_summary
from dpladder.section import from_document


def write_report(task: Task[WriteReport]) -> None:
    """Draw every figure and table, write the page, and seal digests of all that was made. A picture
    that cannot be drawn leaves its reason in its place, and the run goes on: what was released
    must not seem to have failed.

    Pictures of an earlier config are removed: they would seem to be about this run.
    """
    reads = task.reads
    statement = from_document(SealedStatement, read_json(task.input["statement"]))
    summaries = [read_summary(path) for path in task.input["summaries"]]
    by_name = {summary.experiment: summary for summary in summaries}

    on_page: list[OnPage] = []
    failed: list[str] = []
    for picture in reads.pictures:
        path = Path(picture.path) if picture.path else None
        picture_summaries = [by_name[name] for name in picture.shows]
        material = _material(picture, picture_summaries, reads.cells, statement)
        try:
            table = _draw(picture, material, path)
        except Exception as error:  # no picture takes another one along
            traceback.print_exc()
            reason = f"{type(error).__name__}: {error}"
            reason = f"{picture.path or picture.name} could not be drawn: {reason}"
            failed.append(reason)
            table = pd.DataFrame({"problem": [reason]})
            if path is not None:
                path.write_text(INSTEAD[path.suffix].format(escape(reason)), "utf-8")
        if picture.on_page:
            figure = path if path is not None and path.suffix == ".svg" else None
            on_page.append(
                OnPage(
                    picture.name,
                    picture.experiment,
                    picture.category,
                    table,
                    figure,
                    picture.package,
                    picture.folded,
                )
            )
    for left in reads.left_behind:
        Path(left).unlink(missing_ok=True)

    place = Path(task.output["page"])
    page.write_page(statement, summaries, on_page, place, reads.cells, reads.about, reads.contests)
    _vouch(task, statement.id)
    if failed:  # the run goes on: what was released must not seem to have failed
        print(
            f"write_report ({len(failed)} of {len(reads.pictures)} pictures): {'; '.join(failed)}"
        )


def _material(
    picture: Picture,
    summaries: Sequence[Summary],
    cells: Mapping[str, Mapping[str, str]],
    statement: SealedStatement,
) -> tuple[Any, ...]:
    """What a picture's function is given, without the path: one summary, all of them, all with the
    grid's cells, or the statement."""
    match picture.takes:
        case "one":
            return (summaries[0],)
        case "statement":
            return (statement,)
        case "compared":
            return (summaries, cells)
    return (summaries,)


def _draw(picture: Picture, material: tuple[Any, ...], path: Path | None) -> pd.DataFrame:
    """Write a picture to its file. The table, of one that is.

    Args:
        picture: whose `draw` names a function of its package, as module:function.
        material: its arguments.
        path: of the file; None for a table that stands on the page alone.
    """
    module, _, name = picture.draw.partition(":")
    function = getattr(import_module(f"{picture.package}.{module}"), name)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
    if path is not None and path.suffix == ".svg":
        # A figure is its file; the page shows that, so no table comes back.
        function(*material, path)
        return pd.DataFrame()
    table: pd.DataFrame
    if picture.takes == "each":
        table = pd.concat([function(one) for one in material[0]])
    else:
        table = function(*material)
    if path is not None:
        tables.write_table(table, path)
    return table


def _vouch(task: Task[WriteReport], statement: str) -> None:
    """The last record of a run, sealed as the statement is. It has digests of the page that is
    signed, and of all that was made from the statement. It names the statement that they are of."""
    write_record(task, free=FROM_RELEASES)
    record = read_json(task.output["privacy"])
    inputs, outputs = task.input, (path for name, path in task.output.items() if name != "privacy")
    pictures = (picture.path for picture in task.reads.pictures if picture.path)
    paths = [
        inputs["signed"],
        *inputs["summaries"],
        *inputs["records"],
        *inputs["tables"],
        *pictures,
        *map(str, outputs),
    ]
    files = {path: file_digest(Path(path)) for path in dict.fromkeys(paths)}
    vouched = record | {"statement": statement, "files": files}
    write_json(task.output["privacy"], seal(vouched, subkey(job_home(), "ledger")))


INSTEAD = {
    ".svg": '<svg xmlns="http://www.w3.org/2000/svg" width="760" height="40"><text x="8" '
    'y="24">{}</text></svg>\n',
    ".html": "<p>{}</p>\n",
    ".md": "{}\n",
    ".csv": "{}\n",
}
"""What stands in a picture's place, by its file."""
