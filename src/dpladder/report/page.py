"""The report: one page that opens with the guarantee and the result, and needs nothing but
itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from types import MappingProxyType

import pandas as pd
from jinja2 import Template
from markupsafe import Markup, escape

from dpladder.privacy.statement.documents import SealedStatement
from dpladder.privacy.statement.facts import lineage_facts
from dpladder.privacy.statement.templates import fill
from dpladder.report.model_chapter import Fact, commands, facts, results
from dpladder.report.summary import Summary
from dpladder.report.tables import readable

FIRST, LAST = "Final models", "Privacy"  # chapters
REPORT = "dpladder.report"  # whose captions are the page's own


@dataclass(frozen=True)
class Table:
    """A table of the page, its cells as a reader sees them.

    Attributes:
        headings: of the columns, in words.
        rows: each as long as `headings`; what is not known is empty.
        caption: HTML that is safe already.
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: Markup


@dataclass(frozen=True)
class Drawing:
    """A figure of the page, its SVG inside the page itself.

    Attributes:
        name: of its caption, a file of report/captions.
        svg: the drawing, whose ids are unique on the page.
        caption: HTML that is safe already.
    """

    name: str
    svg: Markup
    caption: Markup


@dataclass(frozen=True)
class OnPage:
    """One picture as the page has it: a figure, or else a table.

    Attributes:
        name: of its caption, a file of report/captions.
        experiment: whose it is; empty of one that shows all experiments.
        chapter: where it stands, of one that shows all; a single experiment's has a chapter of its
            own.
        table: what is shown where there is no figure. An empty one is left out of the page.
        figure: the SVG that is drawn already.
        package: whose captions/ has its caption.
    """

    name: str
    experiment: str
    chapter: str
    table: pd.DataFrame
    figure: Path | None = None
    package: str = REPORT


@dataclass(frozen=True)
class ModelShown:
    """One experiment: what there is to know, and how to use what it made.

    Attributes:
        experiment: its name.
        facts: pairs of a question and its answer.
        commands: lines for a shell, for the model of the largest total.
    """

    experiment: str
    facts: Sequence[Fact]
    commands: Sequence[str]


@dataclass(frozen=True)
class Chapter:
    """A part of the page with a heading of its own; chapters stand in the order of `_sections`."""

    title: str
    tables: Sequence[Table] = ()
    figures: Sequence[Drawing] = ()
    models: Sequence[ModelShown] = ()

    @property
    def anchor(self) -> str:
        """What a link within the page points at."""
        return re.sub(r"\W+", "-", self.title.lower())


