"""docs/tutorial.md word for word, from `dpladder init` to the page that an officer signs; and what
docs/models.md does with the model."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from documented import BLOCK, ROOT
from PIL import Image

from dpladder.cli import main

PAGE = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
MODELS = (ROOT / "docs" / "models.md").read_text("utf-8")
README = (ROOT / "README.md").read_text("utf-8")
CLASSES = {"healthy": 60, "ill": 190}  # mean brightness of the pictures


def shown_commands() -> Iterator[list[str]]:
    """What a reader types, in order, but for the installation: commands of blocks, then those that
    the page names in its text about what comes after a run."""
    for _, block in BLOCK.findall(PAGE):
        yield from (words for words in commands_of(block) if words[0] != "pip")
    after = BLOCK.sub("", PAGE).partition("## 6.")[2]
    for command in re.findall(r"`(dpladder [^`]+)`", after):
        yield shlex.split(command)


def add_pictures(data: Path) -> None:
    rng = np.random.default_rng(0)
    for name, brightness in CLASSES.items():
        (data / name).mkdir()
        for number in range(120):
            pixels = rng.normal(brightness, 30, (48, 48, 3)).clip(0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(data / name / f"{number}.png")


def agree_on_figures(config: Path) -> None:
    """Step 2 for as few pictures as these."""
    values = yaml.safe_load(config.read_text("utf-8"))
    values["dataset"] |= {"nominal_size": 190, "classes": [*CLASSES]}
    config.write_text(yaml.safe_dump(values), "utf-8")


def commands_of(block: str) -> list[list[str]]:
    return [words for line in block.splitlines() if (words := shlex.split(line, comments=True))]


def test_the_readme_gives_the_commands_of_the_tutorial() -> None:
    [block] = [block for _, block in BLOCK.findall(README) if "dpladder init" in block]
    first, *commands = commands_of(block.replace("~/my-photos", "~/scans"))
    assert first == [".", ".venv/bin/activate"]
    assert commands == list(shown_commands())[: len(commands)]


@pytest.mark.ci
def test_the_tutorial_works_in_its_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("DPLADDER_HOME")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    folder, said = tmp_path, {}
    for words in shown_commands():
        if words[0] == "cd":
            folder = Path(words[1]).expanduser()
            add_pictures(folder / "data")
            agree_on_figures(folder / "config.yaml")
            continue
        words = [str(Path(word).expanduser()) if word[0] == "~" else word for word in words[1:]]
        if words[0] == "export":  # the page names the command, models.md its arguments
            words += ["results", "exported"]
        if "photo.jpg" in words:
            Image.open(folder / "data/ill/0.png").save(folder / "photo.jpg")
        command = [sys.executable, "-m", "dpladder", *words]
        ended = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=600
        )
        assert ended.returncode == 0, (words, ended.stdout, ended.stderr)
        said[" ".join(words)] = ended.stdout + ended.stderr

    # step 3: records of each class and part
    assert re.search(r"healthy.*\d", said["check"])
    assert re.search(r"test: \d+", said["check"])
    # step 4: a line for each mechanism, and their sum below the promise
    assert "train_final" in said["plan"]
    # step 5: spending, accuracy, report; the ledger in the user's home
    assert "results/report.html" in said["run"]
    assert (tmp_path / ".dpladder").is_dir()
    # step 6: what is handed over
    for path in ("privacy.md", "report.html", "main/final/2/weights.safetensors"):
        assert (folder / "results" / path).is_file(), path
    assert re.search("healthy|ill", said["predict results photo.jpg"])
    assert (folder / "exported").is_dir()
    # step 7: what is left
    assert "scans" in said["ledger show"]

    # what private jobs took, for the operator alone
    command = [sys.executable, "-m", "dpladder", "check"]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    [path] = re.findall(r"time and memory of each private job on lineage \S+: (\S+)", ended.stdout)
    lines = [line.split("\t") for line in (folder / path).read_text("utf-8").splitlines()]
    assert {"count_units-main", "train_final-main-2"} <= {name for name, _, _ in lines}
    assert all(float(seconds) >= 0 and int(megabytes) > 0 for _, seconds, megabytes in lines)

    # docs/models.md: the model in Python, and as one graph
    monkeypatch.chdir(folder)
    for name, picture in (("cat", "healthy/1"), ("dog", "ill/1")):
        Image.open(f"data/{picture}.png").save(f"{name}.jpg")
    first, *_ = [code for kind, code in BLOCK.findall(MODELS) if kind == "python"]
    names: dict[str, Any] = {}
    exec(first.replace("final/1", "final/2"), names)
    model = names["model"]
    labels = list(model.predict(["cat.jpg", "dog.jpg"]).labels)
    assert {*labels} <= {*CLASSES}
    assert "epsilon" in model.privacy.lineage.guarantee
    assert main(["export", "results", "graph", "--to", "onnx"]) == 0
    said = subprocess.run(
        [sys.executable, "graph.py", folder / "cat.jpg"],
        cwd="graph",
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 0, said.stderr
    assert labels[0] in said.stdout
