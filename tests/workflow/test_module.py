"""dpladder as a module of another workflow: a real outer workflow, run to its end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from documented import BLOCK
from support import ROOT, TINY, mixture

from dpladder.cli import main
from dpladder.plan.outer import config_of
from dpladder.plan.startup import import_path

PAGE = (ROOT / "docs" / "module.md").read_text("utf-8")
START = "onstart:\n    dpladder.onstart()"
RULES = """

rule everything:
    default_target: True
    input:
        "copied.json",


rule copy:
    input:
        rules.dpladder_compose_privacy.output.statement,
    output:
        "copied.json",
    shell:
        "cp {input} {output}"
"""
HANDLERS = f"{START}\n\n\nonsuccess:\n    dpladder.onsuccess()"
TWO_TRIALS = TINY | {"sweep": TINY["sweep"] | {"rungs": [{"epsilon": 0.1, "trials": 2}]}}


@pytest.fixture(name="outer")
def _outer(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPLADDER_HOME", str(tmp_path / "home"))
    np.savez("data.npz", **mixture())
    return tmp_path


def write(handlers: str = HANDLERS, config: dict | None = None, more: str = "") -> None:
    """The workflow of docs/module.md, with what the reader fills in, and a rule of their own."""
    [text] = [code for _, code in BLOCK.findall(PAGE) if "module dpladder:" in code]
    for shown, filled_in in (
        ("config/config.yaml", "config.yaml"),
        ("dpladder/workflow/Snakefile", str(ROOT / "workflow" / "Snakefile")),
        ('config: config["dpladder"]\n', f'config: config["dpladder"]\n    {more}\n'),
        (START, handlers),
    ):
        assert text.count(shown) == 1
        text = text.replace(shown, filled_in)
    Path("Snakefile").write_text(text + RULES, "utf-8")
    given = {"dpladder": TWO_TRIALS if config is None else config, "mine": 1}
    Path("config.yaml").write_text(yaml.safe_dump(given), "utf-8")


def snakemake(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "snakemake", "--cores", "2", *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


@pytest.mark.ci
def test_an_outer_workflow_runs_to_its_end_and_again_for_nothing(outer, capsys):
    write()
    ended = snakemake()
    assert ended.returncode == 0, ended.stderr
    assert "Lineage tiny: all that was or will ever be released" in ended.stderr
    stated = json.loads(Path("copied.json").read_text("utf-8"))
    assert stated["datasets"]["tiny"]["epsilon"] == pytest.approx(1.0, abs=1e-3)
    assert main(["verify", "results"]) == 0
    assert main(["ledger", "verify", "results"]) == 0
    capsys.readouterr()
    entries = len(list((outer / "home" / "ledger" / "tiny").iterdir()))
    again = snakemake()
    assert "Nothing to be done" in again.stdout + again.stderr
    assert len(list((outer / "home" / "ledger" / "tiny").iterdir())) == entries


@pytest.mark.long
def test_without_its_handler_the_first_job_names_the_missing_line(outer):
    write(handlers="")
    ended = snakemake()
    assert ended.returncode == 1
    logs = "".join(log.read_text("utf-8") for log in (outer / "logs").rglob("*.log"))
    assert "needs the line `onstart: dpladder.onstart()`" in logs
    assert not (outer / "home").exists()


@pytest.mark.long
def test_two_modules_of_it_are_refused(outer):
    write()
    text = Path("Snakefile").read_text("utf-8")
    module = text[text.index("module dpladder:") : text.index("onstart:")]
    for old, new in (
        ("module dpladder:", "module second:"),
        ("from dpladder as dpladder_", "from second as second_"),
    ):
        assert old in module
        module = module.replace(old, new)
    Path("Snakefile").write_text(text + module, "utf-8")
    ended = snakemake("-n")
    assert ended.returncode == 2
    assert "dpladder and second are both dpladder" in ended.stderr


@pytest.mark.long
@pytest.mark.parametrize(
    ("config", "more", "said"),
    [
        ({}, "", "this module has no config"),
        (None, 'prefix: "inner"', "this module has a prefix"),
        (TWO_TRIALS | {"sweeep": 1}, "", "sweeep"),
    ],
    ids=["no config", "a prefix", "a key that is none"],
)
def test_what_cannot_be_a_module_is_said_at_once(outer, config, more, said):
    write(config=config, more=more)
    ended = snakemake("-n")
    assert ended.returncode == 2
    assert said in ended.stderr


def test_jobs_import_the_clones_own_package_first_and_then_what_its_user_has() -> None:
    own = str(ROOT / "src")
    assert import_path("") == own
    assert import_path(f"/mine:{own}::/more") == f"{own}:/mine:/more"


FIRST = """
use rule prepare_dataset from dpladder as dpladder_prepare_dataset with:
    input:
        "cleaned.flag",


rule clean:
    output:
        touch("cleaned.flag"),
    shell:
        "mv raw.npz data.npz"
"""


@pytest.mark.long
def test_a_source_that_an_outer_rule_is_yet_to_write_stops_no_parse(outer):
    write()
    Path("data.npz").rename("raw.npz")
    Path("Snakefile").write_text(Path("Snakefile").read_text("utf-8") + FIRST, "utf-8")
    ended = snakemake("clean", "-n")
    assert ended.returncode == 0, ended.stderr
    ended = snakemake("results/main/data/privacy.json")
    assert ended.returncode == 0, ended.stderr
    assert Path("data.npz").exists()


@pytest.mark.parametrize("classes", [["no", "yes"], ["0", "1"], ["null", "1.5"]])
def test_quoted_words_of_an_outer_config_are_words(classes):
    given = {"dataset": {"classes": classes, "nominal_size": 7, "lineage": "1"}}
    assert config_of(given, {}) == given


def test_what_the_command_line_says_inside_braces_is_typed():
    """Snakemake hands it on as text."""
    given = {"privacy": {"epsilon": "2"}, "dataset": {"classes": ["2", "true"]}}
    overrides = {"dpladder": {"privacy": {"epsilon": "2"}}, "other": "2"}
    assert config_of(given, overrides) == given | {"privacy": {"epsilon": 2}}
