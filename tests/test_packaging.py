"""The lock, the environment that it makes, and the make targets."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections import namedtuple
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
RUNTIME = [Requirement(line) for line in PROJECT["project"]["dependencies"]]
EXTRAS = [
    Requirement(line)
    for extra in PROJECT["project"]["optional-dependencies"].values()
    for line in extra
]
DEVELOPMENT = [Requirement(line) for line in PROJECT["dependency-groups"]["dev"]]
LOCK = (ROOT / "envs" / "requirements.lock").read_text("utf-8")
PINS = re.findall(r"^([a-z0-9.-]+)==([^\s;]+)(?: ; (.+?))? \\$", LOCK, re.MULTILINE)


def run(*command: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=cwd,
        env=os.environ | env,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def test_no_line_of_code_is_wider_than_a_hundred_characters() -> None:
    files = [ROOT / "Snakefile", *ROOT.glob("*/**/*.py"), *ROOT.glob("workflow/**/*.smk")]
    wide = [
        f"{file.relative_to(ROOT)}:{number}"
        for file in files
        if not any(part.startswith(".") for part in file.relative_to(ROOT).parts)
        for number, line in enumerate(file.read_text("utf-8").split("\n"), start=1)
        if len(line) > 100
    ]
    assert not wide


@pytest.mark.ci
def test_the_catalogue_of_workflows_can_draw_the_rules(tmp_path: Path) -> None:
    """By the command that .test/README.md gives, on the machine of the catalogue, which has no
    home."""
    [command] = re.findall(r"^    (.+)$", (ROOT / ".test/README.md").read_text("utf-8"), re.M)
    words = [str(tmp_path) if word == ".test" else word for word in command.split()]
    drawn = run(sys.executable, "-m", *words, cwd=ROOT, DPLADDER_HOME=str(tmp_path / "home"))
    assert drawn.returncode == 0, drawn.stderr
    assert drawn.stdout.startswith("digraph")
    assert 'label = "compose_privacy"' in drawn.stdout
    assert not (tmp_path / "home").exists()


# --- the lock -------------------------------------------------------------------------------------


def test_the_lock_and_the_conda_environment_belong_to_the_project_file():
    checked = run(sys.executable, "envs/lock.py", "--check", cwd=ROOT)
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize("change", ['"h5py>=3.12"', 'requires-python = ">=3.11'])
def test_a_lock_of_another_project_file_is_noticed(change, tmp_path):
    (tmp_path / "envs").mkdir()
    for path in ("envs/lock.py", "envs/requirements.lock", "envs/dpladder.yaml"):
        shutil.copy(ROOT / path, tmp_path / path)
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    assert change in text
    (tmp_path / "pyproject.toml").write_text(
        text.replace(change, change.replace("3.1", "3.10")), "utf-8"
    )
    checked = run(sys.executable, "envs/lock.py", "--check", cwd=tmp_path)
    assert checked.returncode == 1
    assert "run `make lock`" in checked.stderr


def test_every_line_of_the_lock_is_an_exact_version_with_hashes():
    entries = re.split(r"\n(?=\S)", LOCK.strip())[1:]
    assert len(entries) == len(PINS) > 100
    assert [entry for entry in entries if "--hash=sha256:" not in entry] == []


def test_the_lock_names_no_address():
    assert re.findall(r"\S*(?:://|--index|--find-links|file:|@ )\S*", LOCK) == []


def test_the_lock_holds_every_direct_dependency_in_an_allowed_version():
    for requirement in RUNTIME + EXTRAS + DEVELOPMENT:
        locked = [version for name, version, _ in PINS if name == requirement.name]
        assert locked, requirement
        assert all(map(SpecifierSet(str(requirement.specifier)).contains, locked)), requirement


def test_the_conda_environment_pins_what_the_lock_pins():
    environment = yaml.safe_load((ROOT / "envs" / "dpladder.yaml").read_text("utf-8"))
    *_, pip = environment["dependencies"]
    pinned = dict(line.split("==") for line in pip["pip"])
    assert pinned.keys() == {requirement.name for requirement in RUNTIME}
    assert [
        pin for pin in pinned.items() if pin not in {(name, version) for name, version, _ in PINS}
    ] == []


def test_contributing_says_why_each_dependency_is_there_and_of_no_other():
    rows = [
        line.split("|")
        for line in (ROOT / "CONTRIBUTING.md").read_text("utf-8").splitlines()
        if line.startswith("| `")
    ]
    reasons = {name: row[2].strip() for row in rows for name in re.findall(r"`([^`]+)`", row[1])}
    assert reasons.keys() == {requirement.name for requirement in RUNTIME + EXTRAS + DEVELOPMENT}
    assert all(reasons.values())


def test_the_changelog_tells_of_this_version_below_what_is_to_come():
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert headings[:2] == ["[Unreleased]", f"[{PROJECT['project']['version']}]"]
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert cited["version"] == PROJECT["project"]["version"]


def test_contributing_fits_on_two_screens():
    lines = (ROOT / "CONTRIBUTING.md").read_text("utf-8").splitlines()
    assert len(lines) <= 80
    assert [line for line in lines if len(line) > 100 and not line.startswith("|")] == []


@pytest.mark.parametrize("recipe", ["Dockerfile", "dpladder.def"])
def test_a_container_holds_what_the_lock_names_and_an_allowed_python(recipe):
    text = (ROOT / "containers" / recipe).read_text("utf-8")
    assert "--require-hashes -r /opt/dpladder/envs/requirements.lock" in text
    (python,) = re.findall(r"python:(\d+\.\d+)-slim", text)
    assert SpecifierSet(PROJECT["project"]["requires-python"]).contains(python)


def test_apptainer_copies_what_the_wheel_is_made_of_and_nothing_else():
    """It knows no .dockerignore: a folder as a whole would take private/ and home along."""
    text = (ROOT / "containers" / "dpladder.def").read_text("utf-8")
    (section,) = re.findall(r"^%files\n(.*?)\n\n", text, re.MULTILINE | re.DOTALL)
    copied = {source for source, _ in map(str.split, section.splitlines())}  # it takes one a line
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {Path(name).parts[0] for name in (*wheel["packages"], *wheel["force-include"])}
    assert copied == needed | {"pyproject.toml", "README.md", "LICENSE"}


def test_a_container_runs_as_any_user():
    """Home is refused to everybody but its owner, and an owner from outside has no entry in the
    image's passwd."""
    text = (ROOT / "containers" / "Dockerfile").read_text("utf-8")
    assert '--user "$(id -u):$(id -g)"' in text
    assert re.search(r"^ENV USER=\S+ HOME=/tmp$", text, re.MULTILINE)


