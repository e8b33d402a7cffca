"""The report's job: no picture takes another one along, and none of an earlier config stays."""

from __future__ import annotations

import json
import re
from importlib import import_module, resources
from pathlib import Path

import pandas as pd
import pytest
from support import Workspace, node_of

from dpladder import report
from dpladder.config.load import load
from dpladder.config.model import Resources
from dpladder.jobs import write_report as job
from dpladder.jobs.task import Task
from dpladder.plan import pictures
from dpladder.plan.ending import reasons
from dpladder.plan.resolve import resolve_defaults
from dpladder.report import ladder_figure, page
from dpladder.report.summary import Summary

REPORT = Path(report.__file__).parent
LADDER, BUDGET = "results/main/figures/ladder.svg", "results/figures/budget.svg"


def written(finished: Workspace) -> None:
    cfg = node_of(resolve_defaults(load(["config.yaml"])), "write_report").params
    place, record = Path("results/report.html"), Path("results/report.privacy.json")
    inputs = {
        "statement": "results/privacy.json",
        "signed": "results/privacy.md",
        "summaries": ["results/main/summary.json"],
        "records": ["results/main/summary.privacy.json"],
        "tables": ["results/main/summary.csv"],
    }
    job.write_report(
        Task("write_report", {}, cfg, "", inputs, {"page": place, "privacy": record}, Resources())
    )


def test_the_same_results_give_the_same_page(finished: Workspace) -> None:
    pages = Path("results/report.html"), Path("results/report.privacy.json")
    before = [path.read_bytes() for path in pages]
    written(finished)
    assert pages[0].read_bytes() == before[0]
    digests = [json.loads(text)["files"] for text in (before[1], pages[1].read_bytes())]
    assert digests[0] == digests[1]


def test_a_picture_that_cannot_be_drawn_takes_no_other_along(
    finished: Workspace, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("no <ladder>")

    before = Path(BUDGET).read_bytes()
    Path(BUDGET).unlink()
    monkeypatch.setattr(ladder_figure, "plot_ladder", fail)
    written(finished)
    assert Path(BUDGET).read_bytes() == before
    for path in (LADDER, "results/report.html"):
        assert "could not be drawn: ValueError: no &lt;ladder&gt;" in Path(path).read_text("utf-8")
    Path("logs/write_report.log").write_text(capfd.readouterr().out)
    *_, last = reasons({})
    assert last.startswith(
        "write_report (1 of 13 pictures): results/main/figures/ladder.svg could not be drawn"
    )


def test_a_figure_and_a_table_are_shown_that_are_a_row_a_function_and_a_caption(
    finished: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As CONTRIBUTING has it, and in no other list."""

    def plot(summary: Summary, path: Path) -> None:
        path.write_text(f"<svg><text>a new figure of {summary.experiment}</text></svg>", "utf-8")

    def table(summary: Summary) -> pd.DataFrame:
        return pd.DataFrame({"a new column": [summary.experiment]})

    monkeypatch.setattr(ladder_figure, "plot_new", plot, raising=False)
    monkeypatch.setattr(ladder_figure, "new_table", table, raising=False)
    when = lambda _, name: (name,)  # noqa: E731
    rows = (
        pictures.Kind(
            "ladder", "figures/new.svg", "How it was tuned", when, "ladder_figure:plot_new"
        ),
        pictures.Kind("ladder", "", "How it was tuned", when, "ladder_figure:new_table"),
    )
    monkeypatch.setattr(pictures, "OF_EXPERIMENT", (*pictures.OF_EXPERIMENT, *rows))
    written(finished)
    assert Path("results/main/figures/new.svg").exists()
    content = Path("results/report.html").read_text("utf-8")
    assert "a new figure of main" in content
    assert "a new column" in content


def test_every_row_has_a_function_and_a_caption_and_every_function_a_row() -> None:
    rows = [kind for table in pictures.kinds() for kind in table]
    own = [kind for kind in rows if kind.package == "dpladder.report"]
    functions = {
        f"{module.stem}:{name}"
        for module in REPORT.glob("*_figure.py")
        for name in re.findall(r"^def (plot_\w+)", module.read_text("utf-8"), re.M)
    }
    assert functions == {kind.draw for kind in own if kind.file.endswith(".svg")}
    assert {kind.name for kind in rows} - {kind.name for kind in own} == {"gap", "distance"}
    assert {kind.chapter for kind in own} <= {*page.CHAPTERS, ""}
    for kind in rows:
        module, _, name = kind.draw.partition(":")
        assert callable(getattr(import_module(f"{kind.package}.{module}"), name))
        if kind.on_page or kind.chapter:
            captions = resources.files(kind.package) / "captions"
            assert (captions / f"{kind.name}.rst").is_file()


@pytest.mark.ci
def test_pictures_of_an_earlier_config_are_removed_and_nothing_else(finished: Workspace) -> None:
    shift, retired, own = (
        Path(f"results/main/figures/{name}.svg") for name in ("shift", "scores", "mine")
    )
    for path in (shift, retired, own):
        path.write_text("<svg/>")
    written(finished)
    assert not shift.exists()
    assert not retired.exists()  # which an earlier dpladder drew
    assert own.exists()
    assert Path(LADDER).exists()
