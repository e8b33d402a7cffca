"""`dpladder verify` on a finished run: whatever was published is what the run wrote, or is
named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support import Workspace

import dpladder
from dpladder.cli import main
from dpladder.errors import Refused
from dpladder.learn import weights
from dpladder.privacy.statement.build import seal

FINAL = "results/main/final/1/weights.safetensors"
TRIAL = "results/main/rungs/0/trials/0/weights.safetensors"


def other_weights(path: Path) -> None:
    """Of the same form and under the same metadata."""
    model, facts = weights.load(path)
    weights.save(path, tuple(layer + 1 for layer in model), facts)
    assert weights.load(path)[1] == facts


def better_scores(path: Path) -> None:
    found = json.loads(path.read_text())
    found["tables"]["right_and_wrong"]["cells"][0] += 20
    path.write_text(json.dumps(found))


def kinder_words(path: Path) -> None:
    path.write_text(path.read_text().replace("1e-05", "1e-09"))


MADE_LAST = (
    "results/report.html",
    "results/report.privacy.json",
    "results/summary.csv",
    "results/main/summary.csv",
    "results/main/summary.json",
)
EDITS: dict[str, Callable[[Path], None]] = {
    FINAL: other_weights,
    "results/main/final/1/metrics.json": better_scores,
    "results/main/summary.json": kinder_words,
    "results/main/summary.csv": lambda path: path.write_text(path.read_text() + "main,1\n"),
    "results/privacy.md": kinder_words,
    "results/report.html": kinder_words,
    "results/figures/budget.svg": lambda path: path.write_text("<svg/>"),
    "results/report.privacy.json": lambda path: path.write_text("{}"),
    "results/plan.json": kinder_words,
    "results/plan.md": kinder_words,
    "results/plan.privacy.json": lambda path: path.write_text('{"free": ""}'),
    "results/main/summary.privacy.json": lambda path: path.write_text('{"free": ""}'),
}


def test_a_finished_run_is_what_its_statement_is_about(
    finished: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", "results"]) == 0
    assert "nothing vouches" not in capsys.readouterr().out
    document = json.loads(Path("results/privacy.json").read_text())
    on_disk = {str(path) for path in Path("results").rglob("*.safetensors")}
    assert on_disk <= document["files"].keys()


@pytest.mark.parametrize("path", EDITS)
def test_whatever_is_edited_is_named(
    finished: Workspace, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = Path(path).read_bytes()
    EDITS[path](Path(path))
    assert Path(path).read_bytes() != before
    assert main(["verify", "results"]) == 1
    assert path in capsys.readouterr().err


@pytest.mark.usefixtures("finished")
def test_another_models_weights_in_its_place_are_named_and_speak_for_nobody(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shutil.copy(TRIAL, FINAL)
    assert main(["verify", "results"]) == 1
    assert FINAL in capsys.readouterr().err


@pytest.mark.usefixtures("finished")
def test_no_card_repeats_a_statement_about_other_weights() -> None:
    assert dpladder.load(FINAL).privacy is not None
    other_weights(Path(FINAL))
    with pytest.raises(Refused, match="changed since the statement"):
        dpladder.load(FINAL)
    assert main(["export", "results", "out"]) == 1
    assert not Path("out").exists()
    # Elsewhere it is a model of which no statement speaks.
    shutil.copy(FINAL, "elsewhere.safetensors")
    assert dpladder.load("elsewhere.safetensors").privacy is None


@pytest.mark.usefixtures("finished")
def test_no_card_tells_other_scores_than_those_that_were_released() -> None:
    better_scores(Path("results/main/final/1/metrics.json"))
    with pytest.raises(Refused, match=r"metrics\.json changed since the statement"):
        dpladder.load(FINAL)
    assert main(["export", "results", "out"]) == 1
    assert not Path("out").exists()


@pytest.mark.usefixtures("finished")
def test_no_comparison_shows_a_summary_that_was_edited(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "results"]) == 0
    kinder_words(Path("results/main/summary.json"))
    assert main(["compare", "results"]) == 2
    assert "results/main/summary.json is not of the run that" in capsys.readouterr().err


@pytest.mark.usefixtures("finished")
def test_no_card_repeats_a_statement_that_was_edited() -> None:
    kinder_words(Path("results/privacy.json"))
    with pytest.raises(Refused, match="changed since it was written"):
        dpladder.load(FINAL)


def test_home_tells_a_statement_that_somebody_else_sealed(
    finished: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    statement = Path("results/privacy.json")
    document = json.loads(statement.read_text())
    statement.write_text(json.dumps(seal(document, b"no key of this home's")))
    with pytest.raises(Refused, match="another home wrote it"):
        dpladder.load(FINAL)
    assert main(["mlflow", "results"]) == 1
    assert "privacy.json: changed since it was written" in capsys.readouterr().err
    # Elsewhere a digest is all that anybody can check.
    monkeypatch.setenv("DPLADDER_HOME", str(finished.folder / "elsewhere"))
    assert dpladder.load(FINAL).privacy is not None
    monkeypatch.setenv("DPLADDER_HOME", "no path from the root")
    assert dpladder.load(FINAL).privacy is not None


@pytest.mark.usefixtures("finished")
def test_a_report_of_another_statement_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """As a run leaves it that was cut off between the statement and its report, or somebody who
    keeps an old page beside a new statement."""
    record = Path("results/report.privacy.json")
    document = json.loads(record.read_text()) | {"statement": "0" * 64}
    record.write_text(json.dumps(document))
    assert main(["verify", "results"]) == 1
    assert "report.privacy.json: changed" in capsys.readouterr().err
    record.write_text(json.dumps(seal(document, b"no key of this home's")))
    assert main(["verify", "results"]) == 1, "sealed by somebody else"
    assert "report.privacy.json: changed" in capsys.readouterr().err


@pytest.mark.usefixtures("finished")
def test_what_is_made_last_is_vouched_for_or_named(capsys: pytest.CaptureFixture[str]) -> None:
    Path("results/report.privacy.json").unlink()
    assert main(["verify", "results"]) == 1
    told = capsys.readouterr().err
    assert "results/report.html: nothing vouches for it" in told
    assert "results/main/summary.json: nothing vouches for it" in told
    assert "results/main/figures/ladder.svg: nothing vouches for it" in told
    assert "results/summary.csv: nothing vouches for it" in told


@pytest.mark.usefixtures("finished")
def test_what_was_not_checked_for_want_of_a_report_is_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = "no report, summary, table or figure was checked"
    assert main(["verify", "results"]) == 0
    assert said not in capsys.readouterr().out
    for path in map(Path, MADE_LAST):
        path.unlink()
    for folder in [*Path("results").rglob("*")]:
        if folder.name in ("figures", "tables"):
            shutil.rmtree(folder)
    assert main(["verify", "results"]) == 0
    assert said in capsys.readouterr().out
