"""dpladder without the packages beside it: each start of Python finds neither them nor their entry
points."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from support import TINY, in_new_python, mixture

pytestmark = pytest.mark.usefixtures("hidden")
HIDING = """
import importlib.metadata as metadata
import os
import sys

HIDDEN = tuple(os.environ["HIDDEN_PACKAGES"].split())

class NoPapers:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in HIDDEN:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def others(distribution):
    points = every.fget(distribution)
    return metadata.EntryPoints(e for e in points if not e.value.startswith(HIDDEN))


sys.meta_path.insert(0, NoPapers)
every = metadata.Distribution.entry_points
metadata.Distribution.entry_points = property(others)
"""


@pytest.fixture
def hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For all Pythons that are started from here: a run's jobs, too."""
    place = tmp_path / "hiding"
    place.mkdir()
    (place / "sitecustomize.py").write_text(HIDING, "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(place))
    monkeypatch.setenv("HIDDEN_PACKAGES", "dpladder_papers dpladder_audit dpladder_ledger")
    monkeypatch.setenv("DPLADDER_HOME", str(tmp_path / "home"))


def dpladder(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error::UserWarning", "-m", "dpladder", *arguments]
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, check=False, timeout=600, env=os.environ
    )


def outcome(*arguments: str, cwd: Path) -> str:
    """What a command says that must end well."""
    ended = dpladder(*arguments, cwd=cwd)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of `dpladder init`, with a tiny data set."""
    outcome("init", "photos", cwd=tmp_path)
    np.savez(tmp_path / "photos" / "data.npz", **mixture())
    (tmp_path / "photos" / "config.yaml").write_text(yaml.safe_dump(TINY), "utf-8")
    return tmp_path / "photos"


def test_the_core_has_its_own_learners_and_the_ladder_alone() -> None:
    code = (
        "from dpladder.config import learners, searches; print(*learners.METHODS, searches.METHODS)"
    )
    assert in_new_python(code).split() == ["dp_gd", "dp_finetune", "dp_ls", "dp_ridge", "{}"]


@pytest.mark.ci
def test_the_audit_of_the_core_attacks_all_that_it_publishes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HIDDEN_PACKAGES", "dpladder_papers")
    groups = in_new_python("from dpladder_audit import every; print(*every.groups(), sep='|')")
    named = {*groups.strip().split("|")}
    assert {"gradients", "perceptron", "network", "dp_ls", "train_final", "evaluate"} <= named
    assert not {"dp_adam", "dp_hypo", "compare_hpo"} & named


@pytest.mark.ci
def test_the_core_has_no_rule_of_the_second_package(project: Path) -> None:
    names = outcome("run", "--list-rules", cwd=project).split()
    assert {"run_trial", "write_report"} <= {*names}
    assert not {"compare_hpo", "compare_learners"} & {*names}


def test_the_core_plans_the_demo(tmp_path: Path) -> None:
    assert "lineage mnist5k" in outcome("plan", cwd=tmp_path)


@pytest.mark.ci
@pytest.mark.parametrize(
    ("change", "key", "said"),
    [
        (
            {"learner": {"name": "dp_adam"}},
            "learner.name",
            "allowed: dp_gd, dp_finetune, dp_ls, dp_ridge",
        ),
        ({"hpo": {"name": "dp_hypo"}, "sweep": {"rungs": []}}, "hpo.name", "allowed: ladder"),
    ],
    ids=["a learner", "a search"],
)
def test_the_core_refuses_a_name_of_the_second_package_as_any_unknown_one(
    change: dict[str, object], key: str, said: str, project: Path
) -> None:
    (project / "config.yaml").write_text(yaml.safe_dump(TINY | change), "utf-8")
    ended = dpladder("plan", cwd=project)
    assert ended.returncode == 2
    (problem,) = ended.stderr.splitlines()[1:]
    assert problem.startswith(f"  - {key} (")
    assert problem.endswith(said)


@pytest.mark.ci
def test_the_core_takes_a_project_from_its_first_plan_to_a_verified_statement(
    project: Path,
) -> None:
    assert "final model at epsilon = 1.0000" in outcome("plan", cwd=project)
    outcome("run", "--cores", "2", cwd=project)
    assert (project / "results" / "report.html").is_file()
    assert "follows from the records" in outcome("verify", "results", cwd=project)
    np.savez(project / "new.npz", **mixture(20, seed=5))
    assert len(outcome("predict", "results", "new.npz", cwd=project).splitlines()) == 21


def test_a_command_of_a_package_that_is_not_there_says_what_to_install(tmp_path: Path) -> None:
    ended = dpladder("audit", cwd=tmp_path)
    assert ended.returncode == 2
    assert "dpladder audit comes in a package beside dpladder, which is not installed" in (
        ended.stderr
    )
