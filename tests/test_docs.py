"""What the pages say is so: names of what a config can hold, messages, and commands. (Learners:
tests/learn/test_interface.py; commands of dpladder, run: tests/workflow/test_commands.py.)"""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from documented import BLOCK, PAGES, ROOT, check_arguments, commands
from support import DEMO

from dpladder import cli
from dpladder.config import searches
from dpladder.config.docs import TASKS
from dpladder.config.load import overlay
from dpladder.config.method import name_of
from dpladder.config.sources import FORMS, SOURCES
from dpladder.privacy.statement.page import rounding_text

DOCS = ROOT / "docs"
GAP = "…"  # in messages: what changes from one to the next


@pytest.mark.parametrize(("name", "form"), zip(SOURCES, FORMS, strict=True))
def test_a_source_is_in_the_page_of_data(name: str, form: str) -> None:
    page = (DOCS / "data.md").read_text("utf-8")
    assert f"`{form}`" in page or f"`{name}`" in page


def test_the_page_of_papers_has_each_method_of_the_second_package_once() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", (DOCS / "papers.md").read_text("utf-8"), re.M)
    points = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]
    assert rows == [*points["dpladder.learners"], *points["dpladder.searches"]]


@pytest.mark.parametrize("name", [*map(name_of, searches.SECTIONS)])
def test_a_search_is_in_the_page_of_searches(name: str) -> None:
    assert f"`{name}`" in (DOCS / "searches.md").read_text("utf-8")


def test_the_page_of_privacy_has_the_statement_s_figure_for_rounding() -> None:
    figure = rounding_text().replace("epsilon", "ε").replace("delta", "δ")
    assert figure in " ".join((DOCS / "privacy.md").read_text("utf-8").split())


@pytest.mark.parametrize("key", [key for keys in TASKS.values() for key in keys])
def test_a_key_of_a_task_is_in_the_reference(key: str) -> None:
    page = (ROOT / "config" / "README.md").read_text("utf-8")
    assert f"- `{key}`" in page or f"## {key}\n" in page or f"`{key}:` maps" in page


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_begins_with_its_answer(page: Path) -> None:
    """A paragraph, before any list, table, code or heading of the second order."""
    first = page.read_text("utf-8").partition("\n\n")[2].lstrip()
    assert not first.startswith(("|", "#", "-", "!", ">", ":", "```")), first[:40]


def test_code_cites_lines_of_the_contract_by_names_that_they_have() -> None:
    names = re.findall(r"^\d+\. `([a-z-]+)`", (DOCS / "design.md").read_text("utf-8"), re.M)
    cited = {
        name
        for path in (ROOT / "src").rglob("*.py")
        for found in re.findall(
            r"\bcontract: ([a-z, -]+)", re.sub(r"\s+(# )?", " ", path.read_text("utf-8"))
        )
        for name in found.split(", ")
    }
    assert len(cited) > 10
    assert cited <= {*names}


# --- messages -------------------------------------------------------------------------------------


