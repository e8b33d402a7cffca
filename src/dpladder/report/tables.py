"""The facts of a report as tables: CSV at full precision for programs, Markdown and HTML for
readers.

Functions ending in `_table` return columns by the names that programs read (docs/design.md, what
others script against). `readable` turns them into headings and values for people. A column that is
empty in all rows is kept in CSV and left out for readers. Everything here follows from releases, so
a table costs nothing (contract: no-tell).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pandas as pd

from dpladder.config.evaluate_sections import BRIER
from dpladder.errors import BadInput
from dpladder.learn.measures.figures import FIGURES, OF_FINDINGS, MeasuredFigure
from dpladder.learn.measures.tested import (
    HIDDEN,
    ClassTested,
    Tested,
    WorstTested,
    says_little,
    with_interval,
)
from dpladder.privacy.accounting.rounding import (
    SDS_OF_95_PERCENT,
    NoisedFigure,
    markdown_cell,
    mu_up,
    percent,
    round_up,
    round_up_short,
)
from dpladder.privacy.statement.documents import Statement
from dpladder.privacy.statement.facts import charges_of
from dpladder.report.summary import Summary
from dpladder.wording import cell, printable


def short_number(value: float, _: object = None) -> str:
    """Three digits, as people write them: 1,000 and 1e-5. What matplotlib passes second is ignored.

    It rounds to the nearest, so no cost is written with it: those are rounded up
    (privacy/accounting/rounding.py).
    """
    if 1000 <= abs(value) < 1e6:
        return f"{value:,.0f}"
    return f"{value:.3g}".replace("e-0", "e-").replace("e+0", "e")


Show = Callable[[Any], str]
LOW, HIGH = "_low", "_high"  # columns of an interval's ends, which readers see as one
# How readers see a column: its heading, and one value. Costs are rounded up.
COLUMNS: dict[str, tuple[str, Show]] = {
    "total_epsilon": (
        "total ε",
        lambda epsilon: "∞" if epsilon == math.inf else round_up_short(epsilon),
    ),
    "epsilon": ("ε", lambda epsilon: "∞, no privacy" if epsilon == math.inf else round_up(epsilon)),
    "own_epsilon": (
        "ε of it and its search alone",
        lambda epsilon: "∞" if epsilon == math.inf else round_up(epsilon),
    ),
    "mu": ("μ", mu_up),
    "r": ("r", short_number),
    "r_star": ("r*", short_number),
    "kappa": ("κ", short_number),
    "kappa_star": ("κ*", short_number),
    "eta": ("η", short_number),
    "ridge": ("λ", short_number),
    "alpha": ("α", short_number),
    "sigma": ("σ", short_number),
    "share": ("score", percent),
    "baseline": ("without a model", percent),
    "unit_of_number": ("in", str),
    "threshold": ("threshold of a decision", percent),
    "test_accuracy": ("test accuracy", percent),
    "one_minus_brier": (BRIER, percent),
    "perplexity": ("perplexity", short_number),
    "present": ("with it", "{:,.0f}".format),
    "absent": ("without it", "{:,.0f}".format),
    "worst": ("worst group", str),
    "worst_accuracy": ("worst-group accuracy", percent),
    "worst_one_minus_brier": (f"worst-group {BRIER}", percent),
    "accuracy": ("accuracy", percent),
    "correct": ("right", "{:,.0f}".format),
    "wrong": ("wrong", "{:,.0f}".format),
    "lost": ("lost", percent),
    "counted": ("records counted", "{:,.0f}".format),
    "search_share": ("spent before training", percent),
    "buys": ("what was bought", str),
    "reads": ("of the part", str),
    "charges": ("times", str),
    "count": ("steps", "{:,}".format),
    "steps": ("T", "{:,.0f}".format),
}
# a figure that is added to FIGURES has its two columns by itself
for one in FIGURES:
    COLUMNS[one.name] = (one.heading, percent)
STYLES = {one.name: one.style for one in FIGURES} | {"perplexity": "number"}


def summary_table(summary: Summary) -> pd.DataFrame:
    """One row for each final model, then one for each student.

    Args:
        summary: an experiment's. A training without noise is the last model, at an epsilon of
            infinity.

    Returns:
        `epsilon` is what the model is stated at, with all that may have steered it (contract:
        all-that-steered). `own_epsilon` is its own price with its search. Columns of figures that
        nobody bought are empty.
    """
    return pd.DataFrame(
        [
            {
                "experiment": summary.experiment,
                "total_epsilon": target.target_epsilon,
                **_headline_columns(test),
                "unit_of_number": test.unit or None,
                "baseline": summary.baseline(test),
                "threshold": test.threshold,
                **_figures(FIGURES, test.figures),
                **_worst_columns(test.worst, summary.findings),
                "epsilon": target.stated.epsilon,
                "own_epsilon": target.epsilon,
                "kappa_star": target.kappa_star,
                "r_star": target.r_star,
                **target.choice,
                "sigma": target.sigma,
                "search_share": target.search_share,
                "suspect": target.suspect,
            }
            for target in summary.models
            for test in [target.test]
        ]
        + [
            {
                "experiment": f"{summary.experiment}, student",
                "total_epsilon": target.target_epsilon,
                **_headline_columns(target.student),
                "epsilon": target.stated.epsilon,
            }
            for target in summary.models
            if target.student is not None
        ]
    )


# columns of `summary_table` that tell its models apart, that tables for readers show, and the rest
MODEL = ("experiment", "total_epsilon")
FIRST = ("test_accuracy", "one_minus_brier", "perplexity", "rmse", "baseline", "rmse_of_mean")
TRAINING = ("epsilon", "own_epsilon", "kappa_star", "r_star", "eta", "ridge", "alpha", "steps")


def finals_table(summary: Summary) -> pd.DataFrame:
    """Of `summary_table` what anybody asks first: how good each model is, and its baseline."""
    return _columns(summary_table(summary), [*FIRST, "unit_of_number", "search_share"])


def figures_table(summary: Summary) -> pd.DataFrame:
    """Of `summary_table` all other figures that a test bought; empty where it bought none."""
    table = summary_table(summary)
    known = {
        *FIRST,
        "unit_of_number",
        "search_share",
        *TRAINING,
        "sigma",
        "suspect",
        "accuracy_sd",
        *MODEL,
    }
    bought = [one for one in map(_base, table) if one not in known | {"accuracy"}]
    figures = _columns(table, [*dict.fromkeys(bought)])
    return figures if len(readable(figures).columns) > len(MODEL) else pd.DataFrame()


def training_table(summary: Summary) -> pd.DataFrame:
    """Of `summary_table` what each model costs, and how it was trained, in symbols."""
    return _columns(summary_table(summary), [*TRAINING, "sigma", "suspect"])


def _base(name: Any) -> str:
    """The figure that a column of its noise or of its interval is about."""
    return re.sub(f"({LOW}|{HIGH}|_sd|_spread)$", "", str(name))


def _columns(table: pd.DataFrame, figures: Sequence[str]) -> pd.DataFrame:
    """The columns of some figures, with those of their intervals, behind the model's name."""
    return table[[name for name in table if _base(name) in (*MODEL, *figures)]]


