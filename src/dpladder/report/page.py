"""The report: one page that opens with the guarantee and the result, and needs nothing but
itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd
from jinja2 import Template
from markupsafe import Markup, escape

from dpladder.privacy.statement.documents import SealedStatement
from dpladder.privacy.statement.facts import lineage_facts
from dpladder.privacy.statement.templates import fill
from dpladder.report.model_chapter import (
    Fact,
    commands,
    lead_of_charges,
    lead_of_columns,
    lead_of_many,
    lead_of_search,
    promise,
    purpose,
    results,
)
from dpladder.report.summary import Summary
from dpladder.report.tables import readable

# Chapters as an officer, a user and a researcher read them, each with its word in the contents.
# Pictures of other packages have chapters of their own, behind these.
CHAPTERS = {
    (PROMISE := "What is promised"): "Promise",
    (QUALITY := "How good it is"): "Quality",
    (COLUMNS := "What moves a prediction"): "Columns",
    (USE := "How to use it"): "Use",
    (TUNING := "How it was tuned"): "Tuning",
    (CHARGES := "What was paid for"): "Charges",
}
# what a chapter may show, as page.html.jinja has it from top to bottom
EMPTY: Mapping[str, Sequence[Any]] = dict.fromkeys(
    ("guarantees", "results", "lead", "warnings", "texts", "models", "pictures"), ()
)
REPORT = "dpladder.report"  # whose captions are the page's own
SAME = ("experiment", "total ε", "dataset", "test")  # columns that go where they say one thing
WIDE, FEW = 7, 4  # columns of a table that is turned if it has so few rows


@dataclass(frozen=True)
class OnPage:
    """One picture as the page has it: a figure, or else a table.

    Attributes:
        name: of its caption, a file of report/captions.
        experiment: whose it is; empty of one that shows all experiments.
        chapter: where it stands.
        table: what is shown where there is no figure. An empty one is left out of the page.
        figure: the SVG that is drawn already.
        package: whose captions/ has its caption.
        folded: whether the page opens it on a click.
    """

    name: str
    experiment: str
    chapter: str
    table: pd.DataFrame
    figure: Path | None = None
    package: str = REPORT
    folded: bool = False


def write_page(
    statement: SealedStatement,
    summaries: Sequence[Summary],
    on_page: Sequence[OnPage],
    path: Path,
    cells: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    about: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    contests: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """The report as one HTML file that loads nothing: what is promised, how good the models are,
    how they are used, how they were tuned and what was paid for.

    Everything on it follows from releases, the config and the statement, so it costs nothing, and
    anybody may read it. Equal inputs give equal bytes: the report's record seals them.

    Args:
        statement: what is guaranteed of each lineage, and what everything cost.
        summaries: of all experiments, in the config's order.
        on_page: tables, and figures that are drawn already.
        path: where the page goes. A file there is replaced.
        cells: each experiment's values on the axes of `grid:`, by its name. Of experiments with
            equal values, which are repeats, only the first one's own pictures are shown.
        about: facts of each experiment from the config, by its name and then by theirs.
        contests: figures of comparisons in research, each with the package of its caption.
    """
    captions = Captions(_features_of_report(statement, summaries))
    contested = [
        OnPage(Path(path).stem, "", "Contests", pd.DataFrame(), Path(path), package)
        for path, package in contests.items()
    ]
    firsts: dict[tuple[str, ...], str] = {}
    for name, values in cells.items():
        firsts.setdefault(tuple(values.values()), name)
    repeats = {*cells} - {*firsts.values()}
    pictures: dict[str, list[Mapping[str, Any]]] = {}
    for one in sorted((*on_page, *contested), key=lambda one: (one.folded, bool(one.experiment))):
        if (one.figure or not one.table.empty) and one.experiment not in repeats:
            picture = _picture(one, captions, several=len(summaries) > 1)
            pictures.setdefault(one.chapter, []).append(picture)
    words = _words(statement, summaries, about)
    page = {
        "title": ", ".join(statement.datasets) + ": tuned and trained with differential privacy",
        "release": statement.mode == "release",
        "chapters": [
            {
                **EMPTY,
                "title": title,
                "short": CHAPTERS.get(title, title),
                "anchor": re.sub(r"\W+", "-", title.lower()),
                "pictures": pictures.get(title, ()),
                **words.get(title, {}),
            }
            for title in dict.fromkeys((*CHAPTERS, *pictures))
            if title in (PROMISE, QUALITY, USE) or title in pictures
        ],
        "id": statement.id,
    }
    path.write_text(fill("report/page.html.jinja", page), "utf-8")


def _words(
    statement: SealedStatement,
    summaries: Sequence[Summary],
    about: Mapping[str, Mapping[str, str]],
) -> Mapping[str, Mapping[str, Sequence[Any]]]:
    """What chapters say in words, by their titles. The limit that was declared comes before any
    result (contract: lifetime-first)."""
    lineages = lineage_facts(statement)
    return {
        PROMISE: {
            "guarantees": [(one.guarantee, promise(one)) for one in lineages],
            "texts": [text for one in lineages for text in (*one.costs, one.choice) if text],
        },
        QUALITY: {
            "results": results(summaries),
            "lead": [*lead_of_many(summaries)],
            "warnings": [text for one in summaries for text in one.warnings],
        },
        COLUMNS: {"lead": [*lead_of_columns(summaries)]},
        USE: {"lead": [purpose(statement)], "models": [*_models(statement, summaries, about)]},
        TUNING: {"lead": [lead_of_search(statement, summaries)]},
        CHARGES: {"lead": [*lead_of_charges(lineages)]},
    }


def _models(
    statement: SealedStatement,
    summaries: Sequence[Summary],
    about: Mapping[str, Mapping[str, str]],
) -> Iterator[tuple[str, Sequence[Fact], Sequence[str]]]:
    """Each experiment that has a stated model and facts of its own: its name, these facts, and
    lines for a shell, for the model of the largest total."""
    for one in summaries:
        totals = {
            path: model.target_epsilon
            for path, model in statement.datasets[one.lineage].artifacts.items()
            if model.experiment == one.experiment
        }
        if one.experiment in about and totals:
            largest = max(totals, key=lambda path: totals[path])
            facts = [*about[one.experiment].items(), ("stated on", statement.origin.date)]
            yield one.experiment, facts, commands(one, largest)


def _features_of_report(
    statement: SealedStatement, summaries: Sequence[Summary]
) -> Mapping[str, bool]:
    """What there is to be explained."""
    tests = [test for one in summaries for model in one.models for test in model.tests.values()]
    return {
        "ladder": any(one.rungs for one in summaries),
        "research": any(one.open for one in summaries),
        "groups": any(test.groups for test in tests),
        "speaks": any(test.perplexity for test in tests),
        "shares": any(test.range is None and test.perplexity is None for test in tests),
        "limit": any(one.lifetime_epsilon is not None for one in statement.datasets.values()),
    }


def _picture(one: OnPage, captions: Captions, several: bool) -> Mapping[str, Any]:
    """A figure, or a table in words, with its title and caption. A wide table of few rows is
    turned, and a column that says one thing throughout is left out where models are known without
    it."""
    title, caption = captions(one.name, one.package)
    if several and one.experiment:
        title = f"{title}: {one.experiment}"
    picture = {"name": one.name, "title": title, "caption": caption, "folded": one.folded}
    if one.figure:
        return picture | {"svg": _svg(one.figure, title)}
    table = readable(one.table)
    if one.name != "finals":
        table = table.drop(columns=[x for x in SAME if x in table and table[x].nunique() == 1])
    if len(table.columns) > WIDE and len(table) <= FEW:
        names = ["value"] * len(table)
        if table.columns[0] in SAME:
            key = table.pop(table.columns[0])
            names = [f"{key.name} {value}" for value in key]
        table = table.T.set_axis(names, axis=1).reset_index(names="figure")
    rows = [[_cell(str(cell)) for cell in row] for row in table.to_numpy().tolist()]
    return picture | {"svg": None, "headings": [*map(str, table)], "rows": rows}


def _cell(text: str) -> Markup:
    """A cell as safe HTML, for names in it come from configs; a figure's interval apart from it."""
    within = r" (\([^()]+(?:–| to )[^()]+\))$"
    return Markup(re.sub(within, r' <span class="range">\1</span>', str(escape(text))))


