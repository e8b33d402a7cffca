"""Projects: a folder each, from wherever the workflow is started; and what stands between a
newcomer and the first run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from PIL import Image
from support import ROOT, Workspace

from dpladder import PrivateClassifier, PrivateRegressor, cli
from dpladder.commands.project import RUN_HELP, command_of, init, lineage_of
from dpladder.config.docs import described_keys
from dpladder.config.load import load
from dpladder.config.model import DELTA
from dpladder.errors import BadInput


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DPLADDER_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


def dpladder(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dpladder", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


def test_a_new_project_needs_its_data_and_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["init", "My Photos"]) == 0
    folder = tmp_path / "My Photos"
    assert {path.name for path in folder.iterdir()} == {
        ".gitignore",
        "README.md",
        "config.yaml",
        "data",
    }
    assert {"/data/", "/private/", "/results/"} <= {
        *(folder / ".gitignore").read_text().splitlines()
    }
    assert str(ROOT / ".venv") in (folder / "README.md").read_text()
    for name in ("first", "second"):
        (folder / "data" / name).mkdir()
        for shade in range(20):  # enough for each part to hold some
            Image.new("RGB", (30, 30), (shade, 0, 0)).save(folder / "data" / name / f"{shade}.png")
    assert cli.main(["check", str(folder)]) == 0
    assert "train: " in capsys.readouterr().out
    assert cli.main(["plan", str(folder)]) == 0
    assert "lineage my-photos" in capsys.readouterr().out.lower()
    os.chdir(folder)
    assert load(["config.yaml"]).main.dataset.lineage == "my-photos"
    assert load(["config.yaml"]).main.privacy.delta == PrivateClassifier().delta == DELTA
    assert PrivateRegressor().delta == DELTA
    [text] = [key.text for key in described_keys() if key.name == "privacy.delta"]
    assert text.endswith(f"take the example. Example: {DELTA:.1e}")
    assert cli.main(["plan"]) == 0


def test_a_folder_that_is_there_is_no_new_project(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["init", "one"]) == 0
    assert cli.main(["init", "one"]) == 2
    assert "Name a new folder" in capsys.readouterr().err


@pytest.mark.ci
def test_the_workflow_works_in_the_projects_folder_from_wherever_it_is_started(
    tmp_path: Path,
) -> None:
    Workspace(tmp_path / "a" / "project", tmp_path / "home").create()
    ended = dpladder("run", "a/project", "--cores", "1", "plan")
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "a/project/results/plan.json").is_file()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "home"]


@pytest.mark.long
def test_projects_share_a_home_and_nothing_else(tmp_path: Path) -> None:
    for name in ("one", "two"):
        made = Workspace(tmp_path / name, tmp_path / "home", {"dataset": {"lineage": name}})
        made.create()
        assert dpladder("run", name, "--cores", "1", "-n").returncode == 0
        assert dpladder("plan", name).returncode == 0
        assert not made.results.exists()


def test_a_config_of_the_clone_is_run_here_and_any_other_where_it_lies(tmp_path: Path) -> None:
    assert command_of([str(ROOT / "config/examples/own_images.yaml")])[0] == tmp_path
    assert command_of([])[0] == tmp_path
    (tmp_path / "project").mkdir()
    (tmp_path / "project/config.yaml").touch()
    (tmp_path / "project/more.yaml").touch()
    for given in (["project"], ["project/config.yaml"], ["project/more.yaml", "project"]):
        assert command_of(given)[0] == tmp_path / "project"


def test_a_cluster_without_sbatch_is_told_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert cli.main(["run", "--slurm"]) == 2
    assert "by sbatch, which is not on this machine's path" in capsys.readouterr().err


@pytest.mark.long
def test_snakemakes_own_words_for_a_cluster_are_told_the_same_before_anything_is_reserved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("bash", "which"):  # what Snakemake needs to start
        (tmp_path / "bin" / name).symlink_to(shutil.which(name) or f"/bin/{name}")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    project = Workspace(tmp_path, tmp_path / "home", options=("--executor", "slurm", "--jobs", "2"))
    project.create()
    ended = project.run()
    assert ended.returncode == 2
    assert "by sbatch, which is not on this machine's path" in ended.stderr
    assert not project.held()


def test_snakemake_is_given_what_it_needs_and_what_was_said(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").touch()
    _, command = command_of(["config.yaml", "-n", "--forcerun", "evaluate"])
    assert command[command.index("--workflow-profile") + 1] == str(
        ROOT / "workflow/profiles/default"
    )
    assert command[-3:] == ["-n", "--forcerun", "evaluate"]
    place = command.index("--configfile")
    assert command[place + 1 : place + 3] == [str(tmp_path / "config.yaml"), "--workflow-profile"]
    _, ended = command_of(["-n", "--", "results/plan.json"])
    assert ended.index("--configfile") < ended.index("--")
    _, split = command_of(["config.yaml", "--", "-n"])
    assert split == [*split[:-1], "-n"]
    assert "--" not in split
    assert str(tmp_path / "config.yaml") in split
    _, command = command_of(["--slurm", "-n"])
    assert command[command.index("--workflow-profile") + 1] == str(ROOT / "workflow/profiles/slurm")
    assert "--slurm" not in command


def test_a_config_that_is_not_there_is_named() -> None:
    with pytest.raises(BadInput, match=r"none\.yaml does not exist"):
        command_of(["none.yaml"])


def test_a_folder_that_is_no_project_is_no_target_of_the_demo() -> None:
    Path("photos").mkdir()
    with pytest.raises(BadInput, match=r"photos/config\.yaml does not exist"):
        command_of(["photos", "--cores", "1"])


def test_a_folder_without_a_config_says_that_the_demo_is_taken(
    capsys: pytest.CaptureFixture[str],
) -> None:
    command_of(["plan"])
    assert "so this is the demo's" in capsys.readouterr().err
    shutil.copy(ROOT / "config" / "config.yaml", "config.yaml")
    command_of(["plan"])
    assert capsys.readouterr().err == ""


def test_run_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "--help"]) == 0
    assert capsys.readouterr().out.strip() == RUN_HELP


def test_every_argument_has_its_help() -> None:
    def without(parser) -> list[str]:
        found = []
        for action in parser._actions:
            if getattr(action, "choices", None) and hasattr(action, "_name_parser_map"):
                for inner in action.choices.values():
                    found += without(inner)
            elif not action.help:
                found.append(f"{parser.prog} {action.dest}")
        return found

    assert without(cli._parser()) == []


def test_python_runs_the_package_as_the_command() -> None:
    ended = dpladder("--version")
    assert (ended.returncode, ended.stdout) == (0, f"dpladder {version('dpladder')}\n")


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--version"])
    version = yaml.safe_load(
        (ROOT / "pyproject.toml").read_text().split("version = ")[1].split("\n")[0]
    )
    assert capsys.readouterr().out.strip() == f"dpladder {version}"


@pytest.mark.parametrize("name", ["42", "on", "1e5", "2024-05-01", "null"])
def test_a_lineage_is_text_whatever_its_folder_is_called(name: str, tmp_path: Path) -> None:
    init(tmp_path / name)
    os.chdir(tmp_path / name)
    assert load(["config.yaml"]).main.dataset.lineage == name


@pytest.mark.parametrize(
    ("folder", "lineage"),
    [
        ("Ünï", "uni"),
        ("Straße 7", "strasse-7"),
        ("My Photos", "my-photos"),
        ("łódź", "my-data"),
        ("写真", "my-data"),
    ],
)
def test_a_lineage_keeps_every_letter_of_its_folders_name(folder: str, lineage: str) -> None:
    assert lineage_of(folder) == lineage


@pytest.mark.parametrize("words", ["--cores 0", "--cores=0", "-c0", "-c 0", "--jobs 0", "-j0"])
def test_a_run_without_a_core_is_refused_and_never_waits(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["run", *words.split()]) == 2
    assert "a run needs at least one core. Give --cores 1 or more" in capsys.readouterr().err


def _stays(path: Path) -> Path:
    random = np.random.default_rng(0)
    stays = {
        "age": random.uniform(20, 90, 400),
        "ward": random.choice(["n", "s"], 400),
        "days": random.integers(0, 30, 400),
    }
    frame = pd.DataFrame(stays)
    frame.to_parquet(path) if path.suffix == ".parquet" else frame.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("file", ["stays.csv", "stays.parquet"])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_project_of_a_table_is_one_that_check_finishes(
    file: str,
    task: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPLADDER_HOME", str(tmp_path / "home"))
    table = _stays(tmp_path / file)
    assert cli.main(["init", "ward", "--task", task, "--table", file]) == 0
    said = yaml.safe_load(Path("ward/config.yaml").read_text())["dataset"]
    assert said["source"] == f"{table.suffix[1:]}:../{file}"
    named = said["target"]["column"] if task == "regression" else said["label"]
    assert named == "days"
    assert "ward is a project: edit config.yaml, then" in capsys.readouterr().out
    assert cli.main(["check", "ward"]) == (2 if file.endswith("parquet") else 0)  # it has types
    assert "dataset.columns: [age, {name: ward, levels: [...]}]" in "".join(capsys.readouterr())


def test_a_regression_without_a_table_is_planned_once_the_columns_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["init", "ward", "--task", "regression"]) == 0
    said = yaml.safe_load(Path("ward/config.yaml").read_text())
    assert said["dataset"]["source"] == "csv:data/table.csv"
    assert said["dataset"]["target"] == {"column": "label", "range": [0, 100]}
    assert said["features"] == {"model": "none"}


def test_what_check_says_has_an_end_however_wide_a_table_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A header of 9 MB and 200,000 classes were told whole."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPLADDER_HOME", str(tmp_path / "home"))
    Path("wide.csv").write_text(",".join(f"c{place}" for place in range(5000)) + "\n")
    Path("many.csv").write_text("age,days\n31,2\n44,9\n")
    rest = "features: {model: none}\nprivacy: {epsilon: 2.0, delta: 1.0e-6}\n"
    for file, more in (("wide", "classes: 2"), ("many", "classes: 5000, label: days")):
        Path("c.yaml").write_text(
            f"dataset: {{lineage: p, source: 'csv:{file}.csv', nominal_size: 500, {more}}}\n{rest}"
        )
        cli.main(["check", "c.yaml"])
        said = "".join(capsys.readouterr())
        assert "and 4,900 more" in said
        assert len(said) < 5000


def test_a_number_that_is_predicted_has_no_classes_in_what_check_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPLADDER_HOME", str(tmp_path / "home"))
    # So many that some of them surely fall into the training part.
    Path("stays.csv").write_text("age,days\n" + "old,2\nyoung,9\n" * 20)
    Path("c.yaml").write_text(
        "dataset: {lineage: p, source: 'csv:stays.csv', nominal_size: 500, columns: [age],\n"
        "  target: {column: days, range: [0, 30]}}\n"
        "features: {model: none}\nprivacy: {epsilon: 2.0, delta: 1.0e-6}\n"
    )
    assert cli.main(["check", "c.yaml"]) == 0
    said = capsys.readouterr().out
    assert "train: 0 that count\n" in said
    assert "one class" not in said


@pytest.mark.parametrize("lines", ["31.5,ill\n32,well\n", "", "age,age,ill\n"])
def test_a_table_without_names_makes_no_project(
    lines: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text(lines)
    assert cli.main(["init", "ward", "--table", "people.csv"]) == 2
    assert not Path("ward").exists()
