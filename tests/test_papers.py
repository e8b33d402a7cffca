"""docs/reproductions.md tells what the papers ask; tools/papers.py has a command for each, and runs
them."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from documented import check_arguments

from dpladder import cli
from dpladder.config.load import load
from dpladder.data.datasets import class_index, classes, open_source

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "reproductions.md").read_text("utf-8")
MEASURED = (ROOT / "docs" / "measurements" / "reproductions.md").read_text("utf-8")


def opened() -> ModuleType:
    path = ROOT / "tools" / "papers.py"
    spec = importlib.util.spec_from_file_location("tools.papers", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["tools.papers"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


papers = opened()
BY_KEY = {row.key: row for row in papers.ROWS}


STATUSES = (papers.MEASURED, papers.REHEARSED, papers.NOT_RUN)


def asked() -> Iterator[tuple[str, str]]:
    """Of each row of the papers' tables, what it asks and what the page says was measured."""
    yield from ((ask, measured) for ask, _, measured in papers.rows_of_page(PAGE))


def test_every_row_of_the_page_has_a_command_and_no_command_is_of_no_row() -> None:
    named = {ask: re.findall(r"`([\w-]+)`", status) for ask, status, _ in papers.rows_of_page(PAGE)}
    assert all(named.values())
    assert {key for keys in named.values() for key in keys} == set(BY_KEY)


@pytest.mark.parametrize(("ask", "measured"), asked(), ids=lambda text: text[:40])
def test_what_the_page_calls_not_run_is_what_the_list_makes_by_default(
    ask: str, measured: str
) -> None:
    never = [row.key for row in papers.ROWS if ask in row.asks and row.status != papers.MEASURED]
    assert bool(never) == ("not run" in measured), never


@pytest.mark.parametrize(
    ("ask", "status"), [(ask, status) for ask, status, _ in papers.rows_of_page(PAGE)]
)
def test_a_rows_status_is_that_of_its_commands(ask: str, status: str) -> None:
    keys = {
        each: ", ".join(
            f"`{row.key}`" for row in papers.ROWS if ask in row.asks and row.status == each
        )
        for each in STATUSES
    }
    assert status == "; ".join(f"{each}: {keys[each]}" for each in STATUSES if keys[each])


@pytest.mark.parametrize(
    "row", [row for row in papers.ROWS if row.shown], ids=lambda row: str(row.key)
)
def test_what_was_measured_has_its_figures_on_a_page_beside_its_command(row: Any) -> None:
    page, _, anchor = row.shown.partition("#")
    section = sections((ROOT / "docs" / page).read_text("utf-8"))[anchor]
    assert re.search(r"\d\.\d\d", section) or "](../papers/" in section
    used = {Path(word).name for word in row.command if word.endswith((".py", ".yaml"))}
    assert all(name in section for name in used) or f"papers.py {row.key}" in section


def test_what_is_rehearsed_is_what_the_rehearsals_run() -> None:
    text = (ROOT / "tests" / "workflow" / "test_rehearsals.py").read_text("utf-8")
    [run] = [
        node.value
        for node in ast.parse(text).body
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "OVER"
    ]
    assert isinstance(run, ast.Dict)
    keys = {ast.literal_eval(key) for key in run.keys if key}
    assert keys == {row.key for row in papers.ROWS if row.rehearsed}


def sections(page: str) -> Mapping[str, str]:
    """What stands below each heading, by its anchor."""
    found: dict[str, list[str]] = {}
    for part in re.split(r"^#+ ", page, flags=re.MULTILINE)[1:]:
        heading, _, body = part.partition("\n")
        anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        found.setdefault(anchor, []).append(body)
    return {anchor: "\n".join(bodies) for anchor, bodies in found.items()}


def test_every_picture_of_the_page_is_made_by_a_row_whose_command_stands_on_it() -> None:
    shown = re.findall(r"\]\(../papers/([\w-]+\.svg)\)", MEASURED)
    made = {name: row for row in papers.ROWS for name in row.pictures}
    assert set(shown) == set(made) == {path.name for path in (ROOT / "docs" / "papers").iterdir()}
    words = " ".join(MEASURED.split())
    for row in made.values():
        assert row.written in words or f"python tools/papers.py {row.key}" in words


def script(folder: Path, text: str) -> tuple[str, str]:
    """A row's command that does this."""
    path = folder / f"{len([*folder.glob('*.py')])}.py"
    path.write_text(text, "utf-8")
    return "python", str(path)


