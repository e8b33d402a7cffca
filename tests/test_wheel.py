"""What an installed dpladder is: the wheel, made from the sdist, in an environment that knows no
clone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
import pytest
import yaml
from packaging.requirements import Requirement
from support import ROOT, TINY, mixture

pytestmark = pytest.mark.ci
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def run(*command: object, cwd: Path, home: Path | None = None) -> str:
    clean = {
        key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")
    }
    ended = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=clean | {"DPLADDER_HOME": str(home or cwd / "home")},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


@pytest.fixture(scope="module", name="built")
def _built(tmp_path_factory) -> Path:
    """The sdist of this tree, and the wheel that is built from the sdist alone."""
    folder = tmp_path_factory.mktemp("built")
    build = (sys.executable, "-m", "hatchling", "build", "-d")
    run(*build, folder, "-t", "sdist", cwd=ROOT)
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    run(*build, folder, "-t", "wheel", cwd=folder / "unpacked" / sdist.name.removesuffix(".tar.gz"))
    return folder


def plain() -> Iterator[Path]:
    """What a plain installation puts into site-packages."""
    todo, known = [Requirement(line) for line in PROJECT["dependencies"]], set()
    while todo:
        asked = todo.pop()
        found = distribution(asked.name)
        wanted = {(found.name, extra) for extra in asked.extras or {""}} - known
        known |= wanted
        for line in found.requires or () if wanted else ():
            needed = Requirement(line)
            if any(
                needed.marker is None or needed.marker.evaluate({"extra": extra})
                for _, extra in wanted
            ):
                todo.append(needed)
        tops = {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}
        yield from (Path(str(found.locate_file(top))) for top in sorted(tops))


@pytest.fixture(scope="module", name="installed")
def _installed(built, tmp_path_factory) -> Path:
    """The commands of a fresh environment. The dependencies are this environment's, without those
    of extras and of tests; dpladder is the wheel's alone."""
    place = tmp_path_factory.mktemp("fresh") / "env"
    venv.create(place, with_pip=False)
    (packages,) = place.glob("lib/python*/site-packages")
    for held in dict.fromkeys(plain()):
        (packages / held.name).symlink_to(held)
    (wheel,) = built.glob("*.whl")
    pip = (
        sys.executable,
        "-m",
        "pip",
        "-q",
        "--python",
        place / "bin" / "python",
        "install",
        "--no-deps",
        "--no-index",
    )
    run(*pip, wheel, cwd=place)
    return place / "bin"


def test_the_wheel_carries_the_workflow_its_configs_and_its_examples(built):
    (wheel,) = built.glob("*.whl")
    assert wheel.name.startswith(f"dpladder-{PROJECT['version']}-")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    kept = [
        path.relative_to(ROOT)
        for place in ("workflow", "config", "examples")
        for path in (ROOT / place).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    ]
    assert len(kept) > 30
    assert [path for path in kept if f"dpladder/share/{path}" not in names] == []
    assert {"dpladder/share/Snakefile", "dpladder/share/envs/dpladder.yaml"} <= names
    assert {"dpladder/cli.py", "dpladder_papers/methods/dp_adam/__init__.py"} <= names
    assert not [name for name in names if "/tests/" in name or name.endswith(".pyc")]


def test_an_installed_dpladder_makes_checks_plans_and_runs_a_project_outside_any_clone(
    installed, tmp_path
):
    dpladder, home = installed / "dpladder", tmp_path / "home"
    where = run(
        installed / "python", "-c", "import dpladder; print(dpladder.__file__)", cwd=tmp_path
    )
    assert Path(where.strip()).is_relative_to(installed.parent)
    assert run(dpladder, "--version", cwd=tmp_path).strip() == f"dpladder {PROJECT['version']}"
    run(dpladder, "init", "photos", cwd=tmp_path, home=home)
    project = tmp_path / "photos"
    readme = (project / "README.md").read_text("utf-8")
    assert str(installed.parent) in readme
    assert str(ROOT) not in readme + (project / "config.yaml").read_text("utf-8")
    np.savez(project / "data.npz", **mixture())
    (project / "config.yaml").write_text(yaml.safe_dump(TINY | {"sweep": {"rungs": []}}), "utf-8")
    assert "train: " in run(dpladder, "check", cwd=project, home=home)
    assert "final model at epsilon = 1.0000" in run(dpladder, "plan", cwd=project, home=home)
    run(dpladder, "run", "--cores", "2", cwd=project, home=home)
    assert (project / "results" / "report.html").is_file()
    stated = json.loads((project / "results" / "privacy.json").read_text("utf-8"))
    assert stated["datasets"]["tiny"]["epsilon"] == pytest.approx(1.0, abs=1e-3)
    assert "follows from the records" in run(dpladder, "verify", "results", cwd=project, home=home)
    np.savez(project / "new.npz", **mixture(20, seed=5))
    assert (
        len(run(dpladder, "predict", "results", "new.npz", cwd=project, home=home).splitlines())
        == 21
    )


def test_the_demo_of_an_installed_dpladder_is_its_own(installed, tmp_path):
    assert "lineage mnist5k" in run(installed / "dpladder", "plan", cwd=tmp_path)
