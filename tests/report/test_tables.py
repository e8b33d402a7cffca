"""Tables hold every figure: at full precision for programs, rounded to the safe side for
readers."""

from __future__ import annotations

import re
from io import StringIO
from types import SimpleNamespace

import pandas as pd
import pytest

from dpladder.errors import BadInput
from dpladder.privacy.statement.documents import StatedSpend
from dpladder.report import tables
from dpladder.report.summary import Summary
from dpladder.report.tables import readable, spends_table, write_table
from dpladder.section import from_document


def from_json(table):
    return lambda document: table(from_document(Summary, document))


classes_table, groups_table = from_json(tables.classes_table), from_json(tables.groups_table)
confusion_table = from_json(tables.confusion_table)
shift_table, summary_table = from_json(tables.shift_table), from_json(tables.summary_table)
trials_table = from_json(tables.trials_table)
COUNTS = {"correct": 853.1, "total": 1000.0, "sd": 3.5, "noised": True}

TARGET = {
    "target_epsilon": 1.0,
    "epsilon": 0.99991234,
    "stated": {"epsilon": 0.99991234, "mu": None},
    "mu_final": 0.2,
    "epsilon_final": 0.9,
    "r_star": 21.123456789012345,
    "eta": 0.3,
    "steps": 70,
    "sigma": 34.9,
    "test": {"accuracy": 0.8531, "accuracy_sd": 0.0035, **COUNTS},
    "search_share": 0.201,
}
TRIAL = {"score_sd": 137.5, "counted": 4000}
SUMMARY = {
    "experiment": "main",
    "mode": "release",
    "lineage": "mnist5k",
    "relation": "add_remove",
    "delta": 1e-5,
    "nominal_size": 4000,
    "learner": "dp_gd",
    "searches": "rate",
    "sampling_rate": 1.0,
    "unit": "kappa",
    "r_range": [0.1, 10.0],
    "targets": [
        TARGET,
        TARGET | {"target_epsilon": 2.0, "epsilon": 2.0, "stated": {"epsilon": 2.0, "mu": None}},
    ],
    "rungs": [
        {
            "epsilon": 0.1,
            "mu": 0.03,
            "best": {"trial": 1, "r": 3.1},
            "trials": [
                TRIAL | {"trial": 0, "r": 0.7, "eta": 0.1, "steps": 7, "score": -12.25},
                TRIAL | {"trial": 1, "r": 3.1, "eta": 0.31, "steps": 10, "score": 2310.4},
            ],
        }
    ],
}
FURTHER = {"of": None, "corruption": None, "severity": None}
LINE = {
    "rule": "run_trial",
    "experiment": "main",
    "wildcards": {"rung": "0", "trial": "1"},
    "label": "score",
    "partition": "train",
    "mu": 0.0072712345,
    "epsilon": 0.019221,
    "count": 1,
    "superseded": False,
    "reserved": 1,
    "released": 2,
    "spend": {},
    "question": "asked",
}


LOSSES = {"loss": 2.1, "loss_sd": 0.1, "most": 10.0}
CLASSES = [
    {
        "name": "ill",
        "accuracy": 0.75,
        "accuracy_sd": 0.05,
        "correct": 30.0,
        "wrong": 10.0,
        "sd": 2.0,
    },
    {
        "name": "well",
        "accuracy": None,
        "accuracy_sd": None,
        "correct": -1.0,
        "wrong": 2.0,
        "sd": 2.0,
    },
]


def test_classes_that_were_paid_for_are_told_and_what_noise_hides_is_not():
    tested = TARGET["test"] | {
        "classes": CLASSES,
        "figures": {"balanced": None, "auc": {"value": 0.81234, "sd": 0.03}},
    }
    summary = SUMMARY | {"targets": [TARGET | {"test": tested}]}
    assert readable(classes_table(summary))["accuracy"].tolist() == ["75.0% (58.4–91.6)", ""]
    shown = readable(summary_table(summary))
    assert shown["AUC"].tolist() == ["0.812 (0.754–0.871)"]
    assert "balanced accuracy" not in shown
    assert classes_table(SUMMARY).empty