def _svg(path: Path, title: str) -> Markup:
    """The drawing alone, with its title for who cannot see it, and its ids made its own: every
    figure of matplotlib's has the same ones."""
    drawing = path.read_text("utf-8")
    drawing = drawing[drawing.index("<svg") :]
    prefix = re.sub(r"\W+", "-", str(path.with_suffix("")))
    for mark in (r'(\bid=")', r"(url\(#)", r'(href="#)'):
        drawing = re.sub(mark, rf"\g<1>{prefix}-", drawing)
    label = f'role="img" aria-label="{escape(title)}. '
    drawing = drawing.replace('role="img" aria-label="', label, 1)
    if label not in drawing:
        drawing = drawing.replace("<svg", f'<svg {label}"', 1)
    # the SVG is dpladder's own, and nothing in it was typed by anybody but as text
    return Markup(drawing)


class Captions:
    """Captions, each in full where it stands first. They are those of Snakemake's report, which
    leaves nothing out; here `told` says what there is.

    Args:
        features: what this report has to explain, by names that the captions' templates read as
            `told`.
    """

    def __init__(self, features: Mapping[str, bool]) -> None:
        self._told, self._seen = features, set[str]()

    def __call__(self, name: str, package: str = REPORT) -> tuple[str, Markup]:
        """The title of that name, which its caption begins with in bold, and the rest as safe HTML;
        the second time nothing but the title."""
        path = resources.files(package).joinpath("captions", f"{name}.rst")
        text = " ".join(Template(path.read_text("utf-8")).render(told=self._told).split())
        title, _, rest = text.removeprefix("**").partition("**")
        title = title.rstrip(".")
        if name in self._seen:
            return title, Markup()
        self._seen.add(name)
        rest = re.sub(r"``(.+?)``", r"<code>\1</code>", str(escape(rest.strip())))
        return title, Markup(rest.replace("\\*", "*"))