def models_table(
    summaries: Sequence[Summary], cells: Mapping[str, Mapping[str, str]]
) -> pd.DataFrame:
    """The rows of `summary_table` of all experiments, and below them one for each total of each set
    of repeats: their mean.

    Args:
        summaries: of all experiments.
        cells: each experiment's values on the axes of `grid:`, by its name. Repeats have equal
            values.

    Returns:
        A mean's `experiment` is `main, mean of 3`, by the first of them. Its `accuracy_sd` is the
        deviation over repeats. What differs between repeats otherwise is their mean too.
    """
    table = pd.concat([summary_table(one) for one in summaries], ignore_index=True)
    repeats: dict[tuple[str, ...], list[str]] = {}
    for name, cell_values in cells.items():
        repeats.setdefault(tuple(cell_values.values()), []).append(name)
    means = []
    for names in repeats.values():
        of_repeats = table[table["experiment"].isin(names)]
        for total, rows in of_repeats.groupby("total_epsilon", sort=False):
            if len(rows) > 1:
                mean = rows.select_dtypes("number").mean().to_dict()
                if "test_accuracy" in rows:
                    sd = mean["accuracy_sd"] = mean["accuracy_spread"] = rows["test_accuracy"].std()
                    for end, side in ((LOW, -1), (HIGH, 1)):
                        mean[f"test_accuracy{end}"] = (
                            mean["test_accuracy"] + side * SDS_OF_95_PERCENT * sd
                        )
                title = f"{names[0]}, mean of {len(rows)}"
                means.append({"experiment": title, **mean, "total_epsilon": total})
    return pd.concat([table, pd.DataFrame(means)], ignore_index=True) if means else table


