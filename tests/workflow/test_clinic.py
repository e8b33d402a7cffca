"""docs/clinic.md at a small size: an export with findings, patients and hospitals, from the check
to the papers that an officer signs."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from documented import BLOCK
from support import ROOT, Workspace

from dpladder.cli import main
from dpladder.config.evaluate_sections import BRIER
from dpladder.config.load import overlay
from dpladder.privacy.accounting.composition import compose

EXAMPLES = ROOT / "config" / "examples"
PAGE = (ROOT / "docs" / "clinic.md").read_text("utf-8")
SMALL = {
    "dataset": {"nominal_size": 400},
    "features": {"image_size": 96, "batch_size": 32},
    "privacy": {"epsilon": 200.0, "delta": 1e-5, "lifetime": {"epsilon": 400.0}},
    "sweep": {"rungs": []},
    "evaluate": {"epsilon": 60.0},
}
"""What the stand-ins, who are few, need beside what the page shows."""


def blocks() -> list[str]:
    return [block for _, block in BLOCK.findall(PAGE)]


def shown_config() -> dict[str, Any]:
    """The first config that the page shows, which it calls whole."""
    return next(yaml.safe_load(block) for block in blocks() if block.startswith("dataset:"))


def shown_commands(start: str) -> list[list[str]]:
    """Commands of the page's blocks, in order."""
    lines = [line.partition("#")[0].strip() for block in blocks() for line in block.splitlines()]
    return [shlex.split(line) for line in lines if line.startswith(start)]


def table_with(page: str, column: str) -> list[dict[str, str]]:
    """The rows of the report's table that has this column."""
    for table in re.findall(r"<table.*?</table>", page, re.S):
        lines = re.findall(r"<tr.*?</tr>", table, re.S)
        headings, *rows = (re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line) for line in lines)
        if column in headings:
            return [dict(zip(headings, row, strict=True)) for row in rows]
    raise AssertionError(f"no table of the report has a column {column}")


def test_the_page_shows_the_example() -> None:
    example = yaml.safe_load((EXAMPLES / "chest.yaml").read_text("utf-8"))
    del example["features"], example["evaluate"]["also"]
    assert shown_config() == example


@pytest.mark.ci
def test_the_try_with_stand_ins_begins_as_the_page_says(project: Workspace) -> None:
    """In a clone, as planned: the run itself is that of the next test."""
    [[_, make, folder]] = shown_commands("python ")
    subprocess.run([sys.executable, ROOT / make, folder, "20"], check=True)
    [command] = shown_commands("snakemake ")
    planned = subprocess.run(
        [sys.executable, "-m", *command, "-n", "-d", project.folder],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert planned.returncode == 0, planned.stderr
    assert "lineage stand-ins: by declaration 480 units train" in planned.stderr
    assert "extract_features" in planned.stdout


@pytest.mark.long
def test_the_page_of_clinics_holds_what_it_promises(
    project: Workspace, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its config and its commands in their order, and what they leave."""
    [[_, make, folder]] = shown_commands("python ")
    subprocess.run([sys.executable, ROOT / make, folder, "500"], check=True)
    config = overlay(shown_config(), SMALL)
    (project.folder / "config.yaml").write_text(yaml.safe_dump(config), "utf-8")
    image = next(Path(folder).rglob("*.png"))
    shutil.copy(image, "photo.jpg")
    said = {}
    for _, *words in shown_commands("dpladder "):
        if words == ["run"]:
            said["run"] = project.finish().stderr
        else:
            assert main(words) == 0, words
            said[words[0]] = "".join(capfd.readouterr())
    assert [*said] == ["check", "plan", "run", "predict", "verify", "register"]
    findings, hospitals = config["dataset"]["label"], config["dataset"]["group"]["names"]

    # step 4: patients and their images in each part, by finding and hospital
    assert "units    500, of which 500 count" in said["check"]
    assert "problem" not in said["check"]
    for part in ("train", "test"):
        assert re.search(rf"part +{part}: \d+ records of \d+ units that count: Atel", said["check"])
        assert re.search(rf"groups +{part}, in records: north \d+", said["check"])

    # step 5: one price, agreed on before the run, and no other one after it
    bought = "[auc, groups] buys 4 tables of counts, a first look among them, for the price of one"
    assert bought in said["plan"]
    [count] = [held for held in project.held() if held.job.rule == "evaluate"]
    assert compose(count.declared, 1e-5).epsilon <= 60.0
    before = project.held()
    project.finish()
    assert project.held() == before

    # step 6: the figures of each finding and hospital, in the summary, the report and the card
    tested = json.loads(Path("results/main/summary.json").read_text())["targets"][0]["test"]
    assert [one["name"] for one in tested["findings"]] == findings
    assert [one["name"] for one in tested["groups"]] == hospitals
    assert {"sensitivity", "specificity", "auc"} <= {*tested["findings"][0]["figures"]}
    balanced = [one["figures"]["balanced"] for one in tested["findings"]]
    assert max(one["value"] for one in balanced if one) > 0.65
    page = Path("results/report.html").read_text("utf-8")
    found, hospital_rows = table_with(page, "finding"), table_with(page, "group")
    assert [row["finding"] for row in found] == findings
    assert {"sensitivity", "specificity", "AUC"} <= {*found[0]}
    assert [row["group"] for row in hospital_rows] == hospitals
    assert BRIER in hospital_rows[0]
    row = pd.read_csv("results/summary.csv").iloc[0]
    assert {"test_accuracy", "sensitivity", "specificity", "auc"} <= {*row.index}
    assert all(f"p({name})" in said["predict"] or name in said["predict"] for name in findings)

    # step 7: the page to sign, and the officer's papers
    assert "for each patient, a limit declared beforehand and enforced" in Path(
        "results/privacy.md"
    ).read_text("utf-8")
    papers = [path.read_text("utf-8") for path in Path("register").iterdir()]
    assert len(papers) == 4
    assert any(config["deployment"]["use"] in paper for paper in papers)
    headline = json.loads(Path("results/main/summary.json").read_text())["targets"][0]["headline"]
    assert sum(headline in " ".join(paper.split()) for paper in papers) == 2

    public = [*Path("results").rglob("*"), *Path("logs").rglob("*"), *Path("register").rglob("*")]
    texts = [path for path in public if path.suffix in (".json", ".md", ".html", ".log", ".yaml")]
    assert not any("patient0" in path.read_text("utf-8") for path in texts)


@pytest.mark.long
def test_the_stand_ins_are_the_same_every_time_and_as_hospitals_have_them(tmp_path: Path) -> None:
    tables = []
    for name in ("one", "other"):
        make = [sys.executable, str(EXAMPLES / "make_chests.py"), str(tmp_path / name), "20"]
        subprocess.run(make, check=True)
        tables.append((tmp_path / name / "train.csv").read_bytes())
    assert tables[0] == tables[1]
    table = pd.read_csv(tmp_path / "one/train.csv")
    findings = yaml.safe_load((EXAMPLES / "chest.yaml").read_text("utf-8"))["dataset"]["label"]
    assert set(table[findings].stack().dropna().unique()) == {0.0, 1.0, -1.0}
    assert table[findings].isna().any().any()
    assert table["Path"].str.contains(r"^patient\d{5}/study\d/view1_frontal.png$").all()
