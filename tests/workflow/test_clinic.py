"""docs/clinic.md at a small size: an export with findings, patients and hospitals, from the check
to the papers that an officer signs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml
from support import ROOT, Workspace

from dpladder.cli import main
from dpladder.config.load import overlay

EXAMPLES = ROOT / "config" / "examples"
SMALL = {
    "dataset": {"nominal_size": 400},
    "features": {"image_size": 96, "batch_size": 32},
    "privacy": {"epsilon": 200.0, "delta": 1e-5, "lifetime": {"epsilon": 400.0}},
    "sweep": {"rungs": []},
    "evaluate": {
        "measures": "classes",
        "epsilon": 60.0,
        "also": [{"name": "east", "of": "test", "groups": ["east"], "epsilon": 20.0}],
    },
}


@pytest.mark.ci
def test_an_export_of_chests_becomes_a_model_and_a_page_to_sign(
    project: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    make = [sys.executable, str(EXAMPLES / "make_chests.py"), "data/chests", "500"]
    subprocess.run(make, check=True)
    example = yaml.safe_load((EXAMPLES / "chest.yaml").read_text("utf-8"))
    (project.folder / "config.yaml").write_text(yaml.safe_dump(overlay(example, SMALL)), "utf-8")
    assert main(["check"]) == 0
    seen = capsys.readouterr().out
    assert "units    500, of which 500 count" in seen
    assert "problem" not in seen

    project.finish()
    assert main(["verify", "results"]) == 0
    summary = json.loads(Path("results/main/summary.json").read_text())
    findings = summary["targets"][0]["test"]["findings"]
    balanced = [one["figures"]["balanced"] for one in findings]
    each = {one["name"]: one for one in findings}
    assert [*each] == example["dataset"]["label"]
    assert max(one["value"] for one in balanced if one) > 0.65
    said = Path("results/privacy.md").read_text("utf-8")
    assert "for each user, a limit declared beforehand and enforced" in said

    assert main(["predict", "results", "data/chests/images", "--output", "told.csv"]) == 0
    told = pd.read_csv("told.csv")
    assert {f"p({name})" for name in each} <= {*told.columns}
    assert main(["register", "results"]) == 0
    assert len([*Path("register").iterdir()]) == 4
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