def _headline_columns(test: Tested) -> dict[str, float | None]:
    """A language model is known by its perplexity, probabilities of findings by their Brier score,
    numbers by the figures of their errors, and all others by their accuracy."""
    perplexity = test.perplexity
    if test.range is not None:  # its figures have columns of their own
        return {}
    if perplexity is None:
        name = "one_minus_brier" if test.brier else "test_accuracy"
        low, high = test.score.interval
        return {
            name: test.accuracy,
            f"{name}{LOW}": low,
            f"{name}{HIGH}": high,
            "accuracy_sd": test.accuracy_sd,
            "accuracy_spread": test.spread,
        }
    return {
        "perplexity": perplexity.value,
        "perplexity_low": perplexity.low,
        "perplexity_high": perplexity.high,
    }


def _value_and_sd(name: str, figure: NoisedFigure | None) -> dict[str, float | None]:
    """Columns for a figure, its noise and its interval, all empty where there is no figure."""
    names = (name, f"{name}_sd", f"{name}{LOW}", f"{name}{HIGH}")
    if figure is None:
        return dict.fromkeys(names)
    return dict(zip(names, (figure.value, figure.sd, *figure.interval), strict=True))


def _figures(
    figures: Sequence[MeasuredFigure], known_figures: Mapping[str, NoisedFigure | None]
) -> dict[str, float | None]:
    """A column for each figure and one for its noise, empty where it was not bought."""
    columns: dict[str, float | None] = {}
    for figure in figures:
        columns |= _value_and_sd(figure.name, known_figures.get(figure.name))
    return columns


def _worst_columns(figure: WorstTested | None, findings: bool) -> dict[str, str | float | None]:
    """The lowest group by name, its accuracy and the deviation of its noise; empty without groups.
    Of findings a group counts by the Brier score."""
    score = "worst_one_minus_brier" if findings else "worst_accuracy"
    columns = _value_and_sd(score, figure.score if figure else None)
    return {
        "worst": figure.name if figure else None,
        **{name.replace(f"{score}_sd", "worst_sd"): value for name, value in columns.items()},
    }


def _accuracy_columns(one: ClassTested, findings: bool = False) -> dict[str, float | None]:
    """Columns of a class or a group. Of findings a group counts by the Brier score."""
    score = _value_and_sd("one_minus_brier" if findings else "accuracy", one.score)
    return {**score, "correct": one.correct, "wrong": one.wrong}


def classes_table(summary: Summary) -> pd.DataFrame:
    """One row for each class of each final model that was counted by class; empty where none was.

    Args:
        summary: an experiment's, with `evaluate.measures: classes` or one that counts as much.

    Returns:
        `correct` and `wrong` are noised counts, which may lie below 0. `accuracy` is empty where
        noise hides it.
    """
    return pd.DataFrame(
        [
            {
                "experiment": summary.experiment,
                "total_epsilon": target.target_epsilon,
                "class": one.name,
                **_accuracy_columns(one),
            }
            for target in summary.targets
            for one in target.test.classes or ()
        ]
    )


def confusion_table(summary: Summary) -> pd.DataFrame:
    """One row for each class of each final model, a column for each that it was taken for. It is
    empty where none was counted so, and so are cells where noise hides what there is.

    Args:
        summary: an experiment's, with `evaluate.measures: confusion`.

    Returns:
        Cells as text, noised counts without a digit behind the point.
    """
    return pd.DataFrame(
        [
            {
                "experiment": summary.experiment,
                "total_epsilon": target.target_epsilon,
                "class": one.name,
                **{
                    f"taken for {other.name}": None if count is None else f"{count:,.0f}"
                    for other, count in zip(classes, confusion.row_or_hidden(place), strict=True)
                },
            }
            for target in summary.targets
            if (confusion := target.test.confusion) and (classes := target.test.classes)
            for place, one in enumerate(classes)
        ]
    )


def findings_table(summary: Summary) -> pd.DataFrame:
    """One row for each finding of each final model that was counted by findings; empty where none
    was.

    Args:
        summary: an experiment's, with `dataset.labels: many`.

    Returns:
        `present` and `absent` are noised counts of the records that have the finding or not.
        Records of which it is unknown are in neither.
    """
    return pd.DataFrame(
        [
            {
                "experiment": summary.experiment,
                "total_epsilon": target.target_epsilon,
                "finding": one.name,
                **_value_and_sd("accuracy", one.accuracy),
                **_figures(OF_FINDINGS, one.figures),
                "present": one.present,
                "absent": one.absent,
            }
            for target in summary.targets
            for one in target.test.findings or ()
        ]
    )