def test_pictures_are_taken_from_what_was_made_alone(tmp_path: Path) -> None:
    draw = script(tmp_path, "open('line.svg', 'w').write('a line')")
    rows = [
        papers.Row("drawn", ("one",), draw, pictures={"one.svg": "line.svg"}),
        papers.Row("lacking", ("two",), draw, (papers.by_hand("x"),), pictures={"two.svg": "x"}),
    ]
    (tmp_path / "page").mkdir()
    found = papers.make_rows(rows, tmp_path / "out", tmp_path / "data", 1)
    papers.copy_pictures(found, tmp_path / "out", tmp_path / "page")
    assert [path.name for path in (tmp_path / "page").iterdir()] == ["one.svg"]
    assert (tmp_path / "page" / "one.svg").read_text("utf-8") == "a line"


@pytest.mark.ci
@pytest.mark.parametrize("key", [row.key for row in papers.ROWS if row.configs])
def test_every_config_can_be_planned_before_its_data_is_there(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("hospitals", "imagenet", "reviews", "cifar10/train", "cifar10/test"):
        (tmp_path / "data" / folder).mkdir(parents=True)
    (tmp_path / "data" / "glue").mkdir()
    for task in ("sst2", "qnli", "qqp", "mnli"):
        (tmp_path / "data" / "glue" / f"{task}.jsonl").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPLADDER_HOME", str(tmp_path / "home"))
    assert cli.main(["plan", *map(str, BY_KEY[key].configs)]) == 0


@pytest.mark.parametrize(
    "row", [row for row in papers.ROWS if not row.configs], ids=lambda row: row.key
)
def test_every_script_is_there_and_knows_its_options(
    row: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, script, *options = row.command
    check_arguments(script, [str(option) for option in options], monkeypatch)


@pytest.mark.parametrize("row", papers.ROWS, ids=lambda row: row.key)
def test_a_gpu_is_named_where_a_config_asks_for_one(row: Any) -> None:
    texts = [path.read_text("utf-8") for path in row.configs]
    assert (papers.GPU in row.needs) == any(re.search(r"gpu: [1-9]", text) for text in texts)


def test_rows_are_made_in_turn_and_what_fails_or_lacks_something_stops_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data" / "here").mkdir(parents=True)
    write = "import os; print(os.listdir('data')); open('result', 'w').write(os.environ['{}'])"
    whole = script(tmp_path, write.format("DPLADDER_HOME"))
    rows = [
        papers.Row("broken", ("one",), script(tmp_path, "raise SystemExit(3)")),
        papers.Row("lacking", ("two",), whole, (papers.by_hand("pictures"),)),
        papers.Row("whole", ("three",), whole, (papers.by_hand("here"),)),
    ]
    out = tmp_path / "out"
    found = papers.make_rows(rows, out, tmp_path / "data", 1)
    assert [outcome.state for outcome in found] == ["failed", "left out", "made"]
    assert not (out / "lacking").exists()
    assert (out / "whole" / "result").read_text() == str(out / "whole" / "home")
    assert (out / "whole" / "log.txt").read_text() == "['here']\n"
    page = (out / "papers.md").read_text("utf-8")
    said = capsys.readouterr().out
    for told in ("exit code 3", "not here: data/pictures", str(out / "whole")):
        assert told in page
        assert told in said


def test_a_config_runs_in_the_row_s_folder_with_the_cores_that_were_asked_for() -> None:
    command = papers.command_of(BY_KEY["searches-cifar10"], 3)
    example, overlay = BY_KEY["searches-cifar10"].configs
    assert command[1:] == [
        *("-m", "dpladder", "run", str(example), str(overlay), "compare_hpo", "--cores", "3")
    ]


def test_the_folders_of_imagenet_count_once_they_have_the_numbers_that_its_overlay_gives_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("n01440764", "n01443537", "n15075141")
    for name in names:
        (tmp_path / "train" / name).mkdir(parents=True)
        (tmp_path / "train" / name / f"{name}_18.JPEG").touch()
    overlay = BY_KEY["searches-imagenet"].configs[2]
    [command] = re.findall(r"^#   (mkdir .*)$", overlay.read_text("utf-8"), re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    subprocess.run(["bash", "-c", command.replace("/where/it/is", str(tmp_path))], check=True)
    asked = load([*BY_KEY["searches-imagenet"].configs]).main.dataset
    found = open_source(asked.source)
    assert found.files is not None
    number = class_index(classes(asked))
    counted = {
        Path(file).name[:9]: number(label)
        for file, label in zip(found.files, found.labels, strict=True)
    }
    assert counted == {name: place for place, name in enumerate(names)}