def test_what_classes_are_taken_for_is_a_column_each_and_empty_where_noise_may_be_all():
    confused = {"cells": [[30.4, 12.0], [-1.0, 3.9]], "sd": 2.0}
    tested = TARGET["test"] | {"classes": CLASSES, "confusion": confused}
    shown = readable(confusion_table(SUMMARY | {"targets": [TARGET | {"test": tested}]}))
    assert shown["taken for ill"].tolist() == ["30", ""]
    assert shown["taken for well"].tolist() == ["12", ""]
    assert confusion_table(SUMMARY).empty


def test_groups_of_every_test_are_told_with_the_worst_of_them():
    groups = [one | {"trained": one["name"] == "ill"} for one in CLASSES]
    worst = {"name": "ill", "value": 0.75, "sd": 0.05}
    tested = TARGET["test"] | {
        "groups": groups,
        "worst": worst,
        "figures": {"elsewhere": {"value": 0.5, "sd": 0.1}},
    }
    also = [FURTHER | {"name": "far", "test": tested | {"worst": None}}]
    summary = SUMMARY | {"targets": [TARGET | {"test": tested, "also": also}]}
    table = readable(groups_table(summary))
    assert table["test"].tolist() == ["test", "test", "far", "far"]
    assert table["trained"].tolist() == ["yes", "no"] * 2
    assert table["lowest"].tolist() == ["lowest", "", "", ""]
    shown = readable(summary_table(summary))
    assert (shown["worst group"].tolist(), shown["worst-group accuracy"].tolist()) == (
        ["ill"],
        ["75.0% (65.2–84.8)"],  # of noise alone, in a document of before
    )
    assert shown["score on other groups"].tolist() == ["50.0% (30.4–69.6)"]
    assert groups_table(SUMMARY).empty
    counted = TARGET["test"] | {"total": 100.0}
    others = [FURTHER | {"name": "others", "test": counted | {"worst": worst}}]
    plain = [FURTHER | {"name": "others", "test": counted}]
    shift = readable(
        shift_table(SUMMARY | {"targets": [TARGET | {"test": counted, "also": others}]})
    )
    assert (shift["worst group"].tolist(), shift["worst-group accuracy"].tolist()) == (
        ["", "ill"],
        ["", "75.0% (65.2–84.8)"],
    )
    assert "worst group" not in readable(
        shift_table(SUMMARY | {"targets": [TARGET | {"test": counted, "also": plain}]})
    )


def test_a_brier_score_is_called_so_wherever_it_stands():
    """And the score of a group, whatever the test of all counts: no accuracy is among them."""
    groups = [one | {"trained": True} for one in CLASSES]
    worst = {"name": "ill", "value": 0.75, "sd": 0.05}
    tested = TARGET["test"] | {"groups": groups, "worst": worst, "brier": True}
    summary = SUMMARY | {"findings": True, "targets": [TARGET | {"test": tested, "also": ()}]}
    table = summary_table(summary)
    assert table["one_minus_brier"].tolist() == [tested["accuracy"]]
    for one in (table, shift_table(summary), groups_table(summary)):
        columns = {*one.columns}
        assert not {"test_accuracy", "accuracy", "worst_accuracy"} & columns
        assert "1 − Brier score" in readable(one)
    assert readable(table)["worst-group 1 − Brier score"].tolist() == ["75.0% (65.2–84.8)"]


def test_a_language_model_on_other_texts_is_told_by_its_perplexity():
    def tested(value):
        return {
            "accuracy": 0.3,
            "accuracy_sd": 0.01,
            "perplexity": {"value": value, "low": value - 1, "high": value + 1, **LOSSES},
            **COUNTS,
        }

    also = [FURTHER | {"name": "others", "test": tested(21.5)}]
    shown = readable(
        shift_table(SUMMARY | {"targets": [TARGET | {"test": tested(8.5), "also": also}]})
    )
    assert shown["perplexity"].tolist() == ["8.50 (7.50–9.50)", "21.50 (20.50–22.50)"]
    assert not {"test accuracy", "lost"} & {*shown}


def stated(*lines):
    """A statement, as far as its spends."""
    spends = tuple(from_document(StatedSpend, line) for line in lines)
    return SimpleNamespace(datasets={"mnist5k": SimpleNamespace(spends=spends)})


TABLES = {
    "summary": summary_table(SUMMARY),
    "trials": trials_table(SUMMARY),
    "spends": spends_table(stated(LINE, LINE | {"mu": None, "superseded": True})),
}


