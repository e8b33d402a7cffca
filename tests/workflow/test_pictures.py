"""The report's job: no picture takes another one along, and none of an earlier config stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import Workspace

from dpladder.config.load import load
from dpladder.config.model import Resources
from dpladder.jobs import write_report as job
from dpladder.jobs.task import Task
from dpladder.plan.dag import params
from dpladder.plan.settle import settled
from dpladder.plan.startup import tell

LADDER, SCORES = "results/main/figures/ladder.svg", "results/main/figures/scores.svg"


def written(finished: Workspace) -> None:
    cfg = params(settled(load(["config.yaml"])), "write_report", {})
    page, record = Path("results/report.html"), Path("results/report.privacy.json")
    inputs = {
        "statement": "results/privacy.json",
        "signed": "results/privacy.md",
        "summaries": ["results/main/summary.json"],
        "tables": ["results/main/summary.csv"],
    }
    job.write_report(
        Task("write_report", {}, cfg, "", inputs, {"page": page, "privacy": record}, Resources())
    )


def test_a_picture_that_cannot_be_drawn_takes_no_other_along(
    finished: Workspace, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("no <ladder>")

    before = Path(SCORES).read_bytes()
    Path(SCORES).unlink()
    monkeypatch.setitem(job.FIGURES, "ladder", fail)
    written(finished)
    assert Path(SCORES).read_bytes() == before
    for path in (LADDER, "results/report.html"):
        assert "could not be drawn: ValueError: no &lt;ladder&gt;" in Path(path).read_text("utf-8")
    Path("logs/write_report.log").write_text(capfd.readouterr().out)
    tell({})
    last = capfd.readouterr().err.splitlines()[-1]
    assert last.startswith(
        "dpladder: write_report (1 of 7 pictures): results/main/figures/ladder.svg could not be "
        "drawn"
    )


@pytest.mark.ci
def test_pictures_of_an_earlier_config_are_removed_and_nothing_else(finished: Workspace) -> None:
    stale, own = Path("results/main/figures/shift.svg"), Path("results/main/figures/mine.svg")
    for path in (stale, own):
        path.write_text("<svg/>")
    written(finished)
    assert not stale.exists()
    assert own.exists()
    assert Path(LADDER).exists()
