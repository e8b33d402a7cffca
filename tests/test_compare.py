"""Several results folders in one table, from public files alone."""

from __future__ import annotations

import csv
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dpladder.cli import main
from dpladder.commands import compare
from dpladder.privacy.statement.documents import Cost
from dpladder.report.summary import FinalFound, Summary, Tested
from dpladder.section import from_document


def results(folder: Path, delta: float = 1e-5, lineage: str = "pets", **test: Any) -> str:
    """As a finished run leaves them, as far as they are read."""
    tested = {"accuracy": 0.8, "accuracy_sd": 0.01, "correct": 80.0, "total": 100.0, "sd": 1.0}
    target = FinalFound(
        target_epsilon=1.0,
        epsilon=0.9999,
        mu=0.269,
        stated=Cost(0.9999, 0.269),
        mu_final=0.25,
        epsilon_final=0.9,
        r_star=2.0,
        steps=30,
        sigma=3.0,
        search_share=0.1,
        test=from_document(Tested, {**tested, "noised": True, **test}),
    )
    summary = Summary(
        experiment="main",
        mode="release",
        lineage=lineage,
        relation="add_remove",
        delta=delta,
        nominal_size=400,
        learner="dp_gd",
        searches="rate",
        sampling_rate=1.0,
        unit="kappa",
        rungs=(),
        targets=(target,),
        r_range=(0.1, 10.0),
    )
    (folder / "main").mkdir(parents=True)
    (folder / "main" / "summary.json").write_text(json.dumps(asdict(summary)))
    statement = {
        "datasets": {lineage: {"unit": "record", "cap": 1}},
        "mode": "release",
        "delta": delta,
    }
    (folder / "privacy.json").write_text(
        json.dumps(statement | {"records": {}, "id": "", "seal": ""})
    )
    return str(folder)


def test_models_of_several_runs_stand_in_one_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = (
        results(tmp_path / "a"),
        results(tmp_path / "b", figures={"balanced": {"value": 0.7, "sd": 0.02}}),
    )
    assert main(["compare", first, second, "--output", str(tmp_path / "both.csv")]) == 0
    table = pd.read_csv(tmp_path / "both.csv")
    assert table["results"].tolist() == [first, second]
    assert table["mu"].tolist() == [0.269, 0.269]
    assert table["balanced"].tolist()[1] == 0.7
    assert "differs" not in capsys.readouterr().out
    assert main(["compare", first, second]) == 0
    said = capsys.readouterr().out
    assert "test accuracy" in said
    assert "cost together what its ledger says" in said


def test_figures_that_cannot_be_compared_are_said_to_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(
            [
                "compare",
                results(tmp_path / "a"),
                results(tmp_path / "b", delta=1e-6, lineage="other"),
            ]
        )
        == 0
    )
    said = capsys.readouterr().out
    assert (
        "delta differs (1e-05, 1e-06), so epsilons of these rows are not directly comparable"
        in said
    )
    assert "together" not in said


def test_what_is_no_finished_run_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", str(tmp_path)]) == 2
    assert "give the results folder of a finished run" in capsys.readouterr().err
    mixed = Path(results(tmp_path / "a"))
    statement = json.loads((mixed / "privacy.json").read_text())
    (mixed / "privacy.json").write_text(json.dumps(statement | {"datasets": {}}))
    assert main(["compare", str(mixed)]) == 2
    assert "is not of the run that" in capsys.readouterr().err
    assert main(["compare", results(tmp_path / "b"), "--output", "table.xlsx"]) == 2


@pytest.mark.parametrize("words", [["compare"], ["predict", "no.safetensors"]])
def test_a_folder_that_is_not_there_is_told_before_anything_is_read(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--output", "no/table.csv", "x"]) == 2
    assert "--output no/table.csv: no is no folder. Make it" in capsys.readouterr().err


def test_a_training_without_noise_is_a_row_without_a_mu(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    results(folder)
    path = folder / "main" / "summary.json"
    found = json.loads(path.read_text())
    unbound = {"r": 3.0, "test": found["targets"][0]["test"] | {"accuracy": 0.9}, "also": {}}
    found["targets"][0]["also"] = []
    path.write_text(json.dumps(found | {"open": unbound}))
    assert main(["compare", str(folder), "--output", str(tmp_path / "table.csv")]) == 0
    table = pd.read_csv(tmp_path / "table.csv")
    assert table["total_epsilon"].tolist() == [1.0, float("inf")]
    assert table["test_accuracy"].tolist() == [0.8, 0.9]
    assert table["mu"].isna().tolist() == [False, True]


STEERS = [
    "=HYPERLINK(1)",
    "@SUM(1)",
    "+1",
    "\033[2J",
    "a\nb",
    "<script>x</script>",
    "\u202eelif",
    "a|b",
    "[a](b)",
]


@pytest.mark.few(3)
@pytest.mark.parametrize("name", STEERS)
def test_what_others_call_things_is_no_formula_and_steers_no_terminal(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Results are shared: somebody else wrote the names in them."""
    folders = [results(tmp_path / "a", lineage=name), results(tmp_path / "b")]
    for folder in folders[:1]:
        path = Path(folder) / "main" / "summary.json"
        told = json.loads(path.read_text()) | {"learner": name, "experiment": name}
        path.write_text(json.dumps(told))
    outputs = [tmp_path / f"both{suffix}" for suffix in compare.WRITERS]
    for output in outputs:
        assert main(["compare", *folders, "--output", str(output)]) == 0
    assert main(["compare", *folders]) == 0
    said = capsys.readouterr().out
    assert all(line.isprintable() for line in said.splitlines())
    with outputs[0].open(newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert not [cell for cell in cells if cell[:1] in "=+-@" and cell]
    assert all(cell.isprintable() for cell in cells)
    for output in outputs[1:]:
        assert "<script>" not in output.read_text()
        assert "\033" not in output.read_text()
    assert len(outputs[1].read_text().splitlines()) == 4


@pytest.mark.parametrize(
    "held", ["", "[]", "{}", '{"lineage": []}', '{"lineage": "pets", "targets": 1}']
)
def test_a_summary_that_is_none_is_one_clear_error(
    held: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = results(tmp_path / "a")
    (tmp_path / "a" / "main" / "summary.json").write_text(held)
    assert main(["compare", folder]) == 2
    assert "summary.json" in capsys.readouterr().err