def groups_table(summary: Summary) -> pd.DataFrame:
    """One row for each group of each test of each final model that was counted by groups; empty
    where none was.

    Args:
        summary: an experiment's, with `evaluate.measures: groups`.

    Returns:
        `trained` says whether the group was trained on. `lowest` marks the one that looked worst,
        by noised counts.
    """
    return pd.DataFrame(
        [
            {
                "experiment": summary.experiment,
                "total_epsilon": target.target_epsilon,
                "test": name,
                "group": one.name,
                "trained": "yes" if one.trained else "no",
                "lowest": "lowest" if test.worst and one.name == test.worst.name else None,
                **_accuracy_columns(one, summary.findings),
            }
            for target in summary.models
            for name, test in target.tests.items()
            for one in test.groups or ()
        ]
    )


def shift_table(summary: Summary) -> pd.DataFrame:
    """One row for each test of each final model, the test part first, and what is lost on the way
    there.

    Args:
        summary: an experiment's.

    Returns:
        `lost` is the accuracy of the test part less this test's, below 0 where this one is better.
        It is empty of the test part itself and of language models.
    """
    return pd.DataFrame(
        [
            {
                "experiment": summary.experiment,
                "total_epsilon": target.target_epsilon,
                "test": name,
                **(_headline_columns(test) | ({} if test.noised else {"accuracy_sd": None})),
                "lost": _lost_accuracy(target.test, test) if name != "test" else None,
                **_worst_columns(test.worst, summary.findings),
                "counted": test.total,
            }
            for target in summary.models
            for name, test in target.tests.items()
        ]
    )


def _lost_accuracy(there: Tested, here: Tested) -> float | None:
    """How much accuracy is lost; a language model has none, and too few records do not say."""
    untold = any(says_little(one.score, "percent") for one in (there, here))
    return None if untold or here.perplexity or here.range else there.accuracy - here.accuracy


def grid_table(
    summaries: Sequence[Summary], cells: Mapping[str, Mapping[str, str]]
) -> pd.DataFrame:
    """One row for each combination, a column for each total. A cell has accuracy, the mean over
    repeats where there are several, and an interval, over repeats or over noise and sampling.

    Args:
        summaries: of all experiments that `cells` names.
        cells: each experiment's values on the axes of `grid:`, by its name; one at least. Repeats
            have equal values.

    Returns:
        Cells as text, `91.2% (90.4–92.0)`. The first columns are the axes.
    """
    by_name = {one.experiment: one for one in summaries}
    rows: dict[tuple[str, ...], dict[str, list[Tested]]] = {}
    for name, cell_values in cells.items():
        row = rows.setdefault(tuple(cell_values.values()), {})
        for target in by_name[name].models:
            row.setdefault(f"ε = {target.total}", []).append(target.test)
    axes = list(next(iter(cells.values())))
    return pd.DataFrame(
        [
            dict(zip(axes, place, strict=True))
            | {
                total: with_interval(NoisedFigure(mean, 0.0, low, high))
                for total, tests in row.items()
                for mean, low, high in [mean_score(tests)]
            }
            for place, row in rows.items()
        ]
    )


def mean_score(tests: Sequence[Tested]) -> tuple[float, float, float]:
    """The mean of several repeats, with ends that hold 95 % of them; of one its own figure and
    interval."""
    if len(tests) == 1:
        return (tests[0].accuracy, *tests[0].score.interval)
    accuracies = [test.accuracy for test in tests]
    mean, half = fmean(accuracies), SDS_OF_95_PERCENT * stdev(accuracies)
    return mean, mean - half, mean + half


def trials_table(summary: Summary) -> pd.DataFrame:
    """One row for each trial of the sweep.

    Args:
        summary: an experiment's. Without a ladder there is no row.

    Returns:
        `share` is the noised score as a share of the records that count, its interval over noise
        alone. `epsilon` is what each trial of the rung cost.
    """
    return pd.DataFrame(
        [
            {
                "rung": number,
                "epsilon": rung.epsilon,
                "trial": trial.trial,
                "kappa": trial.kappa,
                "r": trial.r,
                **trial.choice,
                **_value_and_sd("share", trial.noised_share),
                "best": "best" if trial.trial == rung.best.trial else "",
            }
            for number, rung in enumerate(summary.rungs)
            for trial in rung.trials
        ]
    )


