"""Finished projects of every format: each later version opens, verifies, restores and continues
them."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
import yaml
from support import ROOT, Workspace, enter

from dpladder.cli import main
from dpladder.plan.rules import RULES
from dpladder.report.summary import read_summary

NAMES = sorted(
    path.name.removesuffix(".tar.xz") for path in (ROOT / "tests" / "formats").glob("*.tar.xz")
)
WEIGHTS = {"ladder": "final/1", "auto": "final/2"}


def unpacked(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A finished project as it was kept; its folder is the working directory."""
    archive = ROOT / "tests" / "formats" / f"{name}.tar.xz"
    # Python's own tarfile rounds times, and a source is known by the nanosecond that it changed at.
    subprocess.run(["tar", "xJf", str(archive), "-C", str(folder)], check=True)
    own = folder / name.partition("-")[2]
    found = Workspace(own / "project", own / "home")
    enter(found, monkeypatch)
    return found


@pytest.fixture(params=NAMES)
def old(request, tmp_path, monkeypatch) -> Workspace:
    return unpacked(request.param, tmp_path, monkeypatch)


def reconfigure(workspace: Workspace, section: str, **keys: object) -> None:
    path = workspace.folder / "config.yaml"
    values = yaml.safe_load(path.read_text())
    values.setdefault(section, {}).update(keys)
    path.write_text(yaml.safe_dump(values))


@pytest.mark.few(2)
def test_nothing_private_is_due_in_an_old_project_and_nothing_is_charged(old, walk):
    found = walk()
    assert not [rule for rule in found.due if rule in RULES and RULES[rule].is_mechanism]
    assert found.charged == Counter()


def test_an_old_project_verifies(old, capsys):
    assert main(["ledger", "verify"]) == 0, capsys.readouterr()
    assert main(["verify", "results"]) == 0, capsys.readouterr()


@pytest.mark.few(2)
def test_a_target_added_to_an_old_project_costs_that_target_alone(old, walk):
    reconfigure(old, "final", targets=[*{"ladder": [1.0]}.get(old.folder.parent.name, [2.0]), 3.0])
    assert walk().charged == Counter({"train_final": 1, "evaluate": 1})


@pytest.mark.long
def test_what_an_old_project_lost_is_restored_for_nothing(old):
    before, held = old.public_bytes(), old.held()
    model = old.results / "main" / WEIGHTS[old.folder.parent.name] / "weights.safetensors"
    model.unlink()
    shutil.rmtree(old.folder / ".snakemake")
    old.finish()
    assert main(["verify", "results"]) == 0
    after = old.public_bytes()
    released = [
        path for path in before if Path(path).name in ("weights.safetensors", "metrics.json")
    ]
    assert [after[path] for path in released] == [before[path] for path in released]
    assert old.held() == held


def test_what_an_old_project_found_is_read_as_today(old):
    [path] = Path("results").glob("*/summary.json")
    found = read_summary(path)
    assert found.experiment == "main"
    assert all(0 < target.test.accuracy <= 1 for target in found.targets)
    assert bool(found.rungs) == (old.folder.parent.name == "ladder")