def write_page(
    statement: SealedStatement,
    summaries: Sequence[Summary],
    on_page: Sequence[OnPage],
    path: Path,
    cells: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    about: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    contests: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """The report as one HTML file that loads nothing: the statement's first lines, the final
    models, each experiment's ladder, where the budget went.

    Everything on it follows from releases, the config and the statement, so it costs nothing, and
    anybody may read it. Equal inputs give equal bytes: the report's record seals them.

    Args:
        statement: what is guaranteed of each lineage, and what everything cost.
        summaries: of all experiments, in the config's order.
        on_page: tables, and figures that are drawn already.
        path: where the page goes. A file there is replaced.
        cells: each experiment's values on the axes of `grid:`, by its name. Of experiments with
            equal values, which are repeats, only the first has a chapter.
        about: facts of each experiment from the config, by its name and then by theirs.
        contests: figures of comparisons in research, each with the package of its caption.
    """
    lineages = lineage_facts(statement)
    page = {
        "title": ", ".join(statement.datasets) + ": tuned and trained with differential privacy",
        "release": statement.mode == "release",
        # the limit that was declared comes before any result (contract: lifetime-first)
        "guarantees": [lineage.guarantee for lineage in lineages],
        "results": results(summaries),
        "costs": [
            line for lineage in lineages for line in (*lineage.costs, lineage.choice) if line
        ],
        "warnings": [line for summary in summaries for line in summary.warnings],
        "sections": [*_sections(statement, summaries, on_page, cells, about, contests)],
        "id": statement.id,
    }
    path.write_text(fill("report/page.html.jinja", page), "utf-8")


def _sections(
    statement: SealedStatement,
    summaries: Sequence[Summary],
    on_page: Sequence[OnPage],
    cells: Mapping[str, Mapping[str, str]],
    about: Mapping[str, Mapping[str, str]],
    contests: Mapping[str, str],
) -> Iterator[Chapter]:
    """The chapters in order: final models, each experiment's ladder, the rest, contests, and
    privacy last. A chapter appears where it has something to show, but for the first and the
    last."""
    caption = Captions(_features_of_report(statement, summaries))
    models = [*_models(statement, summaries, about)]

    def chapter(title: str, of: Sequence[OnPage], models: Sequence[ModelShown] = ()) -> Chapter:
        tables = [
            _table(one.table, caption(one.name, one.package)) for one in of if not one.table.empty
        ]
        figures = [
            Drawing(one.name, _svg(one.figure), caption(one.name, one.package))
            for one in of
            if one.figure
        ]
        return Chapter(title, tables, figures, models)

    shared = [one for one in on_page if not one.experiment]
    yield chapter(FIRST, [one for one in shared if one.chapter == FIRST], models)
    seen: list[Mapping[str, str]] = []
    for summary in summaries:
        cell = cells.get(summary.experiment)
        if cell in seen:
            continue  # a repeat: its row stands above, and its figures lie in its folder
        seen += [] if cell is None else [cell]
        if pictures_here := [one for one in on_page if one.experiment == summary.experiment]:
            yield chapter(f"Experiment {summary.experiment}", pictures_here)
    rest = dict.fromkeys(one.chapter for one in shared if one.chapter not in (FIRST, LAST))
    for title in rest:
        yield chapter(title, [one for one in shared if one.chapter == title])
    if contests:
        contested = [
            Drawing(path.stem, _svg(path), caption(path.stem, package))
            for path, package in zip(map(Path, contests), contests.values(), strict=True)
        ]
        yield Chapter("Contests", figures=contested)
    yield chapter(LAST, [one for one in shared if one.chapter == LAST])


def _models(
    statement: SealedStatement,
    summaries: Sequence[Summary],
    about: Mapping[str, Mapping[str, str]],
) -> Iterator[ModelShown]:
    """Facts and commands of each experiment that has a stated model and facts of its own."""
    for one in summaries:
        models = statement.datasets[one.lineage].artifacts
        totals = {
            path: model.target_epsilon
            for path, model in models.items()
            if model.experiment == one.experiment
        }
        if one.experiment in about and totals:
            facts_found = facts(one, about[one.experiment], statement)
            largest = max(totals, key=lambda path: totals[path])
            yield ModelShown(one.experiment, facts_found, commands(one, largest))


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
        "limit": any(one.lifetime_epsilon is not None for one in statement.datasets.values()),
    }


def _table(table: pd.DataFrame, caption: Markup) -> Table:
    """A table in words, all cells text. The template escapes them: names in them come from
    configs."""
    on_page = readable(table)
    return Table([*map(str, on_page)], on_page.astype(str).to_numpy().tolist(), caption)


def _svg(path: Path) -> Markup:
    """The drawing alone, its ids made its own: every figure of matplotlib's has the same ones."""
    drawing = path.read_text("utf-8")
    drawing = drawing[drawing.index("<svg") :]
    prefix = re.sub(r"\W+", "-", str(path.with_suffix("")))
    for mark in (r'(\bid=")', r"(url\(#)", r'(href="#)'):
        drawing = re.sub(mark, rf"\g<1>{prefix}-", drawing)
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

    def __call__(self, name: str, package: str = REPORT) -> Markup:
        """The caption of that name as safe HTML. The second time it is its beginning in bold, and
        "As above"."""
        path = resources.files(package).joinpath("captions", f"{name}.rst")
        text = " ".join(Template(path.read_text("utf-8")).render(told=self._told).split())
        if name in self._seen:
            text = re.sub(r"^(\*\*.+?\*\*).*", r"\1 As above.", text)
        self._seen.add(name)
        marked = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", str(escape(text)))
        return Markup(re.sub(r"``(.+?)``", r"<code>\1</code>", marked).replace("\\*", "*"))
