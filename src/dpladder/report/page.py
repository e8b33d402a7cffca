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
from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from dpladder.privacy.statement.documents import SealedStatement
from dpladder.privacy.statement.page import costs, first_line, if_chosen
from dpladder.report.model_chapter import Fact, commands, facts, results
from dpladder.report.summary import Summary
from dpladder.report.tables import (
    classes_table,
    confusion_table,
    findings_table,
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
class ModelShown:
    """Of one experiment: what there is to know, and how to use what it made."""

    experiment: str
    facts: Sequence[Fact]
    commands: Sequence[str]


@dataclass(frozen=True)
class Chapter:
    title: str
    tables: Sequence[Table] = ()
    figures: Sequence[Drawing] = ()
    models: Sequence[ModelShown] = ()

    @property
    def anchor(self) -> str:
        return re.sub(r"\W+", "-", self.title.lower())


def write_page(
    statement: SealedStatement,
    summaries: Sequence[Summary],
    pictures: Sequence[Path],
    path: Path,
    cells: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    about: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    contests: Sequence[Path] = (),
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
        guarantees=[first_line(statement, lineage) for lineage in statement.datasets],
        results=results(summaries),
        costs=[
            line
            for lineage, dataset in statement.datasets.items()
            for line in (*costs(statement, lineage), *if_chosen(lineage, dataset))
        ],
        warnings=[line for summary in summaries for line in summary.warnings],
        sections=[*_sections(statement, summaries, pictures, cells, about, contests)],
        id=statement.id,
    )
    path.write_text(page + "\n", "utf-8")


def _sections(
    statement: SealedStatement,
    summaries: Sequence[Summary],
    pictures: Sequence[Path],
    cells: Mapping[str, Mapping[str, str]],
    about: Mapping[str, Mapping[str, str]],
    contests: Sequence[Path],
) -> Iterator[Chapter]:
    caption = Captions(_told(statement, summaries))
    # <experiment>/figures, or results/figures
    owners = {picture: picture.parent.parent.name for picture in pictures}
    shared = [picture for picture in pictures if owners[picture] == "results"]
    tables = [_table(pd.concat([summary_table(one) for one in summaries]), caption("finals"))]
    for name, of_one in (
        ("classes", classes_table),
        ("confusion", confusion_table),
        ("findings", findings_table),
        ("groups", groups_table),
    ):
        table = pd.concat([of_one(one) for one in summaries])
        tables += [] if table.empty else [_table(table, caption(name))]
    if cells:
        by_name = {one.experiment: one for one in summaries}
        tables = [_table(grid_table(by_name, cells), caption("grid")), *tables]
    models = [*_models(statement, summaries, about)]
    yield Chapter("Final models", tables, _figures(caption, shared, "pareto"), models)
    seen: list[Mapping[str, str]] = []
    for one in summaries:
        cell = cells.get(one.experiment)
        if cell in seen:
            continue  # a repeat: its row stands above, and its figures lie in its folder
        seen += [] if cell is None else [cell]
        own = [picture for picture in pictures if owners[picture] == one.experiment]
        shifted = any(picture.stem == "shift" for picture in own)
        tables = [_table(shift_table(one), caption("shift"))] if shifted else []
        tables += [_table(trials_table(one), caption("trials"))] if one.rungs else []
        names = ("shift", "utility", "reliability", "ladder", "scores", "heatmap", "gap")
        figures = _figures(caption, own, *names)
        if tables or figures:
            yield Chapter(f"Experiment {one.experiment}", tables, figures)
    if research := _figures(caption, shared, "batches", "distance"):
        yield Chapter("Research", figures=research)
    if contested := _figures(caption, contests, "learners", "hpo", "ablations"):
        yield Chapter("Contests", figures=contested)
    spends = [_table(spends_table(statement), caption("spends"))]
    yield Chapter("Privacy", spends, _figures(caption, shared, "budget"))


def _models(
    statement: SealedStatement,
    summaries: Sequence[Summary],
    about: Mapping[str, Mapping[str, str]],
) -> Iterator[ModelShown]:
    for one in summaries:
        models = statement.datasets[one.lineage].artifacts
        totals = {
            path: model.target_epsilon
            for path, model in models.items()
            if model.experiment == one.experiment
        }
        if one.experiment in about and totals:
            told = facts(one, about[one.experiment], statement)
            largest = max(totals, key=lambda path: totals[path])
            yield ModelShown(one.experiment, told, commands(one, largest))


def _told(statement: SealedStatement, summaries: Sequence[Summary]) -> Mapping[str, bool]:
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
    shown = readable(table)
    return Table([*map(str, shown)], shown.astype(str).to_numpy().tolist(), caption)


def _figures(caption: Captions, pictures: Sequence[Path], *names: str) -> list[Drawing]:
    """Those of these names that there are, in this order."""
    by_name = {picture.stem: picture for picture in pictures}
    return [Drawing(name, _svg(by_name[name]), caption(name)) for name in names if name in by_name]


def _svg(path: Path) -> Markup:
    """The drawing alone, its ids made its own: every figure of matplotlib's has the same ones."""
    drawing = path.read_text("utf-8")
    drawing = drawing[drawing.index("<svg") :]
    own = re.sub(r"\W+", "-", str(path.with_suffix("")))
    for mark in (r'(\bid=")', r"(url\(#)", r'(href="#)'):
        drawing = re.sub(mark, rf"\g<1>{own}-", drawing)
    return Markup(drawing)


class Captions:
    """Captions, each in full where it stands first. They are those of Snakemake's report, which
    leaves nothing out; here `told` says what there is."""

    def __init__(self, told: Mapping[str, bool]) -> None:
        self._told, self._seen = told, set[str]()

    def __call__(self, name: str) -> Markup:
        path = resources.files("dpladder.report").joinpath("captions", f"{name}.rst")
        text = " ".join(Template(path.read_text("utf-8")).render(told=self._told).split())
        if name in self._seen:
            text = re.sub(r"^(\*\*.+?\*\*).*", r"\1 As above.", text)
        self._seen.add(name)
        marked = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", str(escape(text)))
        return Markup(re.sub(r"``(.+?)``", r"<code>\1</code>", marked).replace("\\*", "*"))
