"""The report: one page that opens with the guarantee and the result, and needs nothing but itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from dpladder.privacy.statement.documents import SealedStatement
from dpladder.privacy.statement.page import first_line, if_chosen
from dpladder.report.summary import Summary
from dpladder.report.tables import (
    classes_table,
    grid_table,
    groups_table,
    readable,
    shift_table,
    spends_table,
    summary_table,
    trials_table,
)

TEMPLATE = "page.html.jinja"


@dataclass(frozen=True)
class Table:
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: Markup


@dataclass(frozen=True)
class Drawing:
    name: str
    svg: Markup
    caption: Markup


@dataclass(frozen=True)
class Chapter:
    title: str
    tables: Sequence[Table] = ()
    figures: Sequence[Drawing] = ()

    @property
    def anchor(self) -> str:
        return re.sub(r"\W+", "-", self.title.lower())


def write_page(
    statement: SealedStatement,
    summaries: Sequence[Summary],
    pictures: Sequence[Path],
    path: Path,
    cells: Mapping[str, Mapping[str, str]] | None = None,
) -> None:
    """The statement's first lines, the final models, each experiment's ladder, where the budget
    went."""
    found = Environment(
        loader=PackageLoader("dpladder.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    page = found.get_template(TEMPLATE).render(
        title=", ".join(statement.datasets) + ": tuned and trained with differential privacy",
        release=statement.mode == "release",
        guarantees=[
            line
            for lineage, dataset in statement.datasets.items()
            for line in (first_line(statement, lineage), *if_chosen(lineage, dataset))
        ],
        sections=[*_sections(statement, summaries, pictures, cells or {})],
        id=statement.id,
    )
    path.write_text(page + "\n", "utf-8")


def _sections(
    statement: SealedStatement,
    summaries: Sequence[Summary],
    pictures: Sequence[Path],
    cells: Mapping[str, Mapping[str, str]],
) -> Iterator[Chapter]:
    owners = {
        picture: picture.parent.parent.name for picture in pictures
    }  # <experiment>/figures, or results/figures
    shared = [picture for picture in pictures if owners[picture] == "results"]
    finals = pd.concat([summary_table(summary) for summary in summaries])
    by_class = pd.concat([classes_table(summary) for summary in summaries])
    by_group = pd.concat([groups_table(summary) for summary in summaries])
    counted = {"classes": by_class, "groups": by_group}
    tables = [_table(finals, "finals")]
    tables += [_table(table, name) for name, table in counted.items() if not table.empty]
    if cells:
        by_name = {summary.experiment: summary for summary in summaries}
        tables = [_table(grid_table(by_name, cells), "grid"), *tables]
    yield Chapter("Final models", tables, _figures(shared, "pareto"))
    for summary in summaries:
        own = [picture for picture in pictures if owners[picture] == summary.experiment]
        shifted = any(picture.stem == "shift" for picture in own)
        tables = [_table(shift_table(summary), "shift")] if shifted else []
        tables += [_table(trials_table(summary), "trials")] if summary.rungs else []
        figures = _figures(own, "shift", "utility", "ladder", "scores", "heatmap", "gap")
        if tables or figures:
            yield Chapter(f"Experiment {summary.experiment}", tables, figures)
    if research := _figures(shared, "batches", "distance"):
        yield Chapter("Research", figures=research)
    yield Chapter(
        "Privacy", [_table(spends_table(statement), "spends")], _figures(shared, "budget")
    )


def _table(table: pd.DataFrame, caption: str) -> Table:
    shown = readable(table)
    return Table([*map(str, shown)], shown.astype(str).to_numpy().tolist(), _caption(caption))


def _figures(pictures: Sequence[Path], *names: str) -> list[Drawing]:
    """Those of these names that there are, in this order."""
    by_name = {picture.stem: picture for picture in pictures}
    return [Drawing(name, _svg(by_name[name]), _caption(name)) for name in names if name in by_name]


def _svg(path: Path) -> Markup:
    """The drawing alone, its ids made its own: every figure of matplotlib's has the same ones."""
    drawing = path.read_text("utf-8")
    drawing = drawing[drawing.index("<svg") :]
    own = re.sub(r"\W+", "-", str(path.with_suffix("")))
    for mark in (r'(\bid=")', r"(url\(#)", r'(href="#)'):
        drawing = re.sub(mark, rf"\g<1>{own}-", drawing)
    return Markup(drawing)


def _caption(name: str) -> Markup:
    """What a figure's caption says in Snakemake's report, from the little of reStructuredText that
    captions use."""
    text = resources.files("dpladder.report").joinpath("captions", f"{name}.rst").read_text("utf-8")
    marked = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", str(escape(text.strip())))
    return Markup(re.sub(r"``(.+?)``", r"<code>\1</code>", marked).replace("\\*", "*"))