def spends_table(statement: Statement) -> pd.DataFrame:
    """One row for equal charges of the workflow, which bought the same of several trials or tables.

    Args:
        statement: whose lines the rows are, in its order. What other tools spent is not among them.

    Returns:
        `mu` and `epsilon` are of each of `charges` charges, whose event happened `count` times. A
        superseded one paid for another answer than the one that is stated; it was spent all the
        same.
    """
    rows = [
        {
            "dataset": lineage,
            "experiment": line.experiment,
            "buys": buys,
            "reads": line.partition,
            "charges": times,
            "count": line.count,
            "mu": line.mu,
            "epsilon": line.epsilon,
            "superseded": "superseded" if line.superseded else None,
        }
        for lineage, dataset in statement.datasets.items()
        for line, buys, times in charges_of(dataset)
    ]
    return pd.DataFrame(rows)


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write a table as its file's suffix says.

    Args:
        table: with columns as programs read them.
        path: `.csv` has every digit and quotes what a spreadsheet would run as a formula. `.md` and
            `.html` are as readers see it. A file there is replaced.

    Raises:
        BadInput: the suffix is another one.
    """
    if path.suffix == ".csv":
        map_words(table, cell).to_csv(path, index=False, lineterminator="\n")
    elif path.suffix == ".md":
        path.write_text(_markdown(readable(table)), "utf-8")
    elif path.suffix == ".html":
        path.write_text(_html(map_words(readable(table), printable)), "utf-8")
    else:
        raise BadInput(
            f"a table cannot be written as {path.suffix or 'a file without suffix'}. Use .csv, .md "
            "or .html."
        )


def map_words(table: pd.DataFrame, word_of: Callable[[str], str]) -> pd.DataFrame:
    """The table with its words, which others may have chosen, told otherwise; numbers stay numbers.

    Args:
        table: names of classes, groups and experiments stand in its cells and headings.
        word_of: what makes a word harmless where the table goes (wording.py).
    """
    return table.map(lambda value: word_of(value) if isinstance(value, str) else value).rename(
        columns=word_of
    )


def readable(table: pd.DataFrame) -> pd.DataFrame:
    """Headings and values as text; what is not known is empty, and a column of nothing else left
    out.

    Args:
        table: with columns as programs read them. One without an entry in `COLUMNS` keeps its name.

    Returns:
        Text alone. Costs are rounded up. Behind a figure stands its 95 % interval in brackets, and
        deviations have no column. Figures of findings that were bought but not seen say `HIDDEN`,
        and shares that are too uncertain to be told, `TOO_FEW`.
    """
    columns: dict[str, list[str]] = {}
    bought = {one.name for one in OF_FINDINGS if "by_finding" in one.of and "finding" in table}
    for name, values in table.items():
        untold = HIDDEN if name in bought else ""
        if _base(name) in {*COLUMNS} - {name} or (values.isna().all() and not untold):
            continue
        heading, show = COLUMNS.get(str(name), (str(name), str))
        # two names with one heading would be one column: COLUMNS must tell them apart
        columns[heading] = [untold if pd.isna(value) else show(value) for value in values]
        if f"{name}{LOW}" in table:
            ends = zip(values, table[f"{name}{LOW}"], table[f"{name}{HIGH}"], strict=True)
            style = STYLES.get(str(name), "percent")
            columns[heading] = [
                untold
                if pd.isna(one[0])
                else with_interval(NoisedFigure(one[0], 0.0, *one[1:]), style)
                for one in ends
            ]
    return pd.DataFrame(columns)


def _markdown(table: pd.DataFrame) -> str:
    rows: list[list[str]] = [
        list(map(str, table)),
        ["---"] * len(table.columns),
        *table.to_numpy().tolist(),
    ]
    return "".join(f"| {' | '.join(map(markdown_cell, row))} |\n" for row in rows)


def _html(table: pd.DataFrame) -> str:
    """A page of its own, as Snakemake's report wants it."""
    style = (
        "body { font: 14px sans-serif; color: #222 } table { border-collapse: collapse } "
        "th, td { padding: 4px 12px; text-align: left; border-bottom: 1px solid #ddd }"
    )
    body = table.to_html(index=False, border=0, justify="left")
    head = f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<style>{style}</style>'
    return f"{head}\n{body}\n</html>\n"
