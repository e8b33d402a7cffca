"""`dpladder compare`: the final models of several results folders in one table, from public files
alone.

Anybody who has the folders can run it, for no key is needed. So it checks digests that the runs
wrote, and no seal: `dpladder verify` does that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpladder.commands.output import check_output
from dpladder.errors import BadInput
from dpladder.plan.follows import RESULTS
from dpladder.privacy.statement.check import REPORT, read_statement
from dpladder.public_files import file_digest, read_json
from dpladder.wording import printable

if TYPE_CHECKING:
    import pandas as pd

WRITERS = (".csv", ".md", ".html")
ALIKE = ("delta", "relation")  # what has to be alike before an epsilon is smaller than another
# of one run, no comparison
COMPARED_COLUMNS = (
    "r_star",
    "eta",
    "ridge",
    "alpha",
    "steps",
    "sigma",
    "kappa_star",
    "suspect",
)


def compare(results: Sequence[Path], output: Path | None) -> None:
    """Print a table of the final models of several runs, or write it to a file.

    It reads published files alone: no ledger, no key and no data. Notes say where epsilons of rows
    cannot be compared, and that results about one lineage cost together what its ledger says.

    Args:
        results: results folders of finished runs.
        output: a file, whose suffix says the format (WRITERS); None prints.

    Raises:
        BadInput: a folder holds no finished run, or a summary is not of its statement's run.
    """
    from dpladder.report.tables import map_words, readable, write_table

    check_output(output, WRITERS)
    table = table_of(results)
    if output is None:
        print(map_words(readable(table), printable).to_string(index=False))
    else:
        write_table(table, output)
    for note in _notes(table):
        print(printable(note))


def table_of(folders: Sequence[Path]) -> pd.DataFrame:
    """One row for each final model of each folder, in the order of the folders. What a run alone
    has, like its r, is left out.

    Args:
        folders: results folders of finished runs.

    Returns:
        A column for each fact that some folder has; a row that lacks it is NaN there. `results`
        names the folder, `mu` and `total_epsilon` the price, and `unit` who is protected.

    Raises:
        BadInput: a folder holds no finished run, or a summary is not of its statement's run.
    """
    import pandas as pd

    return pd.concat([row for folder in folders for row in _rows(folder)], ignore_index=True)


def _rows(folder: Path) -> Iterator[pd.DataFrame]:
    """The rows of one folder, summary by summary. What is read are files that people may have
    edited, so every wrong form is one message."""
    stated = read_statement(folder)
    summaries = sorted(folder.glob("*/summary.json"))
    if not summaries:
        raise BadInput(
            f"{folder} holds no <experiment>/summary.json: give the results folder of a finished "
            "run."
        )
    for path in summaries:
        try:
            yield _rows_of_summary(folder, path, stated)
        except (ValueError, KeyError, TypeError, AttributeError, OSError):
            raise BadInput(
                f"{path} is no summary of a finished run. Restore it, or run the workflow again."
            ) from None


def _rows_of_summary(folder: Path, path: Path, stated: Mapping[str, Any]) -> pd.DataFrame:
    """The rows of one experiment. Besides its own table they say whose data it is and who is
    protected, for an epsilon says nothing without these."""
    from dpladder.report.summary import read_summary
    from dpladder.report.tables import summary_table

    summary = read_summary(path)
    dataset = stated["datasets"].get(summary.lineage)
    if (
        dataset is None
        or summary.mode != stated["mode"]
        or not _is_vouched_for(folder, path, stated)
    ):
        raise BadInput(
            f"{path} is not of the run that {folder / 'privacy.json'} states. Run the workflow "
            "again."
        )
    table = summary_table(summary).drop(columns=[*COMPARED_COLUMNS], errors="ignore")
    table.insert(0, "results", str(folder))
    table.insert(2, "lineage", summary.lineage)
    table.insert(3, "learner", summary.learner)
    mus = [target.stated.mu for target in summary.targets]
    # none of a training without noise
    table.insert(6, "mu", mus + [None] * (len(table) - len(mus)))
    return table.assign(
        unit=f"{dataset['unit']}, at most {dataset['cap']}"
        if dataset["cap"] > 1
        else dataset["unit"],
        mode=summary.mode,
        **{name: getattr(summary, name) for name in ALIKE},
    )


def _is_vouched_for(folder: Path, path: Path, stated: Mapping[str, Any]) -> bool:
    """Whether the run's last record has this very summary, beside this very statement. Where there
    is no record, a run is not finished, and nothing is known."""
    try:
        document = read_json(folder / REPORT)
    except FileNotFoundError:
        return True
    known = document["files"].get(str(RESULTS / path.relative_to(folder)))
    return bool(document["statement"] == stated["id"] and known == file_digest(path))


def _notes(table: pd.DataFrame) -> Iterator[str]:
    """What forbids reading one row's epsilon against another's: other deltas, relations or units,
    research, or a lineage that several folders spent on."""
    for name in (*ALIKE, "unit"):
        if table[name].nunique() > 1:
            values = ", ".join(map(str, table[name].unique()))
            yield (
                f"note: {name} differs ({values}), so epsilons of these rows are not directly "
                "comparable"
            )
    if "research" in set(table["mode"]):
        yield "note: rows of mode research are no releases"
    if table["lineage"].duplicated().any() and table["results"].nunique() > 1:
        yield (
            "note: results about one lineage cost together what its ledger says (dpladder ledger "
            "show), not what a row says"
        )
