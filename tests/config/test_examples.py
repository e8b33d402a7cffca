"""What ships with the config: the generated files, the schema, and the examples."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from dpladder import cli
from dpladder.config.docs import COMMAND, generated_files
from dpladder.config.load import load

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "config" / "config.yaml"
EXAMPLES = sorted((ROOT / "config" / "examples").glob("*.yaml"))


@pytest.fixture(name="schema", scope="module")
def _schema():
    return yaml.safe_load((ROOT / "workflow" / "schemas" / "config.schema.yaml").read_text("utf-8"))


@pytest.fixture(name="sources")
def _sources(tmp_path, monkeypatch):
    """A working directory that holds what the examples say they need."""
    folders = ("photos", "hospitals", "reviews", "chests/images", "cifar10/train", "cifar10/test")
    for folder in folders:
        (tmp_path / "data" / folder).mkdir(parents=True)
    (tmp_path / "data" / "features.npz").touch()
    (tmp_path / "data" / "patients.csv").touch()
    (tmp_path / "data" / "chests.csv").touch()
    (tmp_path / "data" / "chests" / "train.csv").touch()
    (tmp_path / "data" / "speeches.jsonl").touch()
    (tmp_path / "data" / "glue").mkdir()
    for task in ("sst2", "qnli", "qqp", "mnli"):
        (tmp_path / "data" / "glue" / f"{task}.jsonl").touch()
    monkeypatch.chdir(tmp_path)


def test_generated_files_are_in_step_with_the_typed_config():
    for path, text in generated_files().items():
        assert (ROOT / path).read_text("utf-8") == text, f"{path} is out of step: run `{COMMAND}`"


def test_the_demo_loads():
    assert load([DEMO]).main.dataset.lineage == "mnist5k"


@pytest.mark.usefixtures("sources")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_loads_where_its_sources_are(path):
    assert load([path]).main.privacy.epsilon > 0


@pytest.mark.ci
@pytest.mark.usefixtures("sources")
@pytest.mark.parametrize("path", [DEMO, *EXAMPLES], ids=lambda path: path.stem)
def test_the_demo_and_every_example_can_be_afforded(path, tmp_path, monkeypatch):
    monkeypatch.setenv("DPLADDER_HOME", str(tmp_path / "home"))
    assert cli.main(["plan", str(path)]) == 0


def test_the_examples_cover_what_the_documentation_promises():
    promised = {
        "cifar10",
        "cifar100",
        "learners",
        "own_images",
        "own_matrix",
        "paper",
        "research",
        "slurm",
    }
    assert promised <= {path.stem for path in EXAMPLES}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_says_when_to_use_it_what_it_needs_and_how_to_run_it(path):
    lines = itertools.takewhile(
        lambda line: line.startswith("#"), path.read_text("utf-8").splitlines()
    )
    head = " ".join(line.lstrip("# ") for line in lines)
    when, needs, run = re.split(" (?=Needs:|Run:)", head)
    assert when.startswith("When ")
    assert needs.startswith("Needs: ")
    assert f"--configfile config/examples/{path.name}" in run
    for word in needs.split():
        if word.startswith("data/"):
            place = word.split("/<")[0].rstrip(",")
            assert re.search(f": ?{place}", path.read_text("utf-8")), f"{word} is not the source"


@pytest.mark.few(6)
@pytest.mark.parametrize("path", [DEMO, *EXAMPLES], ids=lambda path: path.stem)
def test_the_schema_accepts_what_ships_read_by_any_yaml_reader(path, schema):
    jsonschema.validate(yaml.safe_load(path.read_text("utf-8")), schema)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "section", [(), ("privacy",), ("sweep", "select"), ("dataset",)], ids=".".join
)
def test_the_schema_rejects_an_unknown_key(section, schema):
    values = yaml.safe_load(DEMO.read_text("utf-8"))
    inner = values
    for key in section:
        inner = inner[key]
    inner["surprise"] = 1
    with pytest.raises(jsonschema.ValidationError, match="surprise"):
        jsonschema.validate(values, schema)


def test_every_key_of_the_demo_stands_in_the_reference():
    reference = (ROOT / "config" / "README.md").read_text("utf-8")

    def keys(values, prefix=""):
        for key, value in values.items():
            yield prefix + key
            yield from keys(value, f"{prefix}{key}.") if isinstance(value, dict) else ()

    missing = [
        key
        for key in keys(yaml.safe_load(DEMO.read_text("utf-8")))
        if f"- `{key}`" not in reference and f"## {key}\n" not in reference
    ]
    assert missing == []