def written(table, name, folder):
    path = folder / name
    write_table(table, path)
    return path.read_text("utf-8")


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_csv_keeps_every_digit(table, tmp_path):
    text = written(table, "t.csv", tmp_path)
    back = pd.read_csv(
        StringIO(text), keep_default_na=False, na_values=[""], float_precision="round_trip"
    )
    pd.testing.assert_frame_equal(
        back.fillna(""), table.fillna(""), check_dtype=False, check_exact=True
    )


@pytest.mark.parametrize("suffix", [".md", ".html"])
def test_readers_see_costs_rounded_up_and_blanks_for_what_is_not_known(suffix, tmp_path):
    text = written(TABLES["summary"], f"t{suffix}", tmp_path)
    assert "1.0000" in text
    assert "0.9999" not in text
    assert "85.3%" in text
    assert "nan" not in text.lower()
    assert "None" not in text
    assert "0.0193" in written(TABLES["spends"], f"s{suffix}", tmp_path)
    assert "0.00728" in written(TABLES["spends"], f"s{suffix}", tmp_path)


def test_markdown_is_one_table_with_a_row_for_each_model(tmp_path):
    rows = written(TABLES["summary"], "t.md", tmp_path).splitlines()
    assert len(rows) == 2 + len(SUMMARY["targets"])
    assert len({row.count("|") for row in rows}) == 1


def test_a_name_ends_no_cell_of_markdown(tmp_path):
    named = pd.DataFrame({"worst": ["so|uth", "no\nrth"], "counted": [1.0, 2.0]})
    rows = written(named, "t.md", tmp_path).splitlines()
    assert rows[2:] == ["| so\\|uth | 1 |", "| no rth | 2 |"]


def test_html_has_the_same_cells_as_markdown(tmp_path):
    page = written(TABLES["trials"], "t.html", tmp_path)
    lines = written(TABLES["trials"], "t.md", tmp_path).splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    assert re.findall(r"<th>(.*?)</th>", page) == rows[0]
    assert re.findall(r"<td>(.*?)</td>", page) == [cell for row in rows[2:] for cell in row]


def test_html_shows_marks_as_text(tmp_path):
    table = spends_table(stated(LINE | {"label": "<script>"}))
    assert "<script>" not in written(table, "t.html", tmp_path)


def test_equal_charges_are_one_row_that_says_what_they_bought():
    """Three trials of one rung cost the same, and so do several tables of one test."""
    trials = [LINE | {"wildcards": {"rung": "0", "trial": f"{place}"}} for place in range(3)]
    final = {"rule": "train_final", "wildcards": {"target": "1"}, "label": "calibration"}
    shown = readable(spends_table(stated(*trials, LINE | {"label": "weights"}, LINE | final)))
    assert shown["what was bought"].tolist() == [
        "rung 0, score of a trial",
        "rung 0, training of a trial",
        "final training, total ε = 1, calibration",
    ]
    assert shown["times"].tolist() == ["3", "1", "1"]
    assert spends_table(stated()).empty


def test_the_best_trial_is_named():
    assert TABLES["trials"]["best"].tolist() == ["", "best"]


def test_an_unknown_format_is_refused_with_what_is_allowed(tmp_path):
    with pytest.raises(BadInput, match=r"\.xlsx.*\.csv, \.md or \.html"):
        write_table(TABLES["summary"], tmp_path / "t.xlsx")
    assert not list(tmp_path.iterdir())


def test_repeats_have_a_row_with_their_mean() -> None:
    repeats = [
        SUMMARY
        | {"experiment": name, "targets": [TARGET | {"test": TARGET["test"] | {"accuracy": share}}]}
        for name, share in {"main": 0.8, "main-2": 0.9, "other": 0.5}.items()
    ]
    cells = {"main": {"of": "a"}, "main-2": {"of": "a"}, "other": {"of": "b"}}
    summaries = [from_document(Summary, one) for one in repeats]
    table = tables.models_table(summaries, cells)
    assert [*table["experiment"]] == ["main", "main-2", "other", "main, mean of 2"]
    mean = table.iloc[-1]
    assert mean["test_accuracy"] == pytest.approx(0.85)
    assert mean["accuracy_sd"] == pytest.approx(0.05 * 2**0.5)
    assert mean["epsilon"] == TARGET["epsilon"]
    assert len(tables.models_table(summaries, {})) == 3
