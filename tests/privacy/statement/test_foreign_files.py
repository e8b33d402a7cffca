"""Results from elsewhere, as an officer is given them: whatever lies in a file's place is one
sentence, and whatever nothing vouches for is named."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from statements import CHANGES, DEPLOYED, Finished
from support import ROOT

import dpladder
from dpladder.cli import main
from dpladder.errors import BadInput
from dpladder.learn.weights import save
from dpladder.privacy.statement.build import seal
from dpladder.privacy.statement.check import KINDS, read_statement

DEEP = "[" * 100_000
INSTEAD: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "an endless device": lambda path: path.symlink_to("/dev/zero"),
    "a folder": Path.mkdir,
    "deeply nested": lambda path: path.write_text(DEEP),
    "nested in a document": lambda path: path.write_text('{"datasets": ' + "[" * 500 + "]" * 500),
    "no JSON": lambda path: path.write_bytes(b"\xff{"),
    "a list": lambda path: path.write_text("[]"),
    "not a number": lambda path: path.write_text('{"files": NaN}'),
    "above all floats": lambda path: path.write_text('{"files": 1e999}'),
    "larger than memory": lambda path: os.truncate(os.open(path, os.O_WRONLY | os.O_CREAT), 2**40),
}
PLACES = {
    "privacy.json": ("verify", "compare", "mlflow", "register", "ledger verify"),
    "ledger.json": ("verify", "compare", "mlflow", "register", "ledger verify"),
    "report.privacy.json": ("verify", "mlflow"),
    "0/privacy.json": ("verify", "mlflow"),
    "privacy.md": ("verify", "mlflow"),
    "stray/privacy.json": ("verify", "mlflow"),
    "main/final/1/weights.safetensors": ("verify", "mlflow"),
    "main/summary.json": ("compare",),
}
CASES = [
    (place, command, instead)
    for place, commands in PLACES.items()
    for command in commands
    for instead in INSTEAD
    if (place, instead) != ("stray/privacy.json", "a folder")
]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    made = Finished(tmp_path_factory.mktemp("finished"), CHANGES)
    made.state()
    return made


@pytest.fixture
def results(finished: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the finished run on a machine that has no home of its own."""
    folder = tmp_path / "results"
    shutil.copytree(finished.results, folder)
    monkeypatch.setenv("DPLADDER_HOME", str(tmp_path / "nobodys"))
    return folder


@pytest.mark.few(30)
@pytest.mark.timeout(20)
@pytest.mark.parametrize(("place", "command", "instead"), CASES)
def test_what_lies_in_a_files_place_is_one_sentence(
    results: Path, place: str, command: str, instead: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = results / place
    file.parent.mkdir(exist_ok=True)
    file.unlink(missing_ok=True)
    INSTEAD[instead](file)
    assert main([*command.split(), str(results)]) in (1, 2)
    told = capsys.readouterr().err
    assert Path(place).name in told
    assert len(told) < 2000


@pytest.mark.timeout(20)
@pytest.mark.parametrize("instead", INSTEAD)
def test_a_model_that_is_none_is_one_sentence(
    tmp_path: Path, instead: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "weights.safetensors"
    INSTEAD[instead](file)
    with pytest.raises(BadInput, match=r"weights\.safetensors"):
        dpladder.load(file)
    assert main(["predict", str(file), "rows.csv"]) == 2
    assert "weights.safetensors" in capsys.readouterr().err


def test_a_model_that_says_of_itself_what_no_run_writes_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "weights.safetensors"
    for facts in ({"inference": {}}, {"inference": {"network": 1, "map": {}}}, {"inference": []}):
        save(file, (np.zeros((1, 1), np.float32),), facts)
        with pytest.raises(BadInput, match=r"weights\.safetensors"):
            dpladder.load(file)


ADDED = {
    "results/main/final/9/weights.safetensors": 1,
    "results/main/figures/shift.svg": 1,
    "results/main/rungs/0/trials/7/score.json": 1,
    "results/extra.csv": 1,
    "results/PRIVACY.MD": 1,
    "results/main/sums/sums.h5": 1,
    "results/notes.txt": 0,
    "results/main/.weights.safetensors.0a1b": 0,
    "results/comparison/hpo.md": 0,
    "results/comparison/weights.safetensors": 1,
}


@pytest.mark.parametrize("path", ADDED)
def test_a_file_that_nothing_vouches_for_is_named(
    results: Path, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (results.parent / path).parent.mkdir(parents=True, exist_ok=True)
    (results.parent / path).write_text("0")
    assert main(["verify", str(results)]) == ADDED[path]
    told = capsys.readouterr()
    assert path in (told.err if ADDED[path] else told.out)


def test_a_link_to_a_folder_is_named_and_not_followed(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "weights.safetensors").write_text("0")
    (results / "second").symlink_to(tmp_path / "outside")
    assert main(["verify", str(results)]) == 1
    assert "results/second: nothing vouches for it" in capsys.readouterr().err


@pytest.mark.parametrize("path", ["/etc/hostname", "results/../../key", "elsewhere/plan.json"])
def test_a_statement_is_about_files_below_its_results_alone(
    finished: Finished, results: Path, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    statement = read_statement(results)
    files = {**statement["files"], path: "0" * 64}
    (results / "privacy.json").write_text(json.dumps(seal(statement | {"files": files}, b"")))
    assert main(["verify", str(results)]) == 1
    assert f"names {path}, which does not lie in results/" in capsys.readouterr().err


def _renamed(results: Path) -> Path:
    return results.rename(results.with_name("2026-03 (signed)"))


def _linked(results: Path) -> Path:
    results.rename(results.with_name("scratch"))
    results.symlink_to("scratch")
    return results


def _from_inside(results: Path) -> Path:
    os.chdir(results)
    return Path()


@pytest.mark.parametrize("move", [_renamed, _linked, _from_inside])
def test_a_folder_that_is_called_otherwise_is_as_good_and_as_bad_as_before(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    move: Callable[[Path], Path],
) -> None:
    """An officer's copy, and the link to a cluster's scratch space, told of 114 forgeries."""
    made = Finished(tmp_path, CHANGES | {"deployment": DEPLOYED})
    made.state()
    monkeypatch.chdir(tmp_path)
    results = move(made.results)
    assert main(["verify", str(results)]) == 0
    assert main(["register", str(results), "--folder", str(tmp_path / "filed")]) == 0
    capsys.readouterr()
    (next(results.glob("main/final/*/weights.safetensors"))).write_text("0")
    (results / "main/extra.csv").write_text("0")
    assert main(["verify", str(results)]) == 1
    changed, extra = capsys.readouterr().err.splitlines()
    name = results.absolute().name
    assert changed.startswith(f"{name}/main/final/")
    assert "weights.safetensors: changed since the statement was written" in changed
    assert extra.startswith(f"{name}/main/extra.csv: nothing vouches for it")


def test_every_kind_of_file_that_a_job_publishes_has_to_be_vouched_for() -> None:
    rules = (ROOT / "workflow" / "rules").glob("*.smk")
    outputs = [name for file in rules for name in re.findall('"(results/[^"]+)"', file.read_text())]
    assert {Path(output).suffix for output in outputs} == KINDS
