"""The report of a finished run: one page that opens with the guarantee and needs nothing but
itself."""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest
from support import Workspace

from dpladder.privacy.statement.check import read_statement
from dpladder.privacy.statement.documents import SealedStatement
from dpladder.privacy.statement.facts import LineageFacts
from dpladder.report.summary import read_test
from dpladder.section import from_document

EMPTY = {"meta", "br", "img", "link", "input", "hr"}


class Page(HTMLParser):
    """What a browser makes of it: text in order, ids, what is fetched, and whether every element is
    closed."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: Counter[str] = Counter()
        self.fetched: list[str] = []
        self.words: list[str] = []
        self.feed(content)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.ids[found.get("id", "")] += "id" in found
        self.fetched += [found[name] for name in ("src", "href", "xlink:href") if name in found]
        self.open += [tag] if tag not in EMPTY else []

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open = self.open[:-1] if tag not in EMPTY else self.open

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data.split()


@pytest.fixture
def page(finished: Workspace) -> Page:
    return Page(Path("results/report.html").read_text("utf-8"))


def test_the_page_is_whole_and_fetches_nothing(page: Page) -> None:
    assert page.open == []
    assert {name for name, times in page.ids.items() if times > 1} == set()
    assert [place for place in page.fetched if not place.startswith(("#", "data:image/"))] == []
    assert {place[1:] for place in page.fetched if place.startswith("#")} <= set(page.ids)
    assert "<script" not in Path("results/report.html").read_text("utf-8")


def test_the_guarantee_comes_first_and_the_results_before_how_they_came_about(
    page: Page, finished: Workspace
) -> None:
    statement = from_document(SealedStatement, read_statement(finished.results))
    said = " ".join(page.words)
    places = [
        said.index(words)
        for words in (LineageFacts(statement, "tiny").guarantee, "test accuracy", "noised share")
    ]
    assert places == sorted(places)
    assert statement.id in said


def test_it_holds_every_figure_of_the_run_and_no_picture_of_a_single_point(
    page: Page, finished: Workspace
) -> None:
    content = Path("results/report.html").read_text("utf-8")
    drawn = {path.stem for path in finished.results.rglob("*.svg")}
    assert drawn == {"ladder", "budget"} == set(re.findall('data-name="([a-z]+)"', content))


def test_the_test_score_is_the_final_models_and_no_trials(finished: Workspace) -> None:
    summary = json.loads((finished.results / "main" / "summary.json").read_text("utf-8"))
    tested = read_test(finished.results / "main" / "final" / "1" / "metrics.json")
    assert summary["targets"][0]["test"]["accuracy"] == pytest.approx(tested.accuracy)


@pytest.mark.ci
def test_snakemake_s_own_report_opens_with_the_page_itself(finished: Workspace) -> None:
    """The same look and figures, and below it the guarantee, read when the report is made."""
    finished.finish("--report", "snakemake.html")
    landing = Path("snakemake.html").read_text("utf-8")
    first_page = json.loads(re.findall(r"var workflow_desc = (\".*\");?\n", landing)[0])
    [shown] = re.findall(r'srcdoc="(.*?)"', first_page, re.S)
    page = Path("results/report.html").read_text("utf-8")
    lines, lines_of_page = ([*map(str.strip, one.split("\n"))] for one in (shown, page.strip()))
    assert [*map(html.unescape, lines)] == lines_of_page
    guarantee = Path("results/privacy.md").read_text("utf-8").split("**")[1]
    assert guarantee in " ".join(Page(first_page).words)