@cache
def sentences() -> str:
    """Every text that the source holds, with gaps where values come, one a line."""
    found = []
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = (getattr(part, "value", GAP) for part in node.values)
                found.append("".join(part if isinstance(part, str) else GAP for part in parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return "\n".join(text.replace("\n", " ") for text in found)


def quoted() -> list[str]:
    rows = re.findall(r"^\| (`.+?) \|", (DOCS / "troubleshooting.md").read_text("utf-8"), re.M)
    return [message for row in rows for message in re.findall(r"`([^`]+)`", row)]


OF_SNAKEMAKE = {"Directory cannot be locked"}


@pytest.mark.parametrize("message", [one for one in quoted() if one not in OF_SNAKEMAKE])
def test_a_message_that_a_page_quotes_is_one_of_dpladders(message: str) -> None:
    words = ".*".join(re.escape(part.strip()) for part in message.split(GAP) if part.strip())
    assert re.search(words, sentences()), message


# --- configs --------------------------------------------------------------------------------------


def shown() -> Iterator[dict[str, Any]]:
    """The parts of configs that the pages show, those of experiments each by itself. `users` is of
    a team's home.yaml."""
    for page in PAGES:
        for language, block in BLOCK.findall(page.read_text("utf-8")):
            if language not in ("", "yaml") or not re.match(r"#?\w+:(\s+#| [{\w]|\n  )", block):
                continue
            for part in alternatives(block):
                if "users" not in part:
                    yield from part.get("experiments", {"main": part}).values()


def alternatives(block: str) -> list[dict[str, Any]]:
    """A block's config. A key that it shows several times is shown with several values: one config
    for each."""
    found: list[dict[str, Any]] = [{}]
    for text in re.split(r"^(?=\w)", block, flags=re.MULTILINE):
        entry = yaml.safe_load(text) or {}
        if entry.keys() & found[-1].keys():
            found.append(found[-1] | entry)
        else:
            found = [part | entry for part in found]
    return found


OWN = {"dataset": {"source": "npz:data.npz", "classes": ["automobile", "other"]}}
BESIDE: Mapping[str, Mapping[str, Any]] = {
    "columns": {"dataset": {"classes": ["healthy", "ill"]}},
    "group": OWN,
    "also": OWN | {"features": {"centre": "none"}},
    "target": {
        "dataset": {"source": "csv:patients.csv", "classes": None},
        "features": {"model": "none", "image_size": None, "centre": "none"},
    },
}
"""What a reader has in a config already, where a page shows a key that needs it."""
FOLDERS = ("data/features", "data/chests/images")
FILES = ("data.npz", "patients.csv", "data/slides.csv", "data/chests/train.csv")
"""What the reader has, by the names that the pages give it. A plan reads none of it."""


@pytest.mark.parametrize("part", shown(), ids=lambda part: "-".join(part))
def test_a_config_that_a_page_shows_is_planned_as_it_stands(
    part: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In place of what it has not, that of the demo."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPLADDER_HOME", str(tmp_path / "home"))
    for folder in FOLDERS:
        Path(folder).mkdir(parents=True)
    for file in FILES:
        Path(file).touch()
    values: Mapping[str, Any] = DEMO
    if {"dataset", "privacy"} <= part.keys():  # a page shows the whole of it
        values = {}
    else:
        for key in sorted({*part.get("dataset", {}), *part.get("evaluate", {})} & {*BESIDE}):
            values = overlay(values, BESIDE[key])
    if "model" in part.get("features", {}):  # the demo's are of images
        values = {key: value for key, value in values.items() if key != "features"}
    Path("config.yaml").write_text(yaml.safe_dump(overlay(values, part)), "utf-8")
    assert cli.main(["plan", "config.yaml"]) == 0


@pytest.mark.ci
@pytest.mark.few(2)
@pytest.mark.parametrize("name", [*map(name_of, searches.SECTIONS)])
def test_a_search_fits_into_the_promise_that_the_page_of_papers_shows(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPLADDER_HOME", str(tmp_path / "home"))
    [part] = [part for part in shown() if "hpo" in part]
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump(overlay(DEMO, part) | {"hpo": {"name": name}}), "utf-8")
    assert cli.main(["plan", str(config)]) == 0


# --- commands -------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", commands("python tools/"))
def test_a_tool_takes_the_arguments_that_a_page_gives_it(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, script, *words = shlex.split(command.replace("<data>", "digits"))
    check_arguments(script, words, monkeypatch)


@pytest.mark.parametrize("command", commands("make "))
def test_a_target_that_a_page_names_is_in_the_makefile(command: str) -> None:
    asked = subprocess.run(
        [*shlex.split(command), "-n"], cwd=ROOT, capture_output=True, check=False, timeout=60
    )
    assert asked.returncode == 0


@pytest.mark.parametrize("command", commands("snakemake "))
def test_a_config_that_a_page_starts_is_there(command: str) -> None:
    """tests/config/test_examples.py plans every example; runs of their kind are in
    tests/workflow."""
    for word in shlex.split(command.replace("<yours>", "config/config.yaml")):
        if word.endswith(".yaml") or word.startswith("profiles/"):
            assert (ROOT / word).exists()


@pytest.mark.parametrize("command", commands("dpladder "))
def test_a_command_of_dpladder_exists(command: str) -> None:
    words = shlex.split(command)
    assert words[1] in cli.COMMANDS or " ".join(words[1:3]) in cli.COMMANDS