def test_nothing_private_goes_into_a_container():
    ignored = set((ROOT / ".dockerignore").read_text("utf-8").splitlines())
    assert {"private", "results", ".dpladder", "*.key", "data"} <= ignored


# --- make -----------------------------------------------------------------------------------------


def test_make_alone_lists_every_target():
    phony = re.search(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert phony is not None
    shown = run("make", "--no-print-directory", cwd=ROOT)
    assert shown.returncode == 0, shown.stderr
    lines = [line.split(maxsplit=2) for line in shown.stdout.splitlines()]
    assert {line[1] for line in lines if line[0] == "make"} == set(phony.group(1).split())
    assert all(len(line) == 3 for line in lines), "a target without a description"


def test_make_clean_removes_results_and_never_the_home(tmp_path):
    shutil.copy(ROOT / "Makefile", tmp_path)
    home = tmp_path / ".dpladder"  # as near to the results as it can lie
    kept = [
        home / "key",
        home / "ledger" / "mnist5k" / "00000001.json",
        tmp_path / ".venv" / "bin" / "python",
        tmp_path / "config" / "config.yaml",
    ]
    gone = [tmp_path / name / "file" for name in ("results", "private", "logs", ".snakemake")]
    for path in kept + gone:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    cleaned = run("make", "clean", cwd=tmp_path, DPLADDER_HOME=str(home), HOME=str(tmp_path))
    assert cleaned.returncode == 0, cleaned.stderr
    assert [path for path in kept if not path.exists()] == []
    assert [path.parent for path in gone if path.parent.exists()] == []


# --- bootstrap ------------------------------------------------------------------------------------


@pytest.fixture(name="clone")
def _clone(tmp_path):
    """What bootstrap reads of a fresh clone, elsewhere."""
    (tmp_path / "envs").mkdir()
    for path in ("envs/bootstrap.py", "envs/requirements.lock", "pyproject.toml"):
        shutil.copy(ROOT / path, tmp_path / path)
    return tmp_path


@pytest.fixture(name="bootstrap")
def _bootstrap(clone):
    spec = importlib.util.spec_from_file_location("bootstrap", clone / "envs" / "bootstrap.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(name="commands")
def _commands(bootstrap, monkeypatch):
    """The commands that bootstrap would run; all succeed, and a virtual environment appears."""
    seen = []

    def pretend(command, **_):
        seen.append(" ".join(map(str, command)))
        if "venv" in command:
            bootstrap.PYTHON.parent.mkdir(parents=True)
            bootstrap.PYTHON.touch()
        return subprocess.CompletedProcess(command, 0, stdout=sys.version, stderr="")

    monkeypatch.setattr(bootstrap.subprocess, "run", pretend)
    monkeypatch.setattr(bootstrap.shutil, "disk_usage", lambda _: Usage(0, 0, 10**12))
    return seen


Usage = namedtuple("Usage", "total used free")


def test_a_first_run_makes_the_environment_and_a_second_does_nothing(bootstrap, commands):
    assert bootstrap.main() == 0
    assert [
        word
        for word in ("-m venv", "uv pip sync", "--require-hashes", "-e")
        if word not in " ".join(commands)
    ] == []
    commands.clear()
    assert bootstrap.main() == 0
    assert commands == []


@pytest.mark.parametrize("changed", ["envs/requirements.lock", "pyproject.toml"])
def test_a_changed_lock_or_project_file_installs_again_into_the_same_environment(
    changed, bootstrap, clone, commands
):
    bootstrap.main()
    commands.clear()
    with (clone / changed).open("a") as file:
        file.write("\n# changed\n")
    assert bootstrap.main() == 0
    assert any("uv pip sync" in command for command in commands)
    assert not any("-m venv" in command for command in commands)


def test_an_installation_that_failed_is_tried_again(bootstrap, commands, monkeypatch):
    pretend = bootstrap.subprocess.run
    monkeypatch.setattr(bootstrap, "install", lambda: bootstrap.stop("broken"))
    with pytest.raises(SystemExit):
        bootstrap.main()
    monkeypatch.undo()
    monkeypatch.setattr(bootstrap.subprocess, "run", pretend)
    commands.clear()
    assert bootstrap.main() == 0
    assert any("uv pip sync" in command for command in commands)


def test_pip_takes_over_where_uv_cannot_run(bootstrap, commands, monkeypatch):
    pretend = bootstrap.subprocess.run

    def without_uv(command, **options):
        result = pretend(command, **options)
        result.returncode = int("uv" in command)
        return result

    monkeypatch.setattr(bootstrap.subprocess, "run", without_uv)
    assert bootstrap.main() == 0
    assert any("pip install -q --require-hashes -r" in command for command in commands)


Version = namedtuple("Version", "major minor micro")


@pytest.mark.parametrize("version", [Version(3, 10, 4), Version(3, 14, 0)])
def test_another_python_is_refused_with_what_to_do(
    version, bootstrap, commands, monkeypatch, capsys
):
    monkeypatch.setattr(bootstrap.sys, "version_info", version)
    monkeypatch.setattr(bootstrap.sys, "version", ".".join(map(str, version)) + " (main)")
    message = stopped(bootstrap, capsys)
    assert f"python3 is {version.major}.{version.minor}" in message
    assert "needs 3.11 or newer, below 3.14" in message
    assert "make PYTHON3=" in message
    assert commands == []


def stopped(bootstrap, capsys) -> str:
    """What is told where nothing can be set up."""
    with pytest.raises(SystemExit) as ended:
        bootstrap.main()
    assert ended.value.code == 1
    return capsys.readouterr().err


def test_a_full_disk_is_told_before_anything_is_installed(bootstrap, commands, monkeypatch, capsys):
    monkeypatch.setattr(bootstrap.shutil, "disk_usage", lambda _: Usage(10**12, 10**12, 10**9))
    assert "1.0 GB free" in stopped(bootstrap, capsys)
    assert commands == []


def test_a_python_without_venv_is_told_where_to_get_it(bootstrap, commands, monkeypatch, capsys):
    monkeypatch.setattr(
        bootstrap.subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 1)
    )
    message = stopped(bootstrap, capsys)
    assert "could not create a virtual environment" in message
    assert "apt-get install python3-venv" in message


@pytest.mark.long
def test_a_missing_network_is_told_in_one_message(clone):
    nowhere = "http://127.0.0.1:9/simple"
    offline = run(
        sys.executable,
        "envs/bootstrap.py",
        cwd=clone,
        PIP_CONFIG_FILE=os.devnull,
        PIP_INDEX_URL=nowhere,
        PIP_EXTRA_INDEX_URL="",
        PIP_NO_INDEX="",
        PIP_FIND_LINKS="",
        PIP_RETRIES="0",
        PIP_NO_CACHE_DIR="1",
        UV_INDEX_URL=nowhere,
        UV_DEFAULT_INDEX=nowhere,
        UV_NO_CACHE="1",
    )
    assert offline.returncode == 1
    assert "setup: could not install the locked dependencies. Check that PyPI" in offline.stderr
    assert "then run the same command again" in offline.stderr
    assert "Traceback" not in offline.stderr
    assert not (clone / ".venv" / ".dpladder-ready").exists()
